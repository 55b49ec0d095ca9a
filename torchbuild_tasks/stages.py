"""The stages of a build as plain functions in one tuple, and the loop that times and records them.

Each stage takes the work as it stands and returns it as it then is; none decides
anything, the plan has. A stage that fails raises; the loop writes the record either way,
so the next plan starts from what really happened. Planning again is how a build resumes.
"""

from __future__ import annotations

import dataclasses
import os
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from torchbuild_tasks.catalog import Catalog
from torchbuild_tasks.core import env_files
from torchbuild_tasks.core.first_error import FirstErrorScanner
from torchbuild_tasks.core.outputs import patterns
from torchbuild_tasks.core.progress import ProgressParser
from torchbuild_tasks.effects import activate, files, made, process
from torchbuild_tasks.effects.ledger import LOG, LOGS, Ledger, now
from torchbuild_tasks.effects.log import last_write
from torchbuild_tasks.effects.search import stream_searched
from torchbuild_tasks.errors import BuildFailed, CleanRefused, EnvFileError, RequirementsError
from torchbuild_tasks.model import BuildPlan, Command, Facts
from torchbuild_tasks.record import VerifyReport, start_record
from torchbuild_tasks.request import BuildRequest
from torchbuild_tasks.verify.judge import require_passed
from torchbuild_tasks.verify.session import verify

UP_TO_DATE: Final = b"ninja: no work to do"


class Reporter(Protocol):
    """What a front offers to the stages: the only way anything is said or asked."""

    def stage(self, title: str) -> None: ...
    def note(self, text: str) -> None: ...
    def command(self, argv: tuple[str, ...]) -> None: ...
    def block(self, block: bytes) -> None: ...
    def removal(self, removal: made.Removal, uninstall: Command | None) -> None: ...
    def confirm(self, question: str) -> bool: ...


@dataclass(frozen=True, kw_only=True)
class Work:
    """One build under way. `environ` is None until the env file was sourced."""

    request: BuildRequest
    facts: Facts
    plan: BuildPlan
    catalog: Catalog
    report: Reporter
    ledger: Ledger
    environ: Mapping[str, str] | None = None
    up_to_date: bool = False
    verified: VerifyReport | None = None

    @property
    def root(self) -> Path:
        """The checkout."""
        return Path(self.plan.source)

    @property
    def build_dir(self) -> Path:
        """The build tree."""
        return Path(self.plan.build_dir)


def make_fresh(work: Work) -> Work:
    """Bring an existing build tree to where the changed inputs really reach it."""
    needs = work.plan.freshness.needs
    if needs == "reconfigure":
        work.ledger.open()  # before the first change, so that what is set aside counts as made by us
        cache = work.build_dir / "CMakeCache.txt"
        if cache.exists():
            cache.replace(cache.with_suffix(".txt.old"))
        work.report.note(f"CMake runs anew: {work.plan.freshness.because}")
    elif needs == "clean":
        _clean_for(work)
    return work


def prepare_python(work: Work) -> Work:
    """Make the venv that gets torch, and install what the build imports."""
    environment = work.plan.environment
    if environment.create and not Path(environment.python).exists():
        _install(work, environment.create)
    changes = [change for change in (environment.remove, environment.install) if change]
    if environment.foreign and changes and not _agreed(work, _question(environment.python, changes)):
        raise RequirementsError(
            f"{environment.python} has to be changed for this build, and it is an environment of yours.",
            looked=tuple(f"{shlex.join(change.argv)}  ({change.because})" for change in changes),
            next_step="Do that yourself, or say --yes, or leave --python out to get a venv in the checkout.",
        )
    for change in changes:
        _install(work, change)
    return work


def write_env_files(work: Work) -> Work:
    """Write the env files whose text the plan holds; an unchanged file is left alone."""
    for env_file in work.plan.env_files:
        data = env_files.encode(env_file.shell, env_file.text)
        path = Path(env_file.path)
        if not (path.is_file() and path.read_bytes() == data):
            files.write_atomic(path, data, error=EnvFileError)
    return work


def source_env_file(work: Work) -> Work:
    """Source the written file once; everything from here on runs in that environment."""
    own = work.plan.env_files[0]
    environ = activate.activate(Path(own.path), environ=os.environ)
    return dataclasses.replace(work, environ=environ)


def compile_tree(work: Work) -> Work:
    """Run the build, unless Ninja says that there is nothing to do."""
    if work.plan.quick and _up_to_date(work, work.plan.quick):
        work.report.note("Up to date: Ninja finds nothing to compile or link.")
        return dataclasses.replace(work, up_to_date=True)
    work.ledger.open()
    scanner = FirstErrorScanner()
    rc = _stream(work, work.plan.compile, scanner)
    if rc == 0:
        return work
    block = scanner.found
    raise BuildFailed(
        f"The build failed: {' '.join(work.plan.compile.argv)} ended with exit code {rc}.",
        looked=block.lines if block else ("No line of it looks like an error. Its last ones:", *scanner.last),
        next_step=_where(work, block.line_number if block else None),
    )


