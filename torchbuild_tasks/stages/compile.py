"""The stages that make torch and prove it: compile, install the wheel, verify."""

from __future__ import annotations

import dataclasses
import os
import time
from typing import Final

from torchbuild_tasks.core.first_error import FirstErrorScanner
from torchbuild_tasks.core.out_of_memory import killed_for_memory, lowered
from torchbuild_tasks.core.progress import ProgressParser
from torchbuild_tasks.core.step_history import compiler_of
from torchbuild_tasks.effects import process
from torchbuild_tasks.effects.ledger import now
from torchbuild_tasks.effects.search import stream_searched
from torchbuild_tasks.errors import BuildFailed
from torchbuild_tasks.model import Command
from torchbuild_tasks.stages.caching import begin_cache
from torchbuild_tasks.stages.history import Pace, keep, recall
from torchbuild_tasks.stages.jobs import fewer_jobs, jobs_at_once, jobserver, without_jobserver
from torchbuild_tasks.stages.monitor import monitored
from torchbuild_tasks.stages.prepare import install
from torchbuild_tasks.stages.work import Work, where
from torchbuild_tasks.verify.session import verify

UP_TO_DATE: Final = b"ninja: no work to do"
PACE_EVERY: Final = 0.5


def compile_tree(work: Work) -> Work:
    """Run the build, unless Ninja says that there is nothing to do."""
    if work.plan.quick and _up_to_date(work, work.plan.quick):
        work.report.note("Up to date: Ninja finds nothing to compile or link.")
        return dataclasses.replace(work, up_to_date=True)
    if work.plan.quick:
        work = begin_cache(work)
    work.ledger.open()
    attempt = 1
    while True:
        scanner = FirstErrorScanner()
        rc = _build(work, scanner)
        if rc == 0:
            return work
        lines = scanner.found.lines if scanner.found else scanner.last
        if again := without_jobserver(work, (*lines, *scanner.last)):
            work = again
            continue
        killed = killed_for_memory(lines, rc)
        # The pool of heavy kernels stands in CMake's cache, so the jobs are what can be lowered in between.
        fewer = lowered(jobs_at_once(work), None, killed, attempt) if killed else None
        if fewer is None:
            raise _failed(work, rc, scanner)
        work.report.note(fewer.because)
        work, attempt = fewer_jobs(work, fewer.jobs), attempt + 1


def _build(work: Work, scanner: FirstErrorScanner) -> int:
    """Run the build once, and keep the times of its steps for the next one."""
    compiler = compiler_of({choice.name: choice.value for choice in work.plan.choices})
    pace = Pace(work.build_dir, recall(work.fetching.store, work.root, compiler))
    began = time.time()
    with jobserver(work) as served, monitored(served, pace):
        rc = _stream(served, work.plan.compile, scanner, pace)
    problem = keep(work.fetching.store, work.root, compiler, work.build_dir, started=began, finished=now())
    if problem:
        work.report.note(problem)
    return rc


def _failed(work: Work, rc: int, scanner: FirstErrorScanner) -> BuildFailed:
    block = scanner.found
    return BuildFailed(
        f"The build failed: {' '.join(work.plan.compile.argv)} ended with exit code {rc}.",
        looked=block.lines if block else ("No line of it looks like an error. Its last ones:", *scanner.last),
        next_step=where(work, block.line_number if block else None),
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
    """Hold the built torch to what the plan promised, unless nothing was built since it passed."""
    previous = work.facts.tree.previous
    if work.up_to_date and previous is not None and previous.verified:
        work.report.note(f"Verified after the build of {previous.finished}; nothing was built since.")
        return work
    report = verify(
        python=work.plan.environment.python,
        expectations=work.plan.expectations,
        environ=work.environ or os.environ,
    )
    work.ledger.open()
    work.ledger.verified = report
    return dataclasses.replace(work, verified=report)


def _stream(work: Work, command: Command, scanner: FirstErrorScanner, pace: Pace) -> int:
    due = 0.0

    def tell(block: bytes) -> None:
        nonlocal due
        if time.monotonic() >= due:  # reading every block twice would cost what streaming does
            due = time.monotonic() + PACE_EVERY
            pace.seen(block)
        work.report.block(block)

    work.report.command(command.argv)
    return stream_searched(
        command.argv,
        env=work.environ,
        cwd=command.cwd,
        log=work.ledger.log,
        on_block=tell,
        scanner=scanner,
    )


def _up_to_date(work: Work, command: Command) -> bool:
    """Whether Ninja would compile, link or configure nothing.

    Steps that run at every build, such as PyTorch's writing of torch/version.py, are run
    and do not count.
    """
    dry = process.capture((*command.argv, "-n"), env=work.environ, cwd=command.cwd)
    if dry.rc != 0 or UP_TO_DATE in dry.stdout:
        return dry.rc == 0
    parser = ProgressParser()
    steps = [parser.feed(line) for line in dry.stdout.decode(errors="replace").splitlines()]
    if any(step is not None and step.phase != "codegen" for step in steps):
        return False
    return process.capture(command.argv, env=work.environ, cwd=command.cwd).rc == 0
