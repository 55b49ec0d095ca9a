"""Name the causes of an error: from rows that match a line of its block, else from its kind and subject.

`read_log` takes a log, `explain` the output of a short command.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from torchbuild_tasks.catalog.diagnosis import FailureRow
from torchbuild_tasks.catalog.failures import FailureBook, Hit, UserFailureRow
from torchbuild_tasks.features.diagnosis import patterns
from torchbuild_tasks.features.diagnosis.audience import read_audience
from torchbuild_tasks.features.diagnosis.block import ErrorBlock, Line
from torchbuild_tasks.features.diagnosis.bringing import our_command
from torchbuild_tasks.features.diagnosis.decode import bare
from torchbuild_tasks.features.diagnosis.kinds import (
    COMPILED,
    Kind,
    KindBook,
    is_message,
    kind_book,
    read_kind,
)
from torchbuild_tasks.features.diagnosis.machine import Machine
from torchbuild_tasks.features.diagnosis.names import list_names
from torchbuild_tasks.features.diagnosis.others import Other
from torchbuild_tasks.features.diagnosis.own_words import leave_out, list_surroundings
from torchbuild_tasks.features.diagnosis.part import WIDTH, find_component
from torchbuild_tasks.features.diagnosis.prefix import common_prefix
from torchbuild_tasks.features.diagnosis.releases import find_unscoped
from torchbuild_tasks.features.diagnosis.scan import LogScanner
from torchbuild_tasks.features.diagnosis.signs import read_signs
from torchbuild_tasks.features.diagnosis.wording import add_done, entitle, translate
from torchbuild_tasks.model import Diagnosis, OtherError, Reading

PAGE: Final = "https://github.com/torchbuild/torchbuild-tasks/blob/main/docs/failures.md"
_PAGE_OF_KINDS: Final = "https://github.com/torchbuild/torchbuild-tasks/blob/main/docs/diagnose.md#kinds"
MOST: Final = 4  # causes that are named
_OF_BUILD: Final = ("checkout", "python", "configure", "compile", "link", "install")  # phases
_NONE: Final[Mapping[str, str]] = {}
_RANKS: Final = ("root", "cause", "consequence")
# The kinds whose fixes are decided by the lines of the error, also for the rows of such failures.
_LOOKED_UP: Final = ("network", "package-not-found", "killed", "out-of-memory", "illegal-instruction")
# What a linker says in the loader's words: nothing was loaded yet, whatever the name is.
_LINKS: Final = re.compile(
    r"\b(?:mold|gold|ld[\w.]{0,6}|lld-link|wasm-ld): (?:error|fatal): undefined (?:\w+ )?symbol: "
)
# What CMake says of a compiler that it has tried, and of one that did not tell its name.
_TRIED: Final = "is not able to compile a simple test"
_OF_TRIAL: Final = re.compile(
    r"CMake(?:Test\w{1,10}Compiler|Determine(?:\w{1,10}Compiler|CompilerId))\.cmake"
)
_SOURCE: Final = re.compile(r"\.(?:c|cc|cpp|cxx|cu|mm?)$")
_UNNAMED: Final = "compiler identification is unknown"
# An exception and its place, as Poetry prints them.
_ALONE: Final = re.compile(r"\s*[A-Z]\w{1,60}(?:Error|Exception|Timeout|NotFound|Missing)\s*")
_PLACE: Final = re.compile(r"\s*at \S{1,400}:\d{1,6} in \w")
_SENTENCE: Final = re.compile(r"(?<=[.:]) (?=[A-Z])")
_NOT_LINKED: Final = "missing-library"  # a linker names each that it does not find
_ONLY_CODE: Final = re.compile(r"\W*exit code: \d{1,3}\s*")  # pip's, of output that was cut off
_LONG: Final = 40  # characters of a sentence that says something by itself


class _RowMatch(msgspec.Struct, frozen=True):
    """A row that matched, and its line in the block; `paragraph` where it matched several lines together."""

    hit: Hit
    line: Line
    paragraph: bool = False


def read_log(scanner: LogScanner, book: FailureBook, machine: Machine) -> Reading:
    """Return the reading of the log in this scanner: clean, a known cause, or an unknown error."""
    found = scanner.found
    reading = _read_first(found, scanner, book, machine)
    also = _read_others(found, scanner, reading, book, machine)
    return msgspec.structs.replace(reading, also=tuple(also)) if also else reading


def _read_others(
    found: ErrorBlock | None, scanner: LogScanner, first: Reading, book: FailureBook, machine: Machine
) -> Sequence[OtherError]:
    """Return what failed beside or after the first error, one of each cause that it does not have."""
    told = {_cause_of(first)}
    also: list[OtherError] = []
    libraries = _list_missing_libraries(found, first, kind_book(machine.catalog))
    for other in (*libraries, *scanner.others.found) if first.status != "clean" else ():
        if not any(other.lines) or other.number <= first.line_number or len(also) == MOST:
            continue
        text = b"".join(line + b"\n" for line in other.lines)
        part = scanner.of_part(other.number, common_prefix(text))
        part.feed_block(text)
        reading = _read_first(part.found, part, book, machine)
        repeats = reading.status == "clean" or (other.may_repeat and reading.status == "unknown")
        repeats = repeats or (other.of_cmake and not reading.kind.startswith("missing-"))
        if not repeats and _cause_of(reading) not in told:
            told.add(_cause_of(reading))
            also.append(
                OtherError(
                    target=other.target,
                    line_number=reading.line_number,
                    error_line=bare(reading.error_line, part.before),
                    cause=reading.diagnoses[0].cause if reading.diagnoses else "",
                )
            )
    return also


def _list_missing_libraries(block: ErrorBlock | None, first: Reading, kinds: KindBook) -> Iterator[Other]:
    """Yield the lines of the first error's own block with another library that is missing as well."""
    for line in block.lines if block is not None else ():
        kind = kinds.read_line(line, line.text.strip()) if line.number > first.line_number else None
        if kind and kind.row.id == first.kind == _NOT_LINKED and kind.subject != first.subject:
            yield Other(target="", number=line.number, lines=(line.text.encode(),))


