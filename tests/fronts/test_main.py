"""Ctrl-C before a verb has begun: the system's own action, from the first module of ours on."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from torchbuild_tasks.fronts import console, main


@pytest.mark.parametrize(
    ("before", "during"), [(signal.default_int_handler, signal.SIG_DFL), (signal.SIG_IGN, signal.SIG_IGN)]
)
def test_ctrl_c_has_no_action_of_python_while_modules_are_read(
    before: object, during: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[object] = []
    monkeypatch.setattr(console, "main", lambda: seen.append(signal.getsignal(signal.SIGINT)))
    own = signal.signal(signal.SIGINT, before)  # type: ignore[arg-type]
    try:
        main.main()
    finally:
        signal.signal(signal.SIGINT, own)
    assert seen == [during]


@pytest.mark.integration
def test_little_is_read_until_then() -> None:
    """Not typing, nor what it reads: a Ctrl-C meanwhile is a traceback."""
    code = (
        "import sys; old = {*sys.modules}; import torchbuild_tasks.fronts.main; print(*{*sys.modules} - old)"
    )
    done = subprocess.run([sys.executable, "-S", "-c", code], stdout=subprocess.PIPE, text=True, check=True)
    package = (
        "torchbuild_tasks",
        *(f"torchbuild_tasks.{name}" for name in ("about", "fronts", "fronts.main")),
    )
    assert {*done.stdout.split()} <= {"__future__", "_signal", *package}
