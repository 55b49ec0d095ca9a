"""What a whole log says: clean, a known cause, or an error that no row knows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from torchbuild_tasks.catalog import FailureRow
from torchbuild_tasks.catalog.failures import FailureBook, Hit
from torchbuild_tasks.core.diagnosis import shapes
from torchbuild_tasks.core.diagnosis.block import ErrorBlock, Line
from torchbuild_tasks.core.diagnosis.machine import Machine
from torchbuild_tasks.core.diagnosis.scanner import LogScanner
from torchbuild_tasks.model import Diagnosis, Reading

PAGE: Final = "https://github.com/torchbuild/torchbuild-tasks/blob/main/docs/failures.md"
MOST: Final = 4  # causes that are told
_RANKS: Final = ("root", "cause", "consequence")


class _Met(msgspec.Struct, frozen=True):
    """A row that was met in the block, and the line that it knows; `whole` where it took several lines."""

    hit: Hit
    line: Line
    whole: bool = False


def read_log(scanner: LogScanner, book: FailureBook, machine: Machine) -> Reading:
    """What the log that this scanner has seen says."""
    block = scanner.found
    notes = tuple(_diagnosis(Hit(row, _groups(book, row, line)), machine) for row, line in scanner.warned)
    if block is None:
        return Reading(status="clean", notes=notes)
    met = _ranked(block, [*_met(block, book), *_on_the_way(block, scanner.status_line, book)])
    error = met[0].line if met and block.weak else block.error
    told = tuple(_diagnosis(each.hit, machine) for each in met[:MOST])
    return Reading(
        status="diagnosed" if told else "unknown",
        error_line=error.raw,
        error_block=block.text,
        line_number=error.number,
        diagnoses=told,
        notes=tuple(note for note in notes if note.id not in {each.id for each in told}),
    )


def explain(text: str, book: FailureBook, machine: Machine) -> Diagnosis | None:
    """The cause of a short command's failure, by all that it said; None when no row knows it."""
    met = [
        _Met(hit, Line(number, line, line))
        for number, line in enumerate(text.splitlines(), 1)
        for hit in book.look_up(line)
        if not shapes.is_harmless(line)
    ]
    ranked = sorted(met, key=lambda each: _RANKS.index(each.hit.row.rank))
    return _diagnosis(ranked[0].hit, machine) if ranked else None


def _met(block: ErrorBlock, book: FailureBook) -> Iterator[_Met]:
    """The rows that know a line of the block, and those that know it only as a paragraph."""
    said = [line for line in block.lines if line is block.error or _tells(line.said.strip())]
    for line in said:
        for hit in book.look_up(line.said.strip()):
            yield _Met(hit, line)
    if block.kind in ("cmake", "python", "words"):
        for hit in book.look_up(" ".join(line.said.strip() for line in said)):
            yield _Met(hit, block.error, whole=True)


def _on_the_way(block: ErrorBlock, status_line: str, book: FailureBook) -> Iterator[_Met]:
    """What CMake said before it stopped, where a row takes that for an error."""
    if block.kind == "cmake" and status_line:
        for hit in book.look_up(status_line):
            yield _Met(hit, block.error, whole=True)


def _tells(text: str) -> bool:
    """Whether a line of a block says something: commands, warnings and quoted source do not."""
    return not (shapes.is_command(text) or shapes.is_harmless(text))


def _ranked(block: ErrorBlock, met: list[_Met]) -> list[_Met]:
    """Each row once, roots first; a consequence only where it is the error, and nothing else is known."""
    first: dict[str, _Met] = {}
    for each in met:
        first.setdefault(each.hit.row.id, each)
    causes = [each for each in first.values() if each.hit.row.rank != "consequence"]
    if not causes:
        near = block.weak or block.kind == "cmake"
        return [each for each in first.values() if near or each.line is block.error]
    return sorted(causes, key=lambda each: (_RANKS.index(each.hit.row.rank), _nearness(each, block)))


def _nearness(met: _Met, block: ErrorBlock) -> int:
    """The line of the error tells more than another of the block, and that more than all of them together."""
    return 2 if met.whole else int(met.line is not block.error)


def _groups(book: FailureBook, row: FailureRow, line: str) -> tuple[str, ...]:
    return next((hit.groups for hit in book.look_up(line) if hit.row is row), ())


def _diagnosis(hit: Hit, machine: Machine) -> Diagnosis:
    row = hit.row
    return Diagnosis(
        id=row.id,
        cause=machine.fill((row.cause,), hit.groups) or row.cause,
        fix=machine.fill(row.fix, hit.groups),
        command=machine.fill_command(row.command, hit.groups),
        see=f"{PAGE}#{row.id}",
    )
