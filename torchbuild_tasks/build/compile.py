"""Build torch: choose the commands, run them, report a failure, and record the times of the steps.

`build_torch` chooses between Ninja with CMake's own install and PyTorch's Python front end, and runs the
commands of that route. `run_build` runs one command again with less where memory or an old GNU make ends it,
or as it was where a compile lost sccache's server.
`_run_once` runs it with the jobserver and the monitor, and keeps the times of its steps.

Modules that only a compiling build needs are imported inside functions, so that a no-op build starts fast.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from torchbuild_tasks.build.compiler_cache import begin_cache
from torchbuild_tasks.build.install import leftovers
from torchbuild_tasks.build.install.inner_loop import choose_route, confirm_route, next_route
from torchbuild_tasks.build.ledger import now
from torchbuild_tasks.build.work import Work, where_to_read
from torchbuild_tasks.errors import BuildFailed
from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.facts.tree import look_at_cache
from torchbuild_tasks.model import Command
from torchbuild_tasks.plan.fit import FULL
from torchbuild_tasks.system.files import free_bytes
from torchbuild_tasks.values import replace

if TYPE_CHECKING:
    from torchbuild_tasks.build.lost_cache import Checks
    from torchbuild_tasks.features.diagnosis.scan import LogScanner

# Seconds between two updates of the time estimate: parsing every block of output would double the cost
# of streaming it.
_PACE_EVERY: Final = 0.5


def build_torch(work: Work) -> Work:
    """Run the build by the shortest correct route, unless nothing is to be done.

    Raises:
        BuildFailed: a command of it failed.
    """
    if work.request.target:
        return work  # `build_target` has built it
    route = choose_route(work)
    if route is None:
        text = "Up to date: Ninja finds nothing to compile or link, and all is in place."
        work.report.note(text, alone=True)
        return replace(work, up_to_date=True)
    _require_room(work)
    if work.plan.way.name == "install":  # else the stage before has started it
        work = begin_cache(work)
        route = confirm_route(work, route)
    work.ledger.open()
    if route.front_end and work.plan.era == "scikit-build-core":
        from torchbuild_tasks.build.clean import set_foreign_files_aside

        set_foreign_files_aside(work)
    leftovers.note_installed(work.root, work.build_dir)
    front_end_skipped = True
    while route is not None:
        front_end_skipped = front_end_skipped and not route.front_end
        for command in route.commands:
            work = run_build(work, command)
        route = next_route(work, route)
    _note_cmake(work)
    return replace(work, front_end_skipped=front_end_skipped)


def _require_room(work: Work) -> None:
    """Refuse to begin on a disk that is full: only now is it known that a source was edited since.

    Raises:
        BuildFailed: nothing fits there.
    """
    free = free_bytes(work.build_dir)
    if free is not None and free < FULL:
        raise BuildFailed(
            f"{work.build_dir} is on a full disk ({free >> 10} KiB free), and there is something to compile, "
            "link or install. Nothing was begun.",
            next_step="Free some space there, and run the same command again.",
        )


def _note_cmake(work: Work) -> None:
    """Record the CMake that has configured the tree, which may have been installed after the plan."""
    cache = look_at_cache(Probe(environ=work.env), str(work.build_dir))
    if cache and cache.cmake:
        work.ledger.note(inputs={**work.ledger.manifest.inputs, "cmake": cache.cmake})


def run_build(work: Work, command: Command) -> Work:
    """Run one command of the build; repeat it if memory ran out (with fewer jobs) or sccache's server ended.

    Returns:
        The work, with the number of jobs and the jobserver that the successful run had.

    Raises:
        BuildFailed: it failed.
    """
    from torchbuild_tasks.build.jobserver.stage import fewer_jobs, jobs_at_once, without_jobserver
    from torchbuild_tasks.build.lost_cache import ATTEMPTS, Checks
    from torchbuild_tasks.build.out_of_memory import find_killed, lower_jobs
    from torchbuild_tasks.features.manifest.act import note_source

    work.ledger.note_command(command, work.environ)
    note_source(work)
    attempt = 1
    losses = 0
    while True:
        checks = Checks(work.build_dir)
        rc, scanner = _run_once(work, command)
        if losses < ATTEMPTS and (lost := _find_lost(work, command, scanner, checks)):
            losses += 1
            which = f"time {losses} of {ATTEMPTS}"
            work.report.note(f"sccache's server was lost ({lost}); going on from there, {which}.")
            continue
        if scanner is None:
            return work
        lines = scanner.found.text if scanner.found else scanner.last
        if again := without_jobserver(work, (*lines, *scanner.last)):
            work = again
            continue
        killed = find_killed(lines, rc)
        fewer = lower_jobs(jobs_at_once(work), killed, attempt) if killed else None
        if fewer is None:
            raise build_error(work, command, rc, scanner)
        work.report.note(fewer.because)
        work = fewer_jobs(work, fewer.jobs)
        attempt += 1


def _find_lost(work: Work, command: Command, scanner: LogScanner | None, checks: Checks) -> str:
    """Return the line by which a compile says that sccache's server was lost; "" for none.

    After a check of CMake has said it, CMake's cache is set aside, because it holds a wrong answer.
    """
    from torchbuild_tasks.build.clean import set_cmake_cache_aside
    from torchbuild_tasks.build.lost_cache import find_lost, uses_sccache

    if not uses_sccache(work):
        return ""
    if command == work.plan.compile and (lost := checks.find_lost()):
        set_cmake_cache_aside(work)
        return lost
    if scanner is None:
        return ""
    return find_lost((*(scanner.found.text if scanner.found else ()), *scanner.last))


def _run_once(work: Work, command: Command) -> tuple[int, LogScanner | None]:
    """Run the command with the jobserver and the monitor, and keep the times of its steps for the next build.

    Returns:
        The exit code; after a failure also the scanner, which has read all that the log got.
    """
    from torchbuild_tasks.build.history import Pace, keep, recall
    from torchbuild_tasks.build.jobserver.stage import jobserver
    from torchbuild_tasks.build.monitor import monitor_build
    from torchbuild_tasks.features.diagnosis.act import FirstError, log_search, stream_into_log
    from torchbuild_tasks.ninja.step_times import compiler_of

    store = work.fetching.store
    compiler = compiler_of(work.plan.decided)
    known = recall(store, work.root, compiler)
    pace = Pace(work.build_dir, known, work.catalog.step_cost, target=work.request.target or "")
    search = log_search(work)
    due = 0.0

    def on_block(block: bytes) -> None:
        nonlocal due
        if time.monotonic() >= due:
            due = time.monotonic() + _PACE_EVERY
            pace.read_output(block)
        work.report.block(block)

    began = time.time()
    with jobserver(work, pace.to_come) as served, monitor_build(served, pace, FirstError(work, search)):
        argv = _with_jobs(command, served.env.get("MAX_JOBS", ""))
        work.report.command(argv)
        ended = stream_into_log(argv, env=served.environ, cwd=command.cwd, on_block=on_block, search=search)
        if ended[1] is None:
            pace.finish()
    problem = keep(store, work.root, compiler, work.build_dir, started=began, finished=now())
    if problem:
        work.report.note(problem)
    return ended


def _with_jobs(command: Command, jobs: str) -> tuple[str, ...]:
    """Return the command line: Ninja does not read MAX_JOBS, from which the front end takes its jobs."""
    if not PurePath(command.argv[0]).name.startswith("ninja") or not jobs.isdecimal():
        return command.argv
    return (*command.argv, "-j", jobs)


def run_logged(work: Work, command: Command, environ: Mapping[str, str]) -> None:
    """Run a command with its output in the log of the build, without jobserver and monitor.

    Raises:
        BuildFailed: it failed.
    """
    from torchbuild_tasks.features.diagnosis.act import log_search, stream_into_log

    work.report.command(command.argv)
    rc, scanner = stream_into_log(
        command.argv, env=environ, cwd=command.cwd, on_block=work.report.block, search=log_search(work)
    )
    if scanner is not None:
        raise build_error(work, command, rc, scanner)


def build_error(work: Work, command: Command, rc: int, scanner: LogScanner) -> BuildFailed:
    """Return the error of a command that failed: its log's first error, and what explains it."""
    from torchbuild_tasks.features.diagnosis.act import diagnose_build

    reading = diagnose_build(work, scanner)
    last = ("No line of it looks like an error. Its last ones:", *scanner.last)
    from torchbuild_tasks.text.show import shell_text

    return BuildFailed(
        f"The build failed: {shell_text(command.argv)} ended with exit code {rc}.",
        looked=reading.error_block or last,
        diagnoses=reading.diagnoses,
        next_step=where_to_read(work, reading.line_number or None),
    )
