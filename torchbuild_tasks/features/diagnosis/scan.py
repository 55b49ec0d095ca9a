"""Find the first real error of a log, read once, line by line, in flat memory.

`LogScanner` is fed a log of any length and keeps the block of lines of its first error: what led up to
it, the error itself, and what was said of it.
"""

from __future__ import annotations

import functools
import re
from collections import deque
from collections.abc import Sequence
from typing import Final

import msgspec

from torchbuild_tasks.catalog import FailureRow
from torchbuild_tasks.catalog.failures import FailureBook
from torchbuild_tasks.features.diagnosis import patterns
from torchbuild_tasks.features.diagnosis.decode import Decoder, clean, without_colours
from torchbuild_tasks.features.diagnosis.patterns import FIRST_SIGNS, SIGNS, Places
from torchbuild_tasks.features.diagnosis.translate import ASCII_SIGNS

MAX_LINES: Final = 60
_CONTEXT: Final = 3
_COMMAND_WIDTH: Final = 200
_LINE_WIDTH: Final = 1000
_BEFORE_ERROR: Final = 20
_SHORT: Final = 400  # a command; one that was left out of an excerpt is mostly longer
_STRAY: Final = 30  # lines within a traceback that lost their indentation
_MESSAGE: Final = 12  # lines of an exception's text
_BLANKS: Final = 3
# The first line of a CMake Error that a narrow terminal has wrapped.
_CUT_HEAD: Final = re.compile(r"CMake Error at [^()]*(?:\([^()]*)?$")
_DURING: Final = "During handling of the above exception"
_DIRECT: Final = "The above exception was the direct cause"


class Line(msgspec.Struct, frozen=True):
    """A line of the log: its number (from 1), as it is there, and its text as `decode.clean` reads it."""

    number: int
    raw: str
    text: str


class ErrorBlock(msgspec.Struct, frozen=True, kw_only=True):
    """The error that stopped a build.

    `kind` is killed, linker, compiler, python, cmake, make, ninja or words (said in words by
    setup.py, pip or another tool). `error` is the line that names it; `lines` are those of the
    block, at most `MAX_LINES`. `weak` means that only its consequence stands in the log.
    """

    kind: patterns.Kind
    error: Line
    lines: tuple[Line, ...]
    weak: bool = False

    @property
    def text(self) -> tuple[str, ...]:
        """Return the lines as a person reads them; a long command is cut."""
        return tuple(_shorten(line, index) for index, line in enumerate(self.lines))


def _shorten(line: Line, index: int) -> str:
    width = _COMMAND_WIDTH if index == 1 and patterns.is_command(line.text.strip()) else _LINE_WIDTH
    return line.text if len(line.text) <= width else line.text[:width] + " ..."


