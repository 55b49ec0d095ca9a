"""The stages that make torch and prove it: compile, install the wheel, verify."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from torchbuild_tasks.build.history import Pace, keep, recall
from torchbuild_tasks.build.install import rules
from torchbuild_tasks.build.install.inner_loop import first_route, next_route, still_open
from torchbuild_tasks.build.jobserver.stage import fewer_jobs, jobs_at_once, jobserver, without_jobserver
from torchbuild_tasks.build.ledger import now
from torchbuild_tasks.build.monitor import monitored
from torchbuild_tasks.build.out_of_memory import killed_for_memory, lowered
from torchbuild_tasks.build.prepare import install
from torchbuild_tasks.build.work import Work, where
from torchbuild_tasks.errors import BuildFailed
from torchbuild_tasks.features.cache.act import begin_cache
from torchbuild_tasks.features.diagnosis.act import FirstError, diagnose_build, log_search, stream_searched
from torchbuild_tasks.features.manifest.act import note_source
from torchbuild_tasks.model import Command
from torchbuild_tasks.ninja.step_times import compiler_of
from torchbuild_tasks.values import replace
from torchbuild_tasks.verify.session import ALWAYS, verify
from torchbuild_tasks.verify.torch_probe import COMPANION_CHECKS

if TYPE_CHECKING:
    from torchbuild_tasks.features.diagnosis.act import Search
    from torchbuild_tasks.features.diagnosis.scan import LogScanner

PACE_EVERY: Final = 0.5
ALL_CHECKS: Final = "`verify` makes all checks."


def compile_tree(work: Work) -> Work:
    """Run the build on the shortest correct way, unless nothing is to be done."""
    if work.request.target:
        return work  # that was a stage of its own
    route = first_route(work)
    if route is None:
        work.report.note("Up to date: Ninja finds nothing to compile or link, and all is in place.")
        return replace(work, up_to_date=True)
    if work.plan.way.name == "install":
        work = begin_cache(work)
        route = still_open(work, route)
    work.ledger.open()
    rules.note(work.root, work.build_dir)
    went_round = True
    while route is not None:
        went_round = went_round and route.round_it
        for command in route.commands:
            work = run_build(work, command)
        route = next_route(work, route)
    return replace(work, went_round=went_round)


def run_build(work: Work, command: Command) -> Work:
    """Run one command of the build; one that memory ends is made again with fewer jobs.

    Raises:
        BuildFailed: it failed.
    """
    work.ledger.ran(command, work.environ)
    note_source(work)
    attempt = 1
    while True:
        rc, scanner = _build(work, command)
        if scanner is None:
            return work
        lines = scanner.found.text if scanner.found else scanner.last
        if again := without_jobserver(work, (*lines, *scanner.last)):
            work = again
            continue
        killed = killed_for_memory(lines, rc)
        # The pool of heavy kernels stands in CMake's cache, so the jobs are what can be lowered in between.
        fewer = lowered(jobs_at_once(work), None, killed, attempt) if killed else None
        if fewer is None:
            raise failed(work, command, rc, scanner)
        work.report.note(fewer.because)
        work, attempt = fewer_jobs(work, fewer.jobs), attempt + 1


def _build(work: Work, command: Command) -> tuple[int, LogScanner | None]:
    """Run the build once, and keep the times of its steps for the next one; the scanner when it failed."""
    compiler = compiler_of({choice.name: choice.value for choice in work.plan.choices})
    pace = Pace(work.build_dir, recall(work.fetching.store, work.root, compiler))
    search = log_search(work)
    began = time.time()
    with jobserver(work) as served, monitored(served, pace, FirstError(work, search)):
        ended = _stream(served, _with_jobs(command, served.environ or os.environ), pace, search)
    problem = keep(work.fetching.store, work.root, compiler, work.build_dir, started=began, finished=now())
    if problem:
        work.report.note(problem)
    return ended


def _with_jobs(command: Command, environ: Mapping[str, str]) -> Command:
    """Ninja does not read MAX_JOBS, from which the front end takes its jobs."""
    jobs = environ.get("MAX_JOBS", "")
    if command.argv[0] != "ninja" or not jobs.isdecimal():
        return command
    return replace(command, argv=(*command.argv, "-j", jobs))


def failed(work: Work, command: Command, rc: int, scanner: LogScanner) -> BuildFailed:
    """The error of a command that failed, with the first error of its log and what explains it."""
    reading = diagnose_build(work, scanner)
    last = ("No line of it looks like an error. Its last ones:", *scanner.last)
    return BuildFailed(
        f"The build failed: {' '.join(command.argv)} ended with exit code {rc}.",
        looked=reading.error_block or last,
        diagnoses=reading.diagnoses,
        next_step=where(work, reading.line_number or None),
    )


def install_wheel(work: Work) -> Work:
    """In wheel mode: install the new wheel where it is verified, dependencies after it."""
    if work.plan.mode != "wheel":
        return work
    wheels = sorted((work.root / "dist").glob("*.whl"), key=lambda path: path.stat().st_mtime)
    if not wheels:
        raise BuildFailed("The build ended well but left no wheel in dist/.", next_step=where(work, None))
    python = work.plan.environment.python
    work.report.note(f"wheel: {wheels[-1]}")
    for options in (("--force-reinstall", "--no-deps"), ()):
        argv = (python, "-m", "pip", "install", "--disable-pip-version-check", *options, str(wheels[-1]))
        install(work, Command(argv=argv, cwd=work.plan.source, because="the wheel is verified as installed"))
    return work


def verify_torch(work: Work) -> Work:
    """Hold the built torch to what the plan promised, unless nothing was built since it passed.

    After an edit that went round the front end, whether torch imports and is the right one is
    enough: all checks take many times what the edit took. What was left out is said.
    """
    if work.request.target:
        return work
    previous = work.facts.tree.previous
    if work.up_to_date and previous is not None and previous.verified:
        since = f"after the build of {previous.finished}; nothing was built since."
        work.report.note(f"Verified {since}" if not previous.left_out else f"Imported {since} {ALL_CHECKS}")
        return work
    expectations = tuple(each for each in work.plan.expectations if each.check not in COMPANION_CHECKS)
    kept = tuple(each for each in expectations if each.check in ALWAYS) if work.went_round else expectations
    report = verify(
        python=work.plan.environment.python,
        expectations=kept,
        environ=work.environ or os.environ,
    )
    left_out = tuple(dict.fromkeys(each.check for each in expectations if each not in kept))
    if left_out:
        work.report.note(f"Imported, not computed with. Left out: {', '.join(left_out)}. {ALL_CHECKS}")
    work.ledger.open()
    report = replace(report, left_out=left_out)
    work.ledger.note(verify=report)
    return replace(work, verified=report)


def _stream(
    work: Work, command: Command, pace: Pace, search: Search[LogScanner]
) -> tuple[int, LogScanner | None]:
    due = 0.0

    def tell(block: bytes) -> None:
        nonlocal due
        if time.monotonic() >= due:  # reading every block twice would cost what streaming does
            due = time.monotonic() + PACE_EVERY
            pace.seen(block)
        work.report.block(block)

    work.report.command(command.argv)
    return stream_searched(command.argv, env=work.environ, cwd=command.cwd, on_block=tell, search=search)