def _cause_of(reading: Reading) -> tuple[str, str]:
    """Return what tells two errors apart: their first cause, and what they are about."""
    cause = reading.diagnoses[0].id if reading.diagnoses else reading.error_line.strip()
    part = reading.component if reading.kind.startswith("missing-") else ""
    return cause, part or reading.subject


def _read_first(
    found: ErrorBlock | None, scanner: LogScanner, book: FailureBook, machine: Machine
) -> Reading:
    whole = _with_message(_with_reason(found, scanner.no_gpu))
    block = _of_its_source(whole)
    notes = tuple(_diagnosis(Hit(row, _groups(book, row, line)), machine) for row, line in scanner.warned)
    if block is None or whole is None:
        return Reading(status="clean", notes=notes)
    met = _rank_rows(
        block, [*_match_rows(block, book), *_match_status_rows(block, scanner.status_line, book)]
    )
    kinds = kind_book(machine.catalog)
    machine = machine.for_audience(read_audience(block, scanner.origin))
    unloaded = machine.value("unloaded") or machine.value("warner")
    kind = read_kind(block, kinds, uses_nvcc=scanner.origin.uses_nvcc, unloaded=unloaded)
    if kind and (unscoped := find_unscoped(kind, machine)):
        kind = kinds.replace(kind, "api-mismatch", unscoped)
    own = kinds.read_line(block.error, block.error.text.strip())
    error = _first_error(block, met, kind, own)
    names = list_names(kind, machine) if kind else read_signs(machine, block.error.text)
    by_kind = explain_kind(kind, machine, names) if kind else None
    values = {**names, "kind fix": _kind_fix(by_kind)}
    first = by_kind and kind and kind.row.level == "cause" and not _is_covered(met, kind, block, own)
    told = [each for each in met[:MOST] if not (first and each.hit.row.rank == "consequence")]
    known = tuple(_diagnosis(each.hit, machine, values) for each in told)
    if first and by_kind:
        known = (by_kind, *known)
    shown = tuple(_told_once(known)) or ((by_kind,) if by_kind else ())
    return Reading(
        status="diagnosed" if known else "unknown",
        error_line=error.raw,
        error_block=whole.text,
        line_number=error.number,
        diagnoses=tuple(_adapt(each, machine, names) for each in shown),
        kind=kind.row.id if kind else "",
        subject=kind.subject if kind else "",
        component=by_kind.component if by_kind else "",
        notes=tuple(note for note in notes if note.id not in {each.id for each in known}),
    )


def _of_its_source(block: ErrorBlock | None) -> ErrorBlock | None:
    """Return an error of a compiler without those of other sources, which another job compiled meanwhile."""
    own = _source_of(block.error.text) if block is not None else ""
    if block is None or not own:
        return block
    others = (line for line in block.lines if line.number > block.error.number)
    first = next((line for line in others if _source_of(line.text) not in ("", own)), None)
    kept = tuple(line for line in block.lines if first is None or line.number < first.number)
    return msgspec.structs.replace(block, lines=kept)


def _source_of(text: str) -> str:
    """Return the source that a compiler's message is about; "" for a header, and for any other message."""
    compiled = COMPILED.match(text.strip())
    return compiled["file"] if compiled and _SOURCE.search(compiled["file"]) else ""


