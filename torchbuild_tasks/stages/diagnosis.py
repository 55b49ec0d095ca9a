"""Why a build failed: a log is read once, and its error held against the rows.

What searches logs is imported when there is one to search: a build which goes well never loads it.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from torchbuild_tasks.build.hints import first_error_text
from torchbuild_tasks.effects.search import Search, whole_lines
from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.model import Diagnosis, Reading

if TYPE_CHECKING:
    from torchbuild_tasks.build.work import Work
    from torchbuild_tasks.catalog.failures import FailureBook
    from torchbuild_tasks.core.diagnosis.block import ErrorBlock
    from torchbuild_tasks.core.diagnosis.machine import Machine
    from torchbuild_tasks.core.diagnosis.scanner import LogScanner


def diagnose_log(name: str, book: FailureBook, machine: Machine) -> Reading:
    """What a log says; `name` is its path, or `-`.

    Raises:
        UsageError: it cannot be read, is empty, or is no text.
    """
    from torchbuild_tasks.core.diagnosis.judge import read_log
    from torchbuild_tasks.core.diagnosis.scanner import LogScanner
    from torchbuild_tasks.core.diagnosis.text import is_binary, recoded
    from torchbuild_tasks.effects.named_log import log_chunks

    chunks = log_chunks(name)
    first = next(chunks, b"")
    if not first:
        raise UsageError(f"{_called(name)} is empty.", next_step="Nothing was logged, so nothing is known.")
    if is_binary(first):
        raise UsageError(f"{_called(name)} is no text.", next_step="Name the log of a build.")
    scanner = LogScanner(book)
    for block in whole_lines(recoded(first, itertools.chain([first], chunks))):
        scanner.feed_block(block)
    return read_log(scanner, book, machine)


def build_scanner(work: Work) -> LogScanner:
    """What searches the output of this build, with the rows that it can meet."""
    from torchbuild_tasks.core.diagnosis.scanner import LogScanner

    return LogScanner(_book(work))


def log_search(work: Work) -> Search[LogScanner]:
    """The search in what the log of this build gets from now on."""
    from torchbuild_tasks.core.diagnosis.signs import PROOF_SIGNS

    return Search(work.ledger.log, lambda: build_scanner(work), PROOF_SIGNS)


class FirstError:
    """Called while a build runs: the words for its first error, once, as soon as it stands in the log.

    Ninja waits for what was started already, and that can take as long as the longest compile.
    """

    def __init__(self, work: Work, search: Search[LogScanner]) -> None:
        self._work, self._search = work, search
        self._before: ErrorBlock | None = None
        self._said = False

    def __call__(self) -> str:
        """The words, or "" where there are none or they were said."""
        said = None if self._said else self._search.look(self._words)
        self._said = self._said or bool(said)
        return said or ""

    def _words(self, scanner: LogScanner) -> str:
        """What is found twice is whole: a tool says its error in one go."""
        before, self._before = self._before, scanner.proven
        if self._before is None or self._before != before:
            return ""
        error = self._before.error
        return first_error_text(error.number, error.said, diagnose_build(self._work, scanner).diagnoses)


def diagnose_build(work: Work, scanner: LogScanner) -> Reading:
    """What the log of a build that failed says."""
    from torchbuild_tasks.core.diagnosis.judge import read_log

    return read_log(scanner, _book(work), _machine(work))


def explain_output(work: Work, said: str) -> Diagnosis | None:
    """Why a short command failed, by what it said."""
    from torchbuild_tasks.core.diagnosis.judge import explain

    return explain(said, _book(work), _machine(work))


def _book(work: Work) -> FailureBook:
    from torchbuild_tasks.catalog.failures import FailureBook, fitting

    return FailureBook(fitting(work.catalog.failure, work.facts))


def _machine(work: Work) -> Machine:
    from torchbuild_tasks.core.diagnosis.machine import Machine

    return Machine(work.facts, work.plan, work.catalog, built=True)


def _called(name: str) -> str:
    return "What comes in by the pipe" if name == "-" else name
