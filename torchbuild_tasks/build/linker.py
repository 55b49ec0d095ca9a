"""Make the planned linker callable, and try it: link and run a library and a program.

A compiler that cannot be given a linker's name finds it as `ld` in a folder of ours.
"""

from __future__ import annotations

import os
import shlex
import time
from pathlib import Path
from typing import Final

from torchbuild_tasks.build.preflight import trial_folder
from torchbuild_tasks.build.work import Reporter
from torchbuild_tasks.errors import PreflightFailed
from torchbuild_tasks.model import BuildPlan, LinkerPlan, LinkTrial
from torchbuild_tasks.system import process
from torchbuild_tasks.system.files import state_dir, translate_errors, unlink

SECONDS: Final = 60.0  # seconds for one command; a longer one hangs


def try_linker(plan: BuildPlan, report: Reporter) -> str:
    """Make the linker callable, and try it where the plan has a trial.

    Returns:
        Why it does not link here; "" when it does.

    Raises:
        PreflightFailed: it fails, and the user named it.
    """
    linker = plan.linker
    if linker is None:
        return ""
    if linker.folder and not os.access(linker.program, os.X_OK):
        return _refuse(linker, f"{linker.program} is not a program", (), report)
    place_linker(plan)
    if linker.trial is None:
        return ""
    start = time.monotonic()
    with trial_folder(Path(plan.source), linker.trial.sources) as folder:
        reason, output = _run_trial(linker.trial, folder, report)
    if reason:
        return _refuse(linker, reason, output, report)
    took = time.monotonic() - start
    report.note(f"Pre-flight, {took:.1f} s: linked and ran a library and a program with {linker.program}.")
    return ""


def place_linker(plan: BuildPlan) -> None:
    """Create the linker's link in the folder that the plan's LDFLAGS name, if they name one."""
    if plan.linker and plan.linker.folder:
        program = Path(plan.linker.program).absolute()
        link_linker(Path(plan.source), Path(plan.linker.folder), program)


def link_linker(root: Path, folder: Path, program: Path) -> None:
    """Create a link `ld` to `program` in `folder`, a folder of ours.

    Raises:
        PreflightFailed: the link cannot be made.
    """
    link = folder / "ld"
    state_dir(root)
    with translate_errors(PreflightFailed, link):
        folder.mkdir(exist_ok=True)
        if link.is_symlink() and link.readlink() == program:
            return
        unlink(link, missing_ok=True)
        link.symlink_to(program)


def _run_trial(trial: LinkTrial, folder: Path, report: Reporter) -> tuple[str, tuple[str, ...]]:
    """Return why the trial failed ("" if it did not), and the end of its output."""
    for argv in (*trial.commands, trial.run):
        report.command(argv)
        captured = process.capture(argv, env=os.environ, cwd=folder, timeout=SECONDS)
        output = captured.output.splitlines()
        if captured.rc != 0:
            first = next((line for line in output if "error" in line.lower()), "")
            reason = f"{Path(argv[0]).name} ended with exit code {captured.rc}"
            reason += f": {first}" if first else ""
            return reason, (*output[-10:], f"$ {shlex.join(argv)}")
    if trial.mark.encode() not in (folder / trial.library).read_bytes():
        return "the compiler called another linker", (f"$ {shlex.join(trial.commands[0])}",)
    return "", ()


def _refuse(linker: LinkerPlan, reason: str, output: tuple[str, ...], report: Reporter) -> str:
    """Raise if the user named the linker, else report that the build continues without it."""
    if linker.demanded:
        raise PreflightFailed(
            f"The linker {linker.name} ({linker.program}) does not link here: {reason}.",
            looked=output,
            next_step="Leave it out (--linker default), name another, or go on without this check "
            "(--no-preflight).",
        )
    report.note(f"The linker {linker.name} does not link here ({reason}); the build continues without it.")
    return f"it does not link here ({reason})"
