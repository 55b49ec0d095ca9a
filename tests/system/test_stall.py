"""What moves nothing is ended; what computes, writes or reads goes on. Each program here ends by itself."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

import pytest

from tests.support.capabilities import needs
from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.system import process
from torchbuild_tasks.system.stall import Pace, Stalled, _work

pytestmark = pytest.mark.integration

SLEEPS = "time.sleep(60)"
DRIPS = "[(time.sleep(0.2), open('x', 'a').write('.')) for _ in range(300)]"
COMPUTES = "end = time.monotonic() + 5\nwhile time.monotonic() < end: pass"
WRITES = "[(time.sleep(0.1), open('x', 'a').write('.' * 20000)) for _ in range(50)]"


def run(code: str, folder: Path) -> int:
    words = (sys.executable, "-I", "-c", f"import time\n{code}")
    nothing = io.BytesIO()
    return process.stream(
        words, env=None, cwd=folder, log=nothing, on_block=lambda block: None, on_idle=Pace().look
    )


@needs(_work(os.getpid()) is not None, "count of what a program reads and writes")
@pytest.mark.parametrize("code", [SLEEPS, DRIPS], ids=["sleeps", "drips"])
def test_what_gets_nowhere_is_ended(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHBUILD_STALL", "2")
    with pytest.raises(Stalled, match="bytes in .* s, less than 1024 a second"):
        run(code, tmp_path)


@pytest.mark.parametrize("code", [COMPUTES, WRITES], ids=["computes", "writes"])
def test_what_moves_goes_on(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHBUILD_STALL", "2")
    assert run(code, tmp_path) == 0


def test_other_seconds_must_be_some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHBUILD_STALL", "soon")
    with pytest.raises(UsageError, match="TORCHBUILD_STALL=soon"):
        Pace()


def test_a_system_that_counts_nothing_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wine's processes have read 0 bytes, however much they did."""

    class Uncounted:
        read_bytes = write_bytes = 0

    monkeypatch.setattr("psutil.Process.io_counters", lambda self: Uncounted())
    assert _work(os.getpid()) is None
