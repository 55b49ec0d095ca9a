"""Why a build failed: a log is read once, and its error held against the rows."""

from __future__ import annotations

import itertools

from torchbuild_tasks.core.diagnosis.judge import explain, read_log
from torchbuild_tasks.core.diagnosis.machine import Machine
from torchbuild_tasks.core.diagnosis.rows import FailureBook, fitting
from torchbuild_tasks.core.diagnosis.scanner import LogScanner
from torchbuild_tasks.core.diagnosis.text import is_binary, recoded
from torchbuild_tasks.effects.named_log import log_chunks
from torchbuild_tasks.effects.search import whole_lines
from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.model import Diagnosis, Reading
from torchbuild_tasks.stages.work import Work


def diagnose_log(name: str, book: FailureBook, machine: Machine) -> Reading:
    """What a log says; `name` is its path, or `-`.

    Raises:
        UsageError: it cannot be read, is empty, or is no text.
    """
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


def failure_book(work: Work) -> FailureBook:
    """The rows of failures that this build on this machine can have."""
    return FailureBook(fitting(work.catalog.failure, work.facts))


def diagnose_build(work: Work, scanner: LogScanner) -> Reading:
    """What the log of a build that failed says."""
    return read_log(scanner, failure_book(work), _machine(work))


def explain_output(work: Work, said: str) -> Diagnosis | None:
    """Why a short command failed, by what it said."""
    return explain(said, failure_book(work), _machine(work))


def _machine(work: Work) -> Machine:
    return Machine(work.facts, work.plan, work.catalog, built=True)


def _called(name: str) -> str:
    return "What comes in by the pipe" if name == "-" else name
