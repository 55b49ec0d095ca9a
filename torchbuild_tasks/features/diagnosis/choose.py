"""Name the causes of an error: rows that know a line of its block, else what its kind and subject tell.

`read_log` judges a whole log, `explain` what a short command said.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from torchbuild_tasks.catalog import FailureRow
from torchbuild_tasks.catalog.failures import FailureBook, Hit, UserFailureRow
from torchbuild_tasks.features.diagnosis import patterns
from torchbuild_tasks.features.diagnosis.answer import NOTHING, answer, names
from torchbuild_tasks.features.diagnosis.audience import who_is_told
from torchbuild_tasks.features.diagnosis.block import ErrorBlock, Line
from torchbuild_tasks.features.diagnosis.kinds import Kind, KindBook, is_telling, kind_book, read_kind
from torchbuild_tasks.features.diagnosis.machine import Machine
from torchbuild_tasks.features.diagnosis.scan import LogScanner
from torchbuild_tasks.model import Diagnosis, Reading

PAGE: Final = "https://github.com/torchbuild/torchbuild-tasks/blob/main/docs/failures.md"
MOST: Final = 4  # causes that are named
_OF_BUILD: Final = ("checkout", "python", "configure", "compile", "link", "install")  # phases
_RANKS: Final = ("root", "cause", "consequence")


class _Met(msgspec.Struct, frozen=True):
    """A row that was met in the block, and the line that it knows; `whole` where it took several lines."""

    hit: Hit
    line: Line
    whole: bool = False


def read_log(scanner: LogScanner, book: FailureBook, machine: Machine) -> Reading:
    """Judge the log that this scanner has read: clean, a known cause, or an error that no row knows."""
    block = scanner.found
    notes = tuple(_diagnosis(Hit(row, _groups(book, row, line)), machine) for row, line in scanner.warned)
    if block is None:
        return Reading(status="clean", notes=notes)
    met = _rank_rows(
        block, [*_match_rows(block, book), *_match_status_rows(block, scanner.status_line, book)]
    )
    kinds = kind_book(machine.catalog)
    machine = machine.told(
        who_is_told(
            block,
            of_extension=scanner.of_extension,
            manager=scanner.manager,
            unreachable=scanner.unreachable,
        )
    )
    kind = read_kind(block, kinds)
    error = _first_error(block, met, kind, kinds)
    told = answer(kind, machine) if kind else None
    said = names(kind, machine) if kind else NOTHING
    known = tuple(_diagnosis(each.hit, machine, said) for each in met[:MOST])
    if told and kind and kind.row.level == "cause" and not _is_told(met, kind, block):
        known = (told, *known)
    return Reading(
        status="diagnosed" if known else "unknown",
        error_line=error.raw,
        error_block=block.text,
        line_number=error.number,
        diagnoses=known or ((told,) if told else ()),
        kind=kind.row.id if kind else "",
        subject=kind.subject if kind else "",
        component=told.component if told else "",
        notes=tuple(note for note in notes if note.id not in {each.id for each in known}),
    )


def _first_error(block: ErrorBlock, met: list[_Met], kind: Kind | None, kinds: KindBook) -> Line:
    """Return the line that is the error: the one that tells the cause where the block's only follows."""
    own = kinds.read_line(block.error, block.error.text.strip())
    follows = block.weak or (own is not None and own.row.level == "consequence")
    if follows and met and (block.weak or met[0].hit.row.rank != "consequence"):
        return met[0].line
    if kind is None or kind.row.level != "cause":
        loud = (line for line in block.lines if is_telling(line.text.strip()))
        said = next((line for line in loud if patterns.complaint(line.text.strip()) > 1), block.error)
        return said if follows and block.kind == "linker" else block.error
    vague = own is not None and own.row.id == "stopped" and kind.line.number < block.error.number
    return kind.line if follows or vague else block.error


def _is_told(met: list[_Met], kind: Kind, block: ErrorBlock) -> bool:
    """Say whether a row knows the error itself, or its root: such a row is more special than any kind.

    What a row knows of a later line of a tool follows from an error whose own line tells its kind.
    """
    own = block.kind == "words" and kind.line is block.error
    later = (each for each in met if each.line.number > kind.line.number and each.hit.row.rank == "cause")
    causes = ("caused by", "because")
    follow = {each.hit.row.id for each in later if not each.line.text.strip().lower().startswith(causes)}
    told = (each for each in met if not own or each.hit.row.id not in follow)
    return any(each.hit.row.rank != "consequence" or each.line is kind.line for each in told)


def explain(text: str, book: FailureBook, machine: Machine) -> Diagnosis | None:
    """Return the cause of a short command's failure, by its whole output; None when no row knows it."""
    met = [
        _Met(hit, Line(number, line, line))
        for number, line in enumerate(text.splitlines(), 1)
        for hit in book.look_up(line)
        if not patterns.is_harmless(line)
    ]
    ranked = sorted(met, key=lambda each: _RANKS.index(each.hit.row.rank))
    return _diagnosis(ranked[0].hit, machine) if ranked else None


def _match_rows(block: ErrorBlock, book: FailureBook) -> Iterator[_Met]:
    """Yield the rows that know a line of the block, and those that know it only as a paragraph."""
    said = [line for line in block.lines if line is block.error or is_telling(line.text.strip())]
    for line in said:
        for hit in book.look_up(line.text.strip()):
            yield _Met(hit, line)
    if block.kind in ("cmake", "python", "words"):
        for hit in book.look_up(" ".join(line.text.strip() for line in said)):
            yield _Met(hit, block.error, whole=True)


def _match_status_rows(block: ErrorBlock, status_line: str, book: FailureBook) -> Iterator[_Met]:
    """Yield the rows for CMake's status line before it stopped, where one takes it for an error."""
    if block.kind == "cmake" and status_line:
        for hit in book.look_up(status_line):
            yield _Met(hit, block.error, whole=True)


def _rank_rows(block: ErrorBlock, met: list[_Met]) -> list[_Met]:
    """Return each row once, roots first; a consequence only where nothing else is known."""
    first: dict[str, _Met] = {}
    for each in met:
        first.setdefault(each.hit.row.id, each)
    causes = [each for each in first.values() if each.hit.row.rank != "consequence"]
    if not causes:
        near = block.weak or block.kind == "cmake"
        return [each for each in first.values() if near or each.line is block.error]
    return sorted(causes, key=lambda each: (_RANKS.index(each.hit.row.rank), _nearness(each, block)))


def _nearness(met: _Met, block: ErrorBlock) -> int:
    """Rank a line: that of the error tells more than another, and that more than the whole paragraph."""
    return 2 if met.whole else int(met.line is not block.error)


def _groups(book: FailureBook, row: FailureRow, line: str) -> tuple[str, ...]:
    return next((hit.groups for hit in book.look_up(line) if hit.row is row), ())


def _diagnosis(hit: Hit, machine: Machine, known: Mapping[str, str] = NOTHING) -> Diagnosis:
    row = hit.row
    see = f"{PAGE}#{row.id}"
    kept = row.phase not in _OF_BUILD and machine.has_tree
    commands = row.command if kept else machine.helpful(row.command)
    if isinstance(row, UserFailureRow):  # it may be the checkout's, and is not to be taken for our words
        see = f"so says {row.place}"
    return Diagnosis(
        id=row.id,
        cause=machine.fill((row.cause,), hit.groups, known) or row.cause,
        fix=machine.fill(row.fix, hit.groups, known),
        command=machine.fill_command(commands, hit.groups),
        see=see,
    )
