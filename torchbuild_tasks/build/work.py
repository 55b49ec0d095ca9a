"""The work, which stages pass on: the plan, the reporter, the ledger, and how far the build is."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Final, Protocol

import msgspec

from torchbuild_tasks.build.ledger import Ledger
from torchbuild_tasks.catalog import Catalog
from torchbuild_tasks.model import BuildPlan, Command, Facts
from torchbuild_tasks.model.record import Removal, VerifyReport
from torchbuild_tasks.model.wheel import Wheel
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.system import process
from torchbuild_tasks.system.git.run import git_environment_of
from torchbuild_tasks.system.net.client import Net
from torchbuild_tasks.system.process import Sink
from torchbuild_tasks.values import repr_without


class Fetching(msgspec.Struct, frozen=True, kw_only=True):
    """How helpers are fetched: the store, the lock file with their hashes, the network.

    `git_mirrors` are pairs of prefixes of git addresses: the original, and its replacement.
    """

    store: Path
    lock_file: Path
    net: Net
    require_hashes: bool
    allow_http: bool = False
    git_mirrors: tuple[tuple[str, str], ...] = ()


class Reporter(Protocol):
    """The interface of a front for the stages: they show text and ask questions only through it."""

    def stage(self, title: str) -> None: ...
    def note(self, text: str, *, alone: bool = False) -> None: ...
    def command(self, argv: tuple[str, ...]) -> None: ...
    def block(self, block: bytes) -> None: ...
    def left(self, seconds: float | None, spread: float = 1.0) -> None: ...
    def transfer(self, name: str, done: int, total: int | None) -> None: ...
    def removal(self, removal: Removal) -> None: ...
    def confirm(self, question: str) -> bool: ...
    def stream(self) -> Sink: ...
    def inner(self, title: str) -> Reporter: ...


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """A plan with the question that it answers: what a build is, whether it runs or not."""

    question: Question
    plan: BuildPlan

    @property
    def request(self) -> BuildRequest:
        """The flags."""
        return self.question.request

    @property
    def facts(self) -> Facts:
        """The machine and the tree, as they were before the build."""
        return self.question.facts

    @property
    def catalog(self) -> Catalog:
        """The rows of data."""
        return self.question.catalog

    @property
    def root(self) -> Path:
        """The checkout."""
        return Path(self.plan.source)

    @property
    def build_dir(self) -> Path:
        """The build tree."""
        return Path(self.plan.build_dir)


class Work(Planned, frozen=True, kw_only=True):
    """One running build: its plan, the services that it uses, and how far it is.

    Attributes:
        report: the front, which shows the progress.
        ledger: the log, the manifest and the list of what the build writes.
        fetching: how helpers are fetched.
        cache_addresses: the words of --cache, with the passwords that the plan does not hold.
        background: what runs during the compile, such as the cache's server; closed when it is over.
        environ: for the commands of the build; None until the env file was sourced.
        up_to_date: Ninja found nothing to do, and everything is installed.
        front_end_skipped: all that was done was done without the Python front end.
        verified: what the verification found; None when nothing was verified.
        wheel: whose libraries are taken, with --from-wheel.
    """

    report: Reporter
    ledger: Ledger
    fetching: Fetching
    cache_addresses: str = ""
    background: ExitStack = msgspec.field(default_factory=ExitStack)
    environ: Mapping[str, str] | None = None
    up_to_date: bool = False
    front_end_skipped: bool = False
    verified: VerifyReport | None = None
    wheel: Wheel | None = None

    @property
    def env(self) -> Mapping[str, str]:
        """The environment for commands: that of the env file, or ours before it was sourced."""
        return os.environ if self.environ is None else self.environ

    @property
    def ninja(self) -> tuple[str, ...]:
        """The start of every Ninja command: the named or the found program and the build folder."""
        return (self.env.get("CMAKE_MAKE_PROGRAM") or "ninja", "-C", str(self.build_dir))

    def __repr__(self) -> str:
        return repr_without(self, "cache_addresses")


def is_agreed(work: Work, question: str) -> bool:
    """Say whether the user agrees: by --yes, or when asked."""
    return work.request.yes or work.report.confirm(question)


def built_wheel(root: Path) -> Path | None:
    """Return the newest wheel of a checkout; None where there is none."""
    return max((root / "dist").glob("*.whl"), key=lambda path: path.stat().st_mtime, default=None)


def where_to_read(work: Work, line: int | None) -> str:
    """Return the lines that name the log and the next step."""
    at = f", line {line}" if line else ""
    path = work.ledger.log.path
    problem = work.ledger.log.problem
    at += f" (cut short: {problem})" if problem else ""
    on = "When that is fixed, the same command continues where it stopped."
    return f"The whole log: {path}{at}\n{on}"


_LINES: Final = 12
# Debian's packages, and git without a login, would ask and wait for an answer.
_ENVIRON: Final = {"DEBIAN_FRONTEND": "noninteractive", "GIT_TERMINAL_PROMPT": "0"}


def run_shown(command: Command, report: Reporter) -> tuple[int, tuple[str, ...]]:
    """Run a command outside of a build; return its exit code and the last lines of its output."""
    report.command(command.argv)
    tail = process.Tail(report.block, _LINES)
    about_git = command.argv[0] == "git"
    below = command.argv[command.argv.index("--") + 1 :] if "submodule" in command.argv else ()
    environ = {**(git_environment_of(Path(command.cwd), below) if about_git else os.environ), **_ENVIRON}
    rc = process.stream(command.argv, env=environ, cwd=command.cwd, on_block=tail)
    return rc, tail.lines