def _with_reason(block: ErrorBlock | None, no_gpu: Line | None) -> ErrorBlock | None:
    """Return an error that speaks of a GPU, or names nothing, as torch's warning of why it has none."""
    if block is None or no_gpu is None:
        return block
    text = block.error.text
    if patterns.OF_GPU.search(text) is None and _ONLY_CODE.fullmatch(text) is None:
        return block
    return msgspec.structs.replace(block, error=no_gpu, lines=(no_gpu, *block.lines))


def _with_message(block: ErrorBlock | None) -> ErrorBlock | None:
    """Return an error of Poetry, which prints an exception's name alone, as the message below that."""
    lines = block.lines if block is not None else ()
    if block is None or not (_ALONE.fullmatch(block.error.text) and any(map(_PLACE.match, _texts(lines)))):
        return block
    below = (line for line in lines if line.number > block.error.number and line.text.strip())
    message = next(below, block.error)
    return block if _PLACE.match(message.text) else msgspec.structs.replace(block, error=message)


def _texts(lines: Iterable[Line]) -> Iterator[str]:
    return (line.text for line in lines)


def _adapt(cause: Diagnosis, machine: Machine, known: Mapping[str, str]) -> Diagnosis:
    """Return it with what the log allows of the fix, in its system's words, behind what was done already."""
    fix = add_done(entitle(cause.fix, machine, known), machine.audience, machine.recipe)
    typed = translate(machine.system, fix, machine.catalog.system_word)
    fix = leave_out(typed, list_surroundings(machine), machine.catalog.own_word)
    return msgspec.structs.replace(cause, fix=fix)


def _told_once(known: Iterable[Diagnosis]) -> Iterator[Diagnosis]:
    """Yield these causes, each sentence of a fix once; a cause whose fix was all told is left out."""
    told: set[str] = set()
    for each in known:
        sentences = [part for part in _SENTENCE.split(each.fix) if len(part) < _LONG or part not in told]
        fresh = [part for part in sentences if len(part) >= _LONG]
        if fresh or not told or not each.fix:
            told.update(fresh)
            yield msgspec.structs.replace(each, fix=" ".join(sentences))


def _kind_fix(by_kind: Diagnosis | None) -> str:
    """Return the fix of the kind, for the rows whose failures it has looked up as well."""
    return by_kind.fix if by_kind is not None and by_kind.id in _LOOKED_UP else ""


def _first_error(block: ErrorBlock, met: list[_RowMatch], kind: Kind | None, own: Kind | None) -> Line:
    """Return the line of the error: the line with the cause where the block's own is a consequence."""
    if tried := _said_in_trial(block, met, kind):
        return tried
    follows = block.weak or (own is not None and own.row.level == "consequence")
    if follows and met and (block.weak or met[0].hit.row.rank != "consequence"):
        return met[0].line
    if kind is None or kind.row.level != "cause":
        loud = (line for line in block.lines if is_message(line.text.strip()))
        first = next((line for line in loud if patterns.complaint(line.text.strip()) > 1), block.error)
        return first if follows and block.kind == "linker" else block.error
    vague = own is not None and own.row.id == "stopped" and kind.line.number < block.error.number
    return kind.line if follows or vague else block.error


def _said_in_trial(block: ErrorBlock, met: list[_RowMatch], kind: Kind | None) -> Line | None:
    """Return what the compiler said that CMake has tried: CMake's own line tells only that it failed."""
    if block.kind != "cmake" or _OF_TRIAL.search(block.error.text) is None:
        return None
    known = (each.line for each in met if not each.paragraph)
    lines = (*known, kind.line) if kind and kind.row.level == "cause" else known
    told = (line for line in lines if line.number > block.error.number and _TRIED not in line.text)
    return next((line for line in told if not patterns.is_marker(line.text.strip())), None)


def _is_covered(met: list[_RowMatch], kind: Kind, block: ErrorBlock, own: Kind | None) -> bool:
    """Say whether a row names the error itself or its root, and so goes before the kind.

    A row that matches only a later line is a consequence of an error whose own line has a kind, and one
    that is no root a consequence of what was not loaded.
    """
    if kind.row.id == "not-loaded" and all(each.hit.row.rank != "root" for each in met):
        return False
    by_itself = block.kind == "words" and kind.line is block.error
    ranks = ("root", "cause") if own is not None and own.row is kind.row else ("cause",)
    later = (each for each in met if each.line.number > kind.line.number and each.hit.row.rank in ranks)
    causes = ("caused by", "because")
    follow = {each.hit.row.id for each in later if not each.line.text.strip().lower().startswith(causes)}
    others = (each for each in met if not by_itself or each.hit.row.id not in follow)
    return any(each.hit.row.rank != "consequence" or each.line is kind.line for each in others)


