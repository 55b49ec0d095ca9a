"""Run a jobserver while a command of the build runs, and report its figures."""

from __future__ import annotations

import contextlib
import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from torchbuild_tasks.build.build_program import build_program
from torchbuild_tasks.build.jobserver.serve import CAN_HOLD, Processes, Served, serve
from torchbuild_tasks.build.jobserver.tokens import TokenPolicy
from torchbuild_tasks.build.work import Work
from torchbuild_tasks.catalog.match import admits
from torchbuild_tasks.features.cache.server import server_of
from torchbuild_tasks.model import Jobserver
from torchbuild_tasks.model.record import JobserverUse
from torchbuild_tasks.system import process
from torchbuild_tasks.values import replace

_EVERY: Final = 5.0  # seconds between two searches for the server
# GNU make before 4.4, called by something in the build, stops at a named pipe (jobserver_parse_auth).
_NOT_UNDERSTOOD: Final = "invalid --jobserver-auth string"
_VERSION: Final = re.compile(r"\d+(\.\d+)+")
_PATIENCE: Final = 20.0
# Seconds of suspension, in total, below which nothing is reported.
_WORTH_TELLING: Final = 1.0


@contextlib.contextmanager
def jobserver(work: Work, to_come: Callable[[], float]) -> Iterator[Work]:
    """Run the planned jobserver during the body; yield the work with the environment for the build.

    `to_come` returns the share of the build's steps that have not ended.
    """
    planned = work.plan.jobserver
    if planned is None:
        yield work
        return
    environ = work.env
    if problem := _cannot_take(planned, work.build_dir, environ):
        work.report.note(f"Without a jobserver, with {environ.get('MAX_JOBS')} jobs: {problem}.")
        yield work
        return
    policy = TokenPolicy(
        cores=planned.cores,
        reserve=planned.reserve,
        largest=planned.largest,
        holds=CAN_HOLD,
        to_come=to_come,
    )
    with contextlib.ExitStack() as at_end:
        try:
            processes = build_processes(environ)
            served = at_end.enter_context(serve(planned.cores - 1, policy=policy, processes=processes))
        except OSError as error:
            work.report.note(f"Without a jobserver, with {environ.get('MAX_JOBS')} jobs: {error}.")
            yield work
            return
        at_end.callback(_report_use, work, served)
        yield replace(work, environ=served.environment(environ))


def fewer_jobs(work: Work, jobs: int) -> Work:
    """Return the build with at most `jobs` jobs, by the jobserver and by MAX_JOBS."""
    planned = work.plan.jobserver
    if planned is not None:
        planned = replace(planned, cores=jobs)
    environ = {**work.env, "MAX_JOBS": str(jobs)}
    return replace(work, plan=replace(work.plan, jobserver=planned), environ=environ)


def without_jobserver(work: Work, lines: Iterable[str]) -> Work | None:
    """Return the build without a jobserver, if these lines show a program that cannot use one."""
    line = next((line for line in lines if _NOT_UNDERSTOOD in line), None)
    if line is None or work.plan.jobserver is None:
        return None
    number = work.env.get("MAX_JOBS")
    work.report.note(f"Continuing without a jobserver, with {number} jobs: {line.strip()[:200]}")
    return replace(work, plan=replace(work.plan, jobserver=None))


def jobs_at_once(work: Work) -> int:
    """Return how many jobs the build may run at once."""
    if work.plan.jobserver is not None:
        return work.plan.jobserver.cores
    jobs = work.env.get("MAX_JOBS", "")
    return int(jobs) if jobs.isdecimal() else 1


def _report_use(work: Work, served: Served) -> None:
    use = JobserverUse(
        most=served.most + 1, fewest=served.fewest + 1, held_seconds=round(served.held_seconds, 1)
    )
    work.ledger.note(jobserver=_add_use(work.ledger.manifest.jobserver, use))
    if use.held_seconds < _WORTH_TELLING and use.fewest == use.most:
        return
    waited = f", and compiles waited {use.held_seconds:.0f} s together" if use.held_seconds else ""
    work.report.note(f"Memory was short: the jobserver let {use.fewest} to {use.most} jobs run{waited}.")


def _add_use(before: JobserverUse | None, use: JobserverUse) -> JobserverUse:
    """Return the sum of the uses of two commands of a build, or of two attempts."""
    if before is None:
        return use
    return JobserverUse(
        most=max(before.most, use.most),
        fewest=min(before.fewest, use.fewest),
        held_seconds=round(before.held_seconds + use.held_seconds, 1),
    )


def _cannot_take(planned: Jobserver, build_dir: Path, environ: Mapping[str, str]) -> str:
    """Return why a build program cannot take tokens, or "": an old one would start jobs without limit.

    CMake starts the program that the tree was configured with; a route without CMake, the one on PATH.
    """
    path = process.search_path(environ)
    here = shutil.which(planned.program, path=path) or ""
    programs = {build_program(build_dir, planned.program, path), here} - {""}
    if not programs:
        return f"there is no {planned.program}"
    problems = (_too_old(planned, program, environ) for program in sorted(programs))
    return next(filter(None, problems), "")


def _too_old(planned: Jobserver, program: str, environ: Mapping[str, str]) -> str:
    captured = process.capture((program, "--version"), env=environ, timeout=_PATIENCE)
    match = _VERSION.search(captured.answer)
    if match is None:
        return f"{program} does not say its version"
    if not admits(planned.version, match[0]):
        return f"{program} is {planned.program} {match[0]}, and {planned.version} is needed"
    return ""


def build_processes(environ: Mapping[str, str]) -> Processes:
    """Return the processes of a build in this environment, including those of its sccache server."""
    return Processes(_CacheServer(environ))


class _CacheServer:
    """Finds the pid of the sccache server, which is restarted when a shared cache fails."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._asked = -_EVERY
        self._found: tuple[int, ...] = ()

    def __call__(self) -> tuple[int, ...]:
        """Return the pid; it is looked up at most every few seconds."""
        if time.monotonic() - self._asked >= _EVERY:
            pid = server_of(self._environ)
            self._asked = time.monotonic()
            self._found = () if pid is None else (pid,)
        return self._found