class Block:
    """A block that is still being read. `shape` says how its end is found, `kind` what error it is."""

    def __init__(self, kind: patterns.Kind, lines: list[Line], shape: str, *, weak: bool = False) -> None:
        self.kind = kind
        self.lines = lines
        self.shape = shape
        self.weak = weak
        last = lines[-1]
        self._first = last
        self._indent = len(last.text) - len(last.text.lstrip())
        self._blank, self._blanks = False, 0
        self._trace = patterns.is_traceback(last.text.lstrip())
        self._message = self._stray = 0
        self._chain = ""
        self._flat = False  # CMake's paragraph was pasted without its indentation
        self._error = None if shape == "ninja" or self._trace else last
        # A complaint before it, which counts where the block has no error of its own.
        self.heard: Line | None = None

    @property
    def last_number(self) -> int:
        """Return the number of its last line."""
        return self.lines[-1].number

    @property
    def mute(self) -> bool:
        """Say whether a command failed, and nothing that it said names an error."""
        return self.shape == "ninja" and self._error is None

    def done(self) -> ErrorBlock:
        """Return the block as far as it was read."""
        before = [self.heard] if self.heard is not None and self.mute else []
        error = self._error or next(iter(before), self._first)
        return ErrorBlock(kind=self.kind, error=error, lines=(*before, *self.lines), weak=self.weak)

    def reopen(self, line: Line, shape: str) -> None:
        """Continue with the failure that this block was the cause of."""
        self.lines.append(line)
        self.shape, self._blank, self._trace = shape, False, False
        self._indent = len(line.text) - len(line.text.lstrip())

    def blame(self, line: Line) -> None:
        """Name the line that says the error."""
        self._error = line

    def take(self, line: Line) -> bool:
        """Add the line if it still belongs to the block, and say whether it did."""
        said = line.text
        text = said[self._indent :] if said[: self._indent].isspace() else said
        if not self._belongs(text):
            return False
        if len(self.lines) >= MAX_LINES and not self._make_room():
            return False
        if text.strip():
            self.lines.append(line)
            self._look(line, text)
        return True

    def _make_room(self) -> bool:
        """Drop a dull line of a deep traceback or of what CMake quotes at length."""
        if not self._trace and self.shape != "cmake":
            return False
        middle = range(MAX_LINES // 4, MAX_LINES - 1)
        dull = (index for index in middle if not patterns.cause(self.lines[index].text.strip()))
        del self.lines[next(dull, MAX_LINES // 2)]
        return True

    def _belongs(self, text: str) -> bool:
        if self.shape == "cmake":  # paragraphs, between which it leaves up to three lines
            self._blanks = self._blanks + 1 if not text else 0
            if len(self.lines) == 1 and text:
                head = self._first.text.strip()
                ends = (patterns.goes_on, patterns.is_marker, patterns.proof)
                flat = head.endswith(("(message):", "are set to NOTFOUND.")) and not text.startswith(" ")
                self._flat = flat and not any(end(text) for end in ends)
                if _CUT_HEAD.match(head):
                    return True
            if self._flat and text and not self._blanks:
                ends = (patterns.goes_on, patterns.is_marker, patterns.proof)
                return not (text.startswith(" ") or any(end(text) for end in ends))
            return text.startswith((" ", "Call Stack")) or (not text and self._blanks <= _BLANKS)
        if self.shape == "python":
            return self._in_trace(text)
        if self.mute and patterns.proof(text) == "cmake":
            return True
        if patterns.STATUS.match(text) or patterns.proof(text) or patterns.is_marker(text):
            return False
        if any(step.match(text) for step in (patterns.STEP, patterns.STEP_DONE, patterns.TRACED)):
            return False
        return self.shape == "ninja" or (bool(text.strip()) and not text.startswith("-- "))

    def _in_trace(self, text: str) -> bool:
        """Say whether a line is of the traceback, its exception's text, or a chained exception."""
        if self._trace:
            self._stray = 0 if text.startswith((" ", 'File "')) else self._stray + 1
            return self._stray <= _STRAY and not (patterns.proof(text) or patterns.goes_on(text))
        if not text.strip():
            self._message = _MESSAGE
            ends = self._blank and not self._chain
            self._blank = True
            return not ends
        if text.startswith((_DURING, _DIRECT)):
            self._chain = text
            return True
        if self._chain and patterns.is_traceback(text):
            self._trace, self._message = True, 0
            return True
        others = (
            patterns.goes_on,
            patterns.proof,
            patterns.is_marker,
            patterns.is_traceback,
            patterns.PIP_ENDS.match,
            patterns.TESTED.match,
        )
        return self._message < _MESSAGE and not any(other(text) for other in others)

    def _look(self, line: Line, text: str) -> None:
        """Note the line if it names the error."""
        if self._trace:
            if patterns.EXCEPTION_LINE.match(text) and not patterns.is_traceback(text):
                self._end_trace(line)
        elif self.shape == "python":
            self._message += 1
        elif self.shape == "ninja" and self._error is None:
            self._look_for_cause(line, text)

    def _end_trace(self, line: Line) -> None:
        """Note the line that names an exception; of a chain the root counts, or else the last."""
        self._trace = self._blank = False
        if self._error is None or not self._chain.startswith(_DIRECT):
            self._error = line
        self._chain = ""

    def _look_for_cause(self, line: Line, text: str) -> None:
        """Search Ninja's block, which begins with FAILED, the command, and what leads up to the error."""
        if patterns.proof(text) == "cmake":  # a script that the command ran, which is quoted to its end
            self.kind = self.shape = "cmake"
            self._error = line
            return
        second = len(self.lines) == 2 and (len(text) > _SHORT or patterns.is_command(text))
        if not second and (kind := patterns.cause(text)):
            self.kind = kind
            if patterns.is_traceback(text):
                self._trace = True
            else:
                self._error = line
            del self.lines[2 : max(2, len(self.lines) - 1 - _CONTEXT)]
        elif len(self.lines) > _BEFORE_ERROR:
            del self.lines[2]


LAST: Final = 12
_ADJACENT: Final = 2
_FAR: Final = 40  # lines after which a complaint that nothing came of is forgotten
# So far into a log the first signs and the plain text of every row are looked for as well: an excerpt holds
# perhaps only that, and CMake speaks at the start. Later on it would cost many times as much.
_AT_FIRST: Final = 8 * 1024 * 1024


@functools.lru_cache(maxsize=4)
def _signs_of(anchors: frozenset[str]) -> tuple[bytes, ...]:
    """Return what a line holds that has to be read: the signs, and what the rows have beyond them."""
    known = (*SIGNS, *FIRST_SIGNS)
    more = (text for text in sorted(anchors) if not any(sign in text for sign in known))
    return (*(sign.encode() for sign in (*known, *more)), *ASCII_SIGNS)


class LogScanner:
    """Search a whole log, fed in blocks of lines; `found` is the answer so far.

    Args:
        book: the rows; a line that one of them knows is an error too, or a warning (`warned`).
        before: what stands before every line of this log, and is not a part of it.
    """

    def __init__(self, book: FailureBook, before: re.Pattern[str] | None = None) -> None:
        self._book = book
        self._before = before
        self._signs = _signs_of(book.anchors)
        self._seen = 0
        self._decode = Decoder()
        self._number = 0
        self._recent: deque[tuple[int, bytes]] = deque(maxlen=LAST)
        self._block: Block | None = None  # being read
        self._proof: Block | None = None
        self._suspect: Block | None = None
        self._traced: Block | None = None  # an error after which a script ran its next command
        self._complaint: Line | None = None  # the first that looks like an error since the build went on
        self._dropped: Block | None = None
        self._dropped_in_build = False
        self._weak: Block | None = None
        self._sticky: Block | None = None  # a line of CMake that the end of configuring settles
        self._hint: Block | None = None  # pip says that something failed, and what is to come
        self._in_pip = self._in_trial = False
        self._before_step: Block | None = None  # an error before the step of pip that is being read
        self._warned: dict[str, tuple[FailureRow, str]] = {}

    @property
    def found(self) -> ErrorBlock | None:
        """Return the first proven error, or the first that was not followed by a build in order."""
        self._demote()
        if self._proof is not None:
            return self._telling_block(self._proof).done()
        others = [block for block in (self._outlived_error(), self._suspect, self._weak) if block is not None]
        last_resort = self._sticky or self._hint or self._traced or self._unanswered()
        first = min(others, key=lambda block: block.last_number, default=last_resort)
        return first.done() if first else None

    @property
    def proven(self) -> ErrorBlock | None:
        """Return the first proven error, to which later lines add at most its own last ones."""
        return self._telling_block(self._proof).done() if self._proof is not None else None

    def _telling_block(self, proof: Block) -> Block:
        """Return the block of a failure, or the error before it where Ninja's FAILED has none of its own."""
        return self._dropped if self._dropped is not None and self._dropped_in_build and proof.mute else proof

    def _outlived_error(self) -> Block | None:
        """Return an error after which the build went on, if the log does not show that it ended well."""
        if self._dropped is None or not self._dropped_in_build:
            return None
        return None if any(patterns.ended_well(line) for line in self.last) else self._dropped

    def _unanswered(self) -> Block | None:
        """Return what a log complains of after which it neither goes on nor ends as one in order does."""
        lines = [self._line(*recent) for recent in self._recent if recent[1].strip()]
        if any(patterns.ended_well(line.text) or patterns.TRIAL.search(line.text) for line in lines):
            return None
        complaint = self._loudest(lines) or self._last_words(lines)
        if complaint is None:
            return None
        block = Block(
            "words",
            [complaint, *(line for line in lines if line.number > complaint.number)],
            "words",
            weak=True,
        )
        block.blame(complaint)
        return block

    def _loudest(self, lines: Sequence[Line]) -> Line | None:
        """Return the first of what looks most like an error since the log was in order."""
        on = max((line.number for line in lines if _in_order(line.text.strip())), default=0)
        first = [self._complaint] if self._complaint is not None else []
        heard = [line for line in (*first, *lines) if line.number > on and self._loudness(line)]
        return max(heard, key=self._loudness, default=None)

    def _last_words(self, lines: Sequence[Line]) -> Line | None:
        """Return the first of the last lines that does not sound like an end in order."""
        on = max((index for index, line in enumerate(lines) if _in_order(line.text.strip())), default=-1)
        last = [line for line in lines[on + 1 :] if not self._is_warning(line)]
        words = (line for line in last if not patterns.is_command(line.text.strip()))
        return next((line for line in words if patterns.is_negative(line.text.strip())), None)

    def _loudness(self, line: Line | None) -> int:
        return 0 if line is None or self._is_warning(line) else patterns.complaint(line.text.strip())

    def _is_warning(self, line: Line) -> bool:
        """Say whether a row knows this line as a warning."""
        return any(line.text.strip() == said for _, said in self._warned.values())

    @property
    def status_line(self) -> str:
        """Return a status line of CMake that a row takes for an error; "" when configuring ended well."""
        return self._sticky.done().error.text if self._sticky else ""

    @property
    def warned(self) -> tuple[tuple[FailureRow, str], ...]:
        """Return the rows for warnings that were met, each with the first line that it knows."""
        return tuple(self._warned.values())

    @property
    def last(self) -> tuple[str, ...]:
        """Return the last lines, for a log in which nothing was found."""
        return tuple(self._line(*recent).text for recent in self._recent)

    def skip_block(self, block: bytes) -> None:
        """Count the lines of a block without searching it."""
        self._number += block.count(b"\n")

    def feed_block(self, block: bytes) -> None:
        """Search many lines at once; each ends with a newline."""
        if b"\0" in block:  # two bytes a character, in the midst of a log of one
            block = block.replace(b"\0", b"")
        signs = self._signs if self._seen < _AT_FIRST else self._signs[: len(SIGNS)]
        self._seen += len(block)
        at = 0
        places = Places(block, signs)
        while at < len(block):
            if self._block is None and self._suspect is None and self._complaint is None:
                start = len(block) if self._proof else places.line_after(at)
                self._pass_over(block, at, start)
                at = start
                if at == len(block):
                    return
            end = block.index(b"\n", at)
            self.feed(block[at:end])
            at = end + 1

    def _pass_over(self, block: bytes, start: int, end: int) -> None:
        if start == end:
            return
        number = self._number + block.count(b"\n", start, end)
        tail = _last_lines(block, start, end)
        self._recent.extend((number - len(tail) + index + 1, line) for index, line in enumerate(tail))
        self._number = number

    def feed(self, raw: bytes) -> None:
        """Search the next line, given without its end."""
        self._number += 1
        if self._proof is None or self._block is not None:
            line = self._line(self._number, raw)
            if self._block is None or not self._block.take(line):
                self._close()
                if self._proof is None:
                    if self._complaint is not None and line.number > self._complaint.number + _FAR:
                        self._complaint = None
                    self._judge(line, line.text.strip())
        self._recent.append((self._number, raw))

    def _line(self, number: int, raw: bytes) -> Line:
        text = self._decode(raw)
        said = self._before.sub("", without_colours(text), count=1) if self._before else text
        return Line(number, text.rstrip("\r"), clean(said))

    def _close(self) -> None:
        """End the block."""
        if self._block is not None:
            self._demote()
            self._block = None

    def _demote(self) -> None:
        """Take an exception that only repeats what failed below it for a marker, and no suspect."""
        block = self._suspect
        if block is None or block.shape != "python":
            return
        if not patterns.is_marker(block.done().error.text.strip()):
            return
        block.weak, self._suspect = True, None
        self._weak = self._weak or block
        self._proof = self._proof or self._culprit()

    def _judge(self, line: Line, text: str) -> None:
        shape = patterns.proof(text)
        if patterns.TRIAL.search(text) and shape != "cmake":
            self._try(line, shape)
        elif self._in_trial and text.startswith("ninja: build stopped"):
            self._in_trial = False
        elif shape:
            self._proof = self._block = self._prove(line, shape)
        elif patterns.PIP_BEGINS.match(text):
            self._in_pip = True
            self._hint = self._hint or Block("words", [line], "words", weak=True)
        elif self._in_pip and patterns.PIP_ENDS.match(text):
            self._end_pip()
        elif patterns.is_marker(text):
            self._mark(line)
        elif self._suspect is not None and self._was_trial(text):
            self._dropped, self._suspect = self._dropped or self._suspect, None
        elif patterns.goes_on(text) or patterns.TRACED.match(text):
            self._go_on(line, text)
        elif self._suspect is None and not patterns.is_command(text):
            self._suspect_it(line, text)

    def _was_trial(self, text: str) -> bool:
        """Say whether a step of pip or a test went well in which the suspect was said."""
        if patterns.STEP.match(text):
            self._before_step = self._suspect
        if patterns.STEP_DONE.match(text):
            return self._suspect is not self._before_step
        return (
            self._suspect is not None
            and self._suspect.shape == "python"
            and patterns.TESTED.match(text) is not None
        )

    def _try(self, line: Line, shape: patterns.Kind | None) -> None:
        """Read a trial of CMake, which may fail, and forget it."""
        self._suspect = None
        if shape == "ninja":
            self._in_trial = True
            self._block = Block("ninja", [line], "ninja")

    def _prove(self, line: Line, shape: patterns.Kind) -> Block:
        """Join a proof with its cause: any error before FAILED, one right before a CMake Error."""
        suspect = self._suspect
        near = suspect is not None and line.number - suspect.last_number <= _ADJACENT
        if suspect is None or (shape == "cmake" and suspect.kind != "python" and not near):
            block = Block(shape, [line], shape)
            block.heard = self._complaint
            return block
        suspect.reopen(line, shape)
        return suspect

    def _mark(self, line: Line) -> None:
        """Take a line that says that something before it has failed."""
        if culprit := self._culprit():
            self._proof = culprit
        elif self._weak is None:
            lines = [self._line(*recent) for recent in self._recent]
            said = self._complaint
            if said is not None and said.number <= line.number - len(lines) - 1:
                lines.insert(0, said)
            self._weak = Block("make" if "***" in line.text else "words", [*lines, line], "words", weak=True)
            if blamed := self._loudest(lines):
                self._weak.blame(blamed)

    def _culprit(self) -> Block | None:
        """Return the error that a marker speaks of: that before make went on, or the last."""
        return self._dropped if self._dropped_in_build else self._suspect or self._dropped

    def _end_pip(self) -> None:
        """Take the end of what a subprocess of pip said: it has failed, whatever was said in between."""
        self._in_pip = False
        self._proof = self._culprit()
        lines = [self._line(*recent) for recent in self._recent if recent[1].strip()]
        if self._proof is None and self._weak is None and lines:
            self._weak = Block("words", lines, "words", weak=True)

    def _go_on(self, line: Line, text: str) -> None:
        if patterns.TRACED.match(text):
            self._traced, self._suspect = self._traced or self._suspect, None
            return
        if self._suspect is not None and self._dropped is None:
            self._dropped = self._suspect
            built = self._dropped.kind in ("killed", "compiler", "linker")
            on = patterns.STATUS.match(text) or patterns.INSTALLS.match(text)
            self._dropped_in_build = built and on is not None
        self._suspect = self._complaint = self._traced = None
        if patterns.CONFIGURED.match(text):
            self._dropped = self._sticky = None
        elif text.startswith("-- "):
            known = self._is_known_error(text)
            if known and self._sticky is None:
                self._sticky = Block("words", [line], "words")

    def _suspect_it(self, line: Line, text: str) -> None:
        kind = patterns.cause(text)
        if kind is None and self._is_known_error(text) and not patterns.is_harmless(text):
            if patterns.WARNED.search(text):  # what fails later on counts more
                self._hint = self._hint or Block("words", [line], "words", weak=True)
                return
            kind = "words"
        if kind:
            leads = self._leads()
            near = [] if leads or kind != "words" else self._complaints_above()
            shape = "words" if kind == "python" and not patterns.is_traceback(text) else kind
            self._suspect = self._block = Block(kind, [*leads, *near, line], shape)
            said = (lead for lead in leads if patterns.cause(lead.text.strip()))
            if first := next(iter((*near, *said)), None):
                self._block.blame(first)
        elif self._loudness(line) > self._loudness(self._complaint):
            self._complaint = line

    def _complaints_above(self) -> list[Line]:
        """Return the lines above an error that look like one, too: the first since the log was in order."""
        row: list[Line] = []
        for recent in reversed(self._recent):
            line = self._line(*recent)
            if not self._loudness(line):
                break
            row.insert(0, line)
        said = self._complaint
        far = said is None or said in row or said.number < self._number - LAST
        return row if said is None or far else [said, *row]

    def _is_known_error(self, text: str) -> bool:
        """Say whether a row knows this line as an error, and note rows for warnings."""
        hit = next(iter(self._book.look_up(text)), None)
        if hit is not None and hit.row.severity == "warning":
            self._warned.setdefault(hit.row.id, (hit.row, text))
        return hit is not None and hit.row.severity == "error"

    def _leads(self) -> list[Line]:
        """Return the lines just before, if they lead up to an error."""
        leads: list[Line] = []
        for recent in reversed(self._recent):
            line = self._line(*recent)
            if not patterns.LEADS.match(line.text):
                break
            leads.insert(0, line)
        return leads


def _in_order(text: str) -> bool:
    return patterns.goes_on(text) or patterns.ends(text)


def _last_lines(block: bytes, start: int, end: int) -> list[bytes]:
    """Return at most `LAST` lines of this part of a block, which ends with a newline."""
    at = end
    for _ in range(LAST + 1):
        at = block.rfind(b"\n", start, at)
        if at < 0:
            at = start - 1
            break
    return block[at + 1 : end - 1].split(b"\n")