def explain(text: str, book: FailureBook, machine: Machine) -> Diagnosis | None:
    """Return the cause of a short command's failure, from all of its output; None when no row matches."""
    met = [
        _RowMatch(hit, Line(number, line, line))
        for number, line in enumerate(text.splitlines(), 1)
        for hit in book.look_up(line)
        if not patterns.is_harmless(line)
    ]
    ranked = sorted(met, key=lambda each: _RANKS.index(each.hit.row.rank))
    return _diagnosis(ranked[0].hit, machine) if ranked else None


def _match_rows(block: ErrorBlock, book: FailureBook) -> Iterator[_RowMatch]:
    """Yield the rows that match a line of the block, and those that match its lines as one paragraph."""
    messages = [line for line in block.lines if line is block.error or is_message(line.text.strip())]
    for line in messages:
        links = _LINKS.search(line.text) is not None
        for hit in book.look_up(line.text.strip()):
            if not (links and _is_of_loads(hit.row)):
                yield _RowMatch(hit, line)
    if block.kind in ("cmake", "python", "words"):
        for hit in book.look_up(" ".join(line.text.strip() for line in messages)):
            yield _RowMatch(hit, block.error, paragraph=True)


def _is_of_loads(row: FailureRow) -> bool:
    """Say whether a row is for what the loader says, and none of its samples is a linker's."""
    return row.phase == "import" and bool(row.samples) and not any(map(_LINKS.search, row.samples))


def _match_status_rows(block: ErrorBlock, status_line: str, book: FailureBook) -> Iterator[_RowMatch]:
    """Yield the rows for CMake's last status line before it stopped, where one is for an error.

    A compiler that CMake has tried is there, though it did not tell its name.
    """
    tried = any(_TRIED in line.text for line in block.lines) and _UNNAMED in status_line
    if block.kind == "cmake" and status_line and not tried:
        for hit in book.look_up(status_line):
            yield _RowMatch(hit, block.error, paragraph=True)


def _rank_rows(block: ErrorBlock, met: list[_RowMatch]) -> list[_RowMatch]:
    """Return each row once, roots first; a consequence only where there is no other row.

    A warning is no cause, unless CMake stops at it or it says why what comes next fails.
    """
    first: dict[str, _RowMatch] = {}
    for each in met:
        row = each.hit.row
        if row.severity == "error" or row.rank == "root" or block.kind == "cmake":
            first.setdefault(row.id, each)
    causes = [each for each in first.values() if each.hit.row.rank != "consequence"]
    if not causes:
        near = block.weak or block.kind == "cmake"
        return [each for each in first.values() if near or each.line is block.error]
    return sorted(causes, key=lambda each: (_RANKS.index(each.hit.row.rank), _nearness(each, block)))


def _nearness(met: _RowMatch, block: ErrorBlock) -> int:
    """Rank a match: the error's own line, then another line, then the paragraph."""
    return 2 if met.paragraph else int(met.line is not block.error)


def _groups(book: FailureBook, row: FailureRow, line: str) -> tuple[str, ...]:
    return next((hit.groups for hit in book.look_up(line) if hit.row is row), ())


def _diagnosis(hit: Hit, machine: Machine, known: Mapping[str, str] = _NONE) -> Diagnosis:
    row = hit.row
    see = f"{PAGE}#{row.id}"
    kept = row.phase not in _OF_BUILD and machine.has_tree
    commands = row.command if kept else machine.helpful(row.command)
    if isinstance(row, UserFailureRow):  # its text may come from the checkout: show from where
        see = f"from {row.place}"
    return Diagnosis(
        id=row.id,
        cause=machine.fill((row.cause,), hit.groups, known) or row.cause,
        fix=machine.fill(row.fix, hit.groups, known),
        command=machine.fill_command(commands, hit.groups, known),
        see=see,
    )


def explain_kind(kind: Kind, machine: Machine, known: Mapping[str, str]) -> Diagnosis:
    """Return the cause and the fix of an error of this kind, with the names that `list_names` found."""
    row = find_component(kind, machine)
    text = kind.line.text.strip()[:WIDTH]
    bare = {**known, "subject": known["subject"] or text, "what": text}  # for a shape that names nothing
    cause = machine.fill(kind.row.cause, (), known) or machine.fill(kind.row.cause, (), bare)
    if cause.startswith("the ") and cause.startswith(known["program"]):
        cause = cause[:1].upper() + cause[1:]
    commands = machine.helpful(kind.row.command)
    return Diagnosis(
        id=kind.row.id,
        cause=cause,
        fix=machine.fill(kind.row.fix, (), known) or machine.fill(kind.row.fix, (), bare),
        command=our_command(kind, row, machine) or machine.fill_command(commands, (), known),
        see=_PAGE_OF_KINDS,
        component=row.name if row else "",
    )
