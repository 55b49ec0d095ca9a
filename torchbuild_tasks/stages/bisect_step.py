"""One step of a bisect: the commit that is checked out is built, and the command judges it."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from torchbuild_tasks.build.ledger import now
from torchbuild_tasks.build.work import Reporter
from torchbuild_tasks.core.bisect import Bisection, Step, Verdict, blames_the_machine, judged
from torchbuild_tasks.errors import BuildFailed, PatchRefused, PlanRefused, SourceError, UsageError
from torchbuild_tasks.model import BuildPlan
from torchbuild_tasks.system import process
from torchbuild_tasks.system.files import told_as
from torchbuild_tasks.system.shell import activate

Build = Callable[[], BuildPlan]

_TAIL: Final = 12  # lines of a command that stopped the bisect


def require_own_python(plan: BuildPlan, agreed: bool) -> None:
    """Every build installs its torch: into an environment of the user's only when that is agreed to.

    Raises:
        UsageError: it is not.
    """
    if plan.environment.foreign and not agreed:
        raise UsageError(
            f"Each build of a bisect is installed, and {plan.environment.python} is an environment of yours.",
            next_step="Name a Python that is in no environment, and a venv in the bisect's own worktree gets "
            "them: --python /usr/bin/python3\nOr say --yes.",
        )


def try_commit(memory: Bisection, title: str, logs: Path, build: Build, report: Reporter) -> Step:
    """Build what is checked out and let the command judge it.

    Raises:
        BuildFailed: the machine, not the commit, made the build fail, or the command says stop.
    """
    began, commit, log = time.monotonic(), memory.testing, ""
    try:
        plan = build()
    except BuildFailed as error:
        if blames_the_machine([each.id for each in error.diagnoses]):
            raise
        verdict: Verdict = "skip"
        because = " ".join(("it cannot be built:", error.what, *error.looked[:1]))
    except PlanRefused as error:
        reasons = (finding.text for finding in error.findings)
        verdict, because = "skip", " ".join(("it cannot be built here:", error.what, *reasons))
    except PatchRefused as error:
        verdict, because = "skip", f"it cannot be patched: {error.what}"
    else:
        path = logs / f"{len(memory.steps) + 1:03}-{commit[:10]}.log"
        verdict, because = _command(memory, plan, path, report)
        log = str(path)
    return Step(
        commit=commit,
        title=title,
        verdict=verdict,
        because=because,
        seconds=round(time.monotonic() - began, 1),
        finished=now(),
        log=log,
    )


def _command(memory: Bisection, plan: BuildPlan, log: Path, report: Reporter) -> tuple[Verdict, str]:
    """Run the command with the built Python first on PATH, in an empty folder."""
    with told_as(SourceError, log):
        log.parent.mkdir(parents=True, exist_ok=True)
    tail: list[str] = []

    def seen(block: bytes) -> None:
        tail.extend(block.decode(errors="replace").splitlines())
        del tail[:-_TAIL]
        report.block(block)

    environ = _environ(memory, plan)
    # Somebody's working folder on Windows cannot be removed; what is left there is the system's to clear.
    with (
        tempfile.TemporaryDirectory(prefix="torchbuild-bisect-", ignore_cleanup_errors=True) as empty,
        told_as(SourceError, log),
        log.open("wb", buffering=0) as sink,
    ):
        # A command that uses torch would end with 1 and blame the commit for what another one has left.
        if reason := _no_import(plan, environ, empty):
            return "skip", f"the built torch cannot be imported: {reason}"
        report.command(memory.command)
        code = process.stream(memory.command, env=environ, cwd=empty, log=sink, on_block=seen)
    said = judged(code)
    if said is None:
        raise BuildFailed(
            f"The command ended with {code}, which says nothing about the commit; the bisect stops here.",
            looked=tuple(tail),
            next_step=f"Its output: {log}\nMend it and go on: bisect --resume\n"
            f"Leave this commit out: bisect --resume --skip {memory.testing[:10]}",
        )
    return said


def _no_import(plan: BuildPlan, environ: Mapping[str, str], empty: str) -> str:
    """Why the built Python does not import torch; "" when it does."""
    done = process.capture((plan.environment.python, "-c", "import torch"), env=environ, cwd=empty)
    said = done.stderr.decode(errors="replace").strip().splitlines()
    return "" if done.rc == 0 else said[-1] if said else f"exit code {done.rc}"


def _environ(memory: Bisection, plan: BuildPlan) -> Mapping[str, str]:
    environ = activate(Path(plan.env_files[0].path), environ=os.environ)
    path = next((name for name in environ if name.upper() == "PATH"), "PATH")
    python = plan.environment.python
    return {
        **environ,
        path: os.pathsep.join(filter(None, (str(Path(python).parent), environ.get(path, "")))),
        "TORCHBUILD_COMMIT": memory.testing,
        "TORCHBUILD_CHECKOUT": plan.source,
        "TORCHBUILD_PYTHON": python,
        "TORCHBUILD_START": memory.start,
    }
