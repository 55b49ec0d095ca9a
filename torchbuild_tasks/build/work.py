"""Runs a command outside of a build: what it says is shown, its last lines are kept for the error."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Final, Protocol

import msgspec

from torchbuild_tasks.build import owned
from torchbuild_tasks.build.ledger import Ledger
from torchbuild_tasks.catalog import Catalog
from torchbuild_tasks.model import BuildPlan, Command, Facts
from torchbuild_tasks.model.record import VerifyReport
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.system import process
from torchbuild_tasks.system.net.client import Net
from torchbuild_tasks.system.process import Sink
from torchbuild_tasks.values import repr_without


class Fetching(msgspec.Struct, frozen=True, kw_only=True):
    """How helpers are fetched: where they are kept, what pins them, how the network is reached.

    `git_mirrors` are pairs of beginnings of git addresses: what is written, and what is asked instead.
    """

    store: Path
    lock_file: Path
    net: Net
    require_hashes: bool
    git_mirrors: tuple[tuple[str, str], ...] = ()


class Reporter(Protocol):
    """What a front offers to the stages: the only way anything is said or asked."""

    def stage(self, title: str) -> None: ...
    def note(self, text: str) -> None: ...
    def command(self, argv: tuple[str, ...]) -> None: ...
    def block(self, block: bytes) -> None: ...
    def left(self, seconds: float | None) -> None: ...
    def transfer(self, name: str, done: int, total: int | None) -> None: ...
    def removal(self, removal: owned.Removal, uninstall: Command | None) -> None: ...
    def confirm(self, question: str) -> bool: ...
    def stream(self) -> Sink: ...


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """One build under way. `environ` is None until the env file was sourced.

    `cache_words` is what --cache said, with the passwords that the plan does not hold. What runs beside
    the build ends with `at_end`.
    `went_round` is true when all that was done was done without the Python front end.
    """

    request: BuildRequest
    facts: Facts
    plan: BuildPlan
    catalog: Catalog
    report: Reporter
    ledger: Ledger
    fetching: Fetching
    cache_words: str = ""
    at_end: ExitStack = msgspec.field(default_factory=ExitStack)
    environ: Mapping[str, str] | None = None
    up_to_date: bool = False
    went_round: bool = False
    verified: VerifyReport | None = None

    @property
    def root(self) -> Path:
        """The checkout."""
        return Path(self.plan.source)

    @property
    def build_dir(self) -> Path:
        """The build tree."""
        return Path(self.plan.build_dir)

    def __repr__(self) -> str:
        return repr_without(self, "cache_words")


def agreed(work: Work, question: str) -> bool:
    """Whether the user lets this be done: by --yes, or when asked."""
    return work.request.yes or work.report.confirm(question)


def where(work: Work, line: int | None) -> str:
    """Where to read on, and how to go on."""
    at = f", line {line}" if line else ""
    path, problem = work.ledger.log.path, work.ledger.log.problem
    at += f" (cut short: {problem})" if problem else ""
    return f"The whole log: {path}{at}\nRun the same command again to go on from where it stopped."


# ----------------


_LINES: Final = 12
# Debian's packages, and git where a login is missing, would ask somebody.
_ENVIRON: Final = {"DEBIAN_FRONTEND": "noninteractive", "GIT_TERMINAL_PROMPT": "0"}


class _Tail:
    """The last of what a program said."""

    def __init__(self) -> None:
        self.data = b""

    def write(self, data: bytes, /) -> None:
        self.data = (self.data + data)[-8192:]


def run_shown(command: Command, report: Reporter) -> tuple[int, tuple[str, ...]]:
    """Run it to its end; its exit code, and the last lines of what it said."""
    report.command(command.argv)
    tail = _Tail()
    environ = {**os.environ, **_ENVIRON}
    rc = process.stream(command.argv, env=environ, cwd=command.cwd, log=tail, on_block=report.block)
    return rc, tuple(tail.data.decode("utf-8", "replace").splitlines()[-_LINES:])
