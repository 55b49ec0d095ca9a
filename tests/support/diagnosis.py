"""The rows, a machine and the labelled logs, for tests that read logs."""

from __future__ import annotations

import functools
import tomllib
from pathlib import Path

import msgspec

from tests.support.machines import linux_facts, plan_of
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.catalog.failures import FailureBook
from torchbuild_tasks.features.diagnosis.act import diagnose_log
from torchbuild_tasks.features.diagnosis.choose import read_log
from torchbuild_tasks.features.diagnosis.machine import Machine
from torchbuild_tasks.features.diagnosis.scan import LogScanner
from torchbuild_tasks.model import Reading

TESTS = Path(__file__).parent.parent
FOLDERS = (TESTS / "logs", TESTS / "ninja/logs")


class Label(msgspec.Struct, frozen=True, kw_only=True):
    """The expected diagnosis of a log: the line of its first real error (0 for none), and its row.

    `kind` is that of data/kinds.toml, `component` whose its subject is; "" where that was not asked.
    `also` are other lines that are as good an answer, `words` what is wrong, for a person.
    """

    name: str
    line: int
    cause: str
    source: str
    also: tuple[int, ...] = ()
    words: str = ""
    kind: str = ""
    component: str = ""

    @property
    def path(self) -> Path:
        return next(path for folder in FOLDERS if (path := folder / f"{self.name}.log").exists())


def labels(folder: Path = FOLDERS[0]) -> list[Label]:
    """Return the labels of the logs of a folder."""
    rows = tomllib.loads((folder / "labels.toml").read_text("utf-8"))["log"]
    return [Label(**{**row, "also": tuple(row.get("also", ()))}) for row in rows]


@functools.cache
def book() -> FailureBook:
    """All rows."""
    return FailureBook(load_catalog().failure)


@functools.cache
def machine(*, built: bool = True) -> Machine:
    """A Linux machine with GCC 12, on which a build was planned."""
    facts = linux_facts()
    return Machine(facts, plan_of(facts), load_catalog(), built=built)


def read(text: str | bytes) -> Reading:
    """Return the diagnosis of a log with this text."""
    scanner = LogScanner(book())
    data = text.encode() if isinstance(text, str) else text
    scanner.feed_block(data if data.endswith(b"\n") else data + b"\n")
    return read_log(scanner, book(), machine())


def read_file(path: Path) -> Reading:
    """Return the diagnosis of a log file."""
    return diagnose_log(str(path), book(), machine())
