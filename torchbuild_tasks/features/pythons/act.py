"""Try a wheel where nothing of its build is: in a venv of its own, which is removed again."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from torchbuild_tasks.build.finish import require_wheel
from torchbuild_tasks.build.work import Reporter, Work
from torchbuild_tasks.errors import RequirementsError
from torchbuild_tasks.features.pythons.choose import MadeWheel
from torchbuild_tasks.model.record import Built
from torchbuild_tasks.ninja.log import parse_ninja_log
from torchbuild_tasks.system import process
from torchbuild_tasks.system.reading import read_bytes
from torchbuild_tasks.values import replace
from torchbuild_tasks.verify.judge import FOLDERS
from torchbuild_tasks.verify.session import verify
from torchbuild_tasks.verify.torch_probe import COMPANION_CHECKS


def try_wheel(work: Work) -> Work:
    """Install the wheel and what it asks for into an empty venv, and make every check of the plan there.

    Raises:
        BuildFailed: the build left no wheel.
        RequirementsError: the venv cannot be made, or the wheel cannot be installed.
    """
    wheel, environment = require_wheel(work), work.plan.environment
    with tempfile.TemporaryDirectory(prefix="torchbuild-clean-", ignore_cleanup_errors=True) as scratch:
        folder = Path(scratch) / "venv"
        scripts, program = ("Scripts", "python.exe") if os.name == "nt" else ("bin", "python")
        own = str(folder / scripts / program)
        pip = (own, "-m", "pip", "install", "--disable-pip-version-check", "--no-input")
        _run(work.report, (environment.python, "-m", "venv", str(folder)))
        _run(work.report, (*pip, *environment.install_options, str(wheel)))
        promises = tuple(
            replace(each, wanted=str(folder)) if each.key in FOLDERS and each.wanted else each
            for each in work.plan.expectations
            if each.check not in COMPANION_CHECKS
        )
        verified = verify(python=own, expectations=promises, environ=os.environ)
    work.ledger.note(verify=verified)
    return replace(work, verified=verified)


def made_wheel(built: Built, python: str, began: float) -> MadeWheel:
    """Return what was made for the Python that was asked for by this name, since `began` (s since 1970)."""
    assert built.verified
    steps = _steps(Path(built.plan.build_dir), began)
    seconds = time.time() - began
    return MadeWheel(python=python, wheel=built.wheel, seconds=seconds, steps=steps, verified=built.verified)


def _run(report: Reporter, argv: Sequence[str]) -> None:
    report.command(tuple(argv))
    captured = process.capture(argv, timeout=1800.0)
    if captured.rc != 0:
        lines = (captured.stderr or captured.stdout).decode("utf-8", "replace").splitlines()
        raise RequirementsError(
            f"The wheel was built, and could not be tried in a clean venv: {' '.join(argv[:4])} failed.",
            looked=tuple(lines[-5:]),
            next_step="Without network, point pip at a folder of wheels: --offline --wheels folder",
        )


def _steps(build_dir: Path, began: float) -> tuple[str, ...]:
    """Return what Ninja has made since then."""
    log = build_dir / ".ninja_log"
    if not log.is_file():
        return ()
    runs = parse_ninja_log(read_bytes(log).decode("utf-8", "replace")).runs
    late = (run for run in runs if run.began is not None and run.began >= began - 2.0)
    return tuple(sorted({step.output for run in late for step in run.steps}))