def install_wheel(work: Work) -> Work:
    """In wheel mode: install the new wheel where it is verified, dependencies after it."""
    if work.plan.mode != "wheel":
        return work
    wheels = sorted((work.root / "dist").glob("*.whl"), key=lambda path: path.stat().st_mtime)
    if not wheels:
        raise BuildFailed("The build ended well but left no wheel in dist/.", next_step=_where(work, None))
    python = work.plan.environment.python
    work.report.note(f"wheel: {wheels[-1]}")
    for options in (("--force-reinstall", "--no-deps"), ()):
        argv = (python, "-m", "pip", "install", "--disable-pip-version-check", *options, str(wheels[-1]))
        _install(work, Command(argv=argv, cwd=work.plan.source, because="the wheel is verified as installed"))
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


STAGES: Final[tuple[tuple[str, Callable[[Work], Work]], ...]] = (
    ("check what is there", make_fresh),
    ("prepare Python", prepare_python),
    ("write env files", write_env_files),
    ("source the env file", source_env_file),
    ("compile", compile_tree),
    ("install the wheel", install_wheel),
    ("verify", verify_torch),
)


def run_stages(
    request: BuildRequest, facts: Facts, plan: BuildPlan, catalog: Catalog, report: Reporter
) -> VerifyReport | None:
    """Run every stage, time it, and keep the record in the build tree true at each step.

    Returns:
        The verification's report; None when nothing had to be built or verified.

    Raises:
        TorchbuildError: the error of the stage that failed; the record says which.
        VerifyFailed: all stages ran and a check failed.
    """
    root, build_dir = Path(plan.source), Path(plan.build_dir)
    ledger = Ledger(
        start_record(request, facts, plan, started=now()), root, build_dir, patterns(catalog, plan.era)
    )
    work = Work(request=request, facts=facts, plan=plan, catalog=catalog, report=report, ledger=ledger)
    with ledger:
        for title, stage in STAGES:
            report.stage(title)
            with ledger.stage(title):
                work = stage(work)
    require_passed(work.verified, f"Every check is in the record: {ledger.record_path}")
    return work.verified


def _clean_for(work: Work) -> None:
    """Clean because an input demands it; deleting hours of work is asked for first."""
    because = work.plan.freshness.because
    asked = work.request.clean or _agreed(work, f"{because}. Remove what the last build made?")
    if not asked:
        raise CleanRefused(
            f"The build tree has to be made anew: {because}.",
            next_step="Say --clean (or --yes) to remove what the last build made and go on.",
        )
    outputs = patterns(work.catalog, work.plan.era)
    log_time = last_write(work.root / files.STATE_DIR / LOGS, LOG)
    removal = made.plan_removal(work.root, work.build_dir, outputs, log_time=log_time)
    done = made.remove(removal)
    if (work.build_dir / "CMakeCache.txt").exists():
        raise CleanRefused(
            f"The build tree has to be made anew ({because}), and this tool did not make it.",
            looked=tuple(f"{path}: {reason}" for path, reason in removal.kept[:10]),
            next_step=f"Remove it yourself if nothing in it is yours: rm -r {work.build_dir}",
        )
    work.report.note(f"removed {done.count} files of the last build ({done.bytes >> 20} MiB)")


def _question(python: str, changes: list[Command]) -> str:
    listed = "".join(f"  {shlex.join(change.argv)}\n" for change in changes)
    return f"This changes {python}:\n{listed}Go on?"


def _agreed(work: Work, question: str) -> bool:
    return work.request.yes or work.report.confirm(question)


def _install(work: Work, command: Command) -> None:
    """Run a pip or venv command in the user's own environment, into the same log."""
    tail: list[str] = []

    def keep(block: bytes) -> None:
        tail.extend(line for line in block.decode(errors="replace").split("\n") if line.strip())
        del tail[:-12]
        work.report.block(block)

    work.report.command(command.argv)
    rc = process.stream(command.argv, env=os.environ, cwd=command.cwd, log=work.ledger.log, on_block=keep)
    if rc != 0:
        raise RequirementsError(
            f"{' '.join(command.argv)} ended with exit code {rc}.",
            looked=tuple(tail),
            next_step=f"The whole output is in {work.ledger.log.path}. Without network, point pip at a "
            "folder of wheels: PIP_NO_INDEX=1 PIP_FIND_LINKS=folder",
        )


def _stream(work: Work, command: Command, scanner: FirstErrorScanner) -> int:
    work.report.command(command.argv)
    return stream_searched(
        command.argv,
        env=work.environ,
        cwd=command.cwd,
        log=work.ledger.log,
        on_block=work.report.block,
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


def _where(work: Work, line: int | None) -> str:
    at = f", line {line}" if line else ""
    path, problem = work.ledger.log.path, work.ledger.log.problem
    at += f" (cut short: {problem})" if problem else ""
    return f"The whole log: {path}{at}\nRun the same command again to go on from where it stopped."
