"""Lines of a log that belong together: what led up to an error, the error, and what was said of it."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from torchbuild_tasks.core.diagnosis import shapes

MAX_LINES: Final = 60
_CONTEXT: Final = 3
_COMMAND_WIDTH: Final = 200
_LINE_WIDTH: Final = 1000
_BEFORE_ERROR: Final = 20
_SHORT: Final = 400  # a command that somebody left out of an excerpt is mostly longer
_STRAY: Final = 30  # lines within a traceback that lost their indentation
_MESSAGE: Final = 12  # lines of an exception's text
_BLANKS: Final = 3
# The first line of a CMake Error that a narrow terminal has wrapped.
_CUT_HEAD: Final = re.compile(r"CMake Error at [^()]*(?:\([^()]*)?$")
_DURING: Final = "During handling of the above exception"
_DIRECT: Final = "The above exception was the direct cause"


class Line(msgspec.Struct, frozen=True):
    """A line of the log: its number (from 1), as it stands there, and what was said in it."""

    number: int
    raw: str
    said: str


class ErrorBlock(msgspec.Struct, frozen=True, kw_only=True):
    """The error that stopped a build.

    `kind` is killed, linker, compiler, python, cmake, make, ninja or words (said in words by
    setup.py, pip or another tool). `error` is the line that names it; `lines` are those of the
    block, at most `MAX_LINES`. `weak` means that only its consequence stands in the log.
    """

    kind: shapes.Kind
    error: Line
    lines: tuple[Line, ...]
    weak: bool = False

    @property
    def text(self) -> tuple[str, ...]:
        """The lines as a person reads them; a long command is cut."""
        return tuple(_shortened(line, index) for index, line in enumerate(self.lines))


def _shortened(line: Line, index: int) -> str:
    width = _COMMAND_WIDTH if index == 1 and shapes.is_command(line.said.strip()) else _LINE_WIDTH
    return line.said if len(line.said) <= width else line.said[:width] + " ..."


class Block:
    """A block that is being read. `shape` says how its end is found, `kind` what error it is."""

    def __init__(self, kind: shapes.Kind, lines: list[Line], shape: str, *, weak: bool = False) -> None:
        self.kind, self.lines, self.shape, self.weak = kind, lines, shape, weak
        last = lines[-1]
        self._first = last
        self._indent = len(last.said) - len(last.said.lstrip())
        self._blank, self._blanks = False, 0
        self._trace = shapes.is_traceback(last.said.lstrip())
        self._message = self._stray = 0
        self._chain = ""
        self._error = None if shape == "ninja" or self._trace else last

    @property
    def last_number(self) -> int:
        """The number of its last line."""
        return self.lines[-1].number

    def done(self) -> ErrorBlock:
        """The block as far as it was read."""
        error = self._error or self._first
        return ErrorBlock(kind=self.kind, error=error, lines=tuple(self.lines), weak=self.weak)

    def reopen(self, line: Line, shape: str) -> None:
        """Go on with what this was the cause of."""
        self.lines.append(line)
        self.shape, self._blank, self._trace = shape, False, False
        self._indent = len(line.said) - len(line.said.lstrip())

    def blame(self, line: Line) -> None:
        """Name the line that says the error."""
        self._error = line

    def take(self, line: Line) -> bool:
        """Add the line if it still belongs here."""
        said = line.said
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
        """Of a deep traceback, and of what CMake quotes at length, the ends and the errors count."""
        if not self._trace and self.shape != "cmake":
            return False
        middle = range(MAX_LINES // 4, MAX_LINES - 1)
        dull = (index for index in middle if not shapes.cause(self.lines[index].said.strip()))
        del self.lines[next(dull, MAX_LINES // 2)]
        return True

    def _belongs(self, text: str) -> bool:
        if self.shape == "cmake":  # paragraphs, between which it leaves up to three lines
            self._blanks = self._blanks + 1 if not text else 0
            wrapped = len(self.lines) == 1 and _CUT_HEAD.match(self._first.said.strip()) is not None
            return text.startswith((" ", "Call Stack")) or (not text and self._blanks <= _BLANKS) or wrapped
        if self.shape == "python":
            return self._in_trace(text)
        if shapes.STATUS.match(text) or shapes.proof(text) or shapes.is_marker(text):
            return False
        return self.shape == "ninja" or (bool(text.strip()) and not text.startswith("-- "))

    def _in_trace(self, text: str) -> bool:
        """A traceback, the text of its exception, and those that followed from it or led to it."""
        if self._trace:
            self._stray = 0 if text.startswith((" ", 'File "')) else self._stray + 1
            return self._stray <= _STRAY and not (shapes.proof(text) or shapes.goes_on(text))
        if not text.strip():
            self._message = _MESSAGE
            was, self._blank = self._blank and not self._chain, True
            return not was
        if text.startswith((_DURING, _DIRECT)):
            self._chain = text
            return True
        if self._chain and shapes.is_traceback(text):
            self._trace, self._message = True, 0
            return True
        others = (shapes.goes_on, shapes.proof, shapes.is_marker, shapes.is_traceback, shapes.PIP_ENDS.match)
        return self._message < _MESSAGE and not any(other(text) for other in others)

    def _look(self, line: Line, text: str) -> None:
        """Find the line that names the error."""
        if self._trace:
            if shapes.EXCEPTION_LINE.match(text) and not shapes.is_traceback(text):
                self._end_trace(line)
        elif self.shape == "python":
            self._message += 1
        elif self.shape == "ninja" and self._error is None:
            self._look_for_cause(line, text)

    def _end_trace(self, line: Line) -> None:
        """The line that names an exception; of a chain the root counts, or else the last."""
        self._trace = self._blank = False
        if self._error is None or not self._chain.startswith(_DIRECT):
            self._error = line
        self._chain = ""

    def _look_for_cause(self, line: Line, text: str) -> None:
        """Ninja's block begins with FAILED and the command; then with what leads up to the error."""
        second = len(self.lines) == 2 and (len(text) > _SHORT or shapes.is_command(text))
        if not second and (kind := shapes.cause(text)):
            self.kind = kind
            if shapes.is_traceback(text):
                self._trace = True
            else:
                self._error = line
            del self.lines[2 : max(2, len(self.lines) - 1 - _CONTEXT)]
        elif len(self.lines) > _BEFORE_ERROR:
            del self.lines[2]
