"""Collect the lines of one error: those before it, the error itself, and those after it.

A `Block` takes line after line until one does not belong to it; `result` is its `ErrorBlock`.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from torchbuild_tasks.features.diagnosis import patterns

MAX_LINES: Final = 60
_CONTEXT: Final = 3
_COMMAND_WIDTH: Final = 200
_LINE_WIDTH: Final = 1000
_BEFORE_ERROR: Final = 20
_SHORT: Final = 400  # a command; one that was left out of an excerpt is mostly longer
_STRAY: Final = 30  # lines within a traceback that lost their indentation
_MESSAGE: Final = 12  # lines of an exception's text
_BLANKS: Final = 3
_LISTS: Final = ("have conflicting dependencies", "are not available from current channels")
_UNSET: Final = "are set to NOTFOUND."  # variables, which CMake names below
# nvcc leaves a line between its errors.
_OF_NVCC: Final = re.compile(r"\S[^(\n]{0,300}\(\d+\): error")
_NEAR: Final = 2  # lines, within which a script tells what came of its trial
# What goes on behind an empty line: Cargo's causes, uv's hints, libmamba's tree.
_AFTER_A_LINE: Final = ("Caused by:", "hint: ", "× ", "Could not solve for ")
_TELLING: Final = 10  # characters of an exception's text that are no accident elsewhere
# The first line of a CMake Error that a narrow terminal has wrapped.
_CUT_HEAD: Final = re.compile(r"CMake Error at [^()]*(?:\([^()]*)?$")
# A warning of Python's that something is not there, or its source: the program goes on without it.
GOES_WITHOUT: Final = re.compile(
    r"\b[A-Z][a-z]+Warning: .{0,300}(?:\bNo module named '|\bnot found\W{0,3}$|\b[Ww]ithout [A-Za-z])"
    r"|^\s+(?:\w{1,40}\.){0,3}warn\("
)
# What CMake says in a build folder that was copied or moved, with where it was made.
_MOVED: Final = re.compile(r"is different than the directory (\S{1,300}?)(?:[/\\]CMakeCache\.txt)? where ")
_OF_TOOLS: Final = ("killed", "compiler", "linker")
# An exception that has no text but what was looked up.
_LOOKED_UP: Final = re.compile(r"KeyError: ['\"]([^'\"]{2,200})['\"]$")
_DURING: Final = "During handling of the above exception"
_DIRECT: Final = "The above exception was the direct cause"


class Line(msgspec.Struct, frozen=True):
    """A line of the log: its number (from 1), as it is there, and its text as `decode.clean` reads it."""

    number: int
    raw: str
    text: str


class ErrorBlock(msgspec.Struct, frozen=True, kw_only=True):
    """The error that stopped a build.

    `kind` is killed, linker, compiler, python, cmake, make, ninja or words (a message of
    setup.py, pip or another tool). `error` is the line that names it; `lines` are those of the
    block, at most `MAX_LINES`. `weak` means that only a consequence is in the log.
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


def _ends_paragraph(text: str) -> bool:
    return any(end(text) for end in (patterns.goes_on, patterns.is_marker, patterns.proof))


class Block:
    """A block that is still being read. `shape` decides where it ends, `kind` is that of the error."""

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
        # pip and conda name below it what does not fit or is not there, after an empty line.
        self._lists = any(each in last.text for each in _LISTS)
        self._quotes = False  # the exception announces another tool's output
        self._flat = False  # CMake's paragraph was pasted without its indentation
        self._error = None if shape == "ninja" or self._trace else last
        # A complaint before it, which counts where the block has no error of its own.
        self.complaint: Line | None = None
        self.announced = ""  # what the line above it said, as `patterns.attempt` reads it
        self.reasons: tuple[Line, ...] = ()  # lines before it that tell more than it does

    @property
    def last_number(self) -> int:
        """Return the number of its last line."""
        return self.lines[-1].number

    def is_moved_from(self, text: str) -> bool:
        """Return whether CMake has written a build folder that was copied or moved as what it was before."""
        moved = _MOVED.search(" ".join(line.text.strip() for line in self.lines))
        return moved is not None and text.rstrip().endswith(f": {moved[1]}")

    @property
    def names_no_error(self) -> bool:
        """Return whether no line of it names an error: a command failed, or it was interrupted."""
        if self._error is None:
            return self.shape == "ninja"
        return patterns.INTERRUPTED.match(self._error.text.strip()) is not None

    @property
    def is_cut(self) -> bool:
        """Return whether it is a traceback whose exception is not in the log."""
        return self._trace and self._error is None

    @property
    def only_reports_failure(self) -> bool:
        """Return whether its only line reports that something failed."""
        text = (self._error or self._first).text.strip()
        reports = patterns.is_headline(text) or patterns.is_marker(text)
        return self._trace or (self.weak and self.complaint is None and reports)

    @property
    def follows(self) -> bool:
        """Return whether a script of CMake only reports that a program it called failed."""
        return self.shape == "cmake" and any(patterns.FOLLOWS.search(line.text) for line in self.lines)

    def result(self) -> ErrorBlock:
        """Return the error with the lines read so far."""
        complaint = self.complaint
        silent = self.names_no_error or self.is_cut
        error = (silent and complaint) or self._error or self._first
        above = complaint is not None and (silent or patterns.HEADING.match(complaint.text.strip()))
        lines = (complaint, *self.lines) if complaint is not None and above else tuple(self.lines)
        return ErrorBlock(kind=self.kind, error=error, lines=(*self.reasons, *lines), weak=self.weak)

    def reopen(self, line: Line, shape: str) -> None:
        """Continue with the failure that this block was the cause of."""
        self.lines.append(line)
        self.shape, self._blank, self._trace = shape, False, False
        self._indent = len(line.text) - len(line.text.lstrip())

    def name_error(self, line: Line) -> None:
        """Set the error's line."""
        self._error = line

    def add(self, line: Line) -> bool:
        """Add the line if it belongs to the block, and return whether it does."""
        text = line.text
        if (
            self.is_logged(line)
            or patterns.begins_again(text)
            or self.is_repeated(text)
            or self.is_passed_over(text)
        ):
            return False
        text = text[self._indent :] if text[: self._indent].isspace() else text
        if not self._belongs(text):
            return False
        if len(self.lines) >= MAX_LINES and not self._make_room():
            return False
        if text.strip():
            self.lines.append(line)
            self._note_error(line, text)
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
        if self.is_caught(text):
            return False
        if self.shape == "cmake":
            return self._in_paragraphs(text)
        if self.shape == "python":
            return self._in_trace(text)
        if self.names_no_error and patterns.proof(text) == "cmake":
            return True
        if patterns.STATUS.match(text) or patterns.proof(text) or patterns.is_marker(text):
            return False
        if self.shape != "ninja" and (patterns.ended_well(text) or patterns.IGNORED.match(text)):
            return False
        if self._lists and len(self.lines) < _MESSAGE:
            return not text.startswith("ERROR: ")
        steps = (patterns.STEP, patterns.STEP_DONE, patterns.TRACED, patterns.TESTED)
        if any(step.match(text) for step in steps):
            return False
        if self.shape == "words" and (self._blank or not text.strip()):  # Cargo leaves lines between causes
            ends = self._blank and not text.lstrip().startswith(_AFTER_A_LINE)
            self._blank = not text.strip()
            return not ends
        return self.shape == "ninja" or self._goes_on(text)

    def _goes_on(self, text: str) -> bool:
        """Return whether a line is of these messages, between which nvcc leaves one empty."""
        if self._blank and text.strip():
            self._blank = False
            return _OF_NVCC.match(text) is not None
        self._blank = not text.strip() and self.shape == "compiler" and self._of_nvcc
        return self._blank or (bool(text.strip()) and not text.startswith("-- "))

    @property
    def _of_nvcc(self) -> bool:
        return any(_OF_NVCC.match(line.text) for line in self.lines)

    def _in_paragraphs(self, text: str) -> bool:
        """Return whether a line is of CMake's paragraphs, between which it leaves up to three lines."""
        self._blanks = self._blanks + 1 if not text else 0
        if len(self.lines) == 1 and text:
            head = self._first.text.strip()
            flat = head.endswith(("):", _UNSET)) and not text.startswith(" ")
            self._flat = flat and not _ends_paragraph(text)
            if _CUT_HEAD.match(head):
                return True
        if self._flat and text and not self._blanks:
            lists = self._first.text.rstrip().endswith(_UNSET)  # each with what uses it, indented below
            names = text.startswith(" ") and not (lists or self.lines[-1].text.rstrip().endswith(":"))
            return not (names or _ends_paragraph(text))
        return text.startswith((" ", "Call Stack")) or (not text and self._blanks <= _BLANKS)

    def is_repeated(self, text: str) -> bool:
        """Say whether a line announces once more what a tool failed at.

        A traceback quotes what was typed above it.
        """
        of_tool = self.kind in ("words", "python") and len(self.announced) > _TELLING
        return of_tool and not self._trace and patterns.attempt(text) == self.announced

    def is_passed_over(self, text: str) -> bool:
        """Say whether a line tells that a tool's error is passed over."""
        return self.kind == "words" and patterns.resumes(text.strip())

    def is_logged(self, line: Line) -> bool:
        """Say whether a script that tried to compile or link only warns of what it met."""
        near = self._error is not None and line.number - self._error.number <= _NEAR
        return near and self.kind in ("compiler", "linker") and patterns.WARNS.match(line.raw) is not None

    def is_caught(self, text: str) -> bool:
        """Say whether a line tells of this exception again, and that the program goes on."""
        if self._error is None or self.kind != "python":
            return False
        said = self._error.text.partition(": ")[2].strip()
        return len(said) > _TELLING and said in text and patterns.RESUMES.search(text) is not None

    def _in_trace(self, text: str) -> bool:
        """Return whether a line is of the traceback, its exception's text, or a chained exception."""
        if self._trace:
            self._stray = 0 if text.startswith((" ", 'File "')) else self._stray + 1
            return self._stray <= _STRAY and not (patterns.proof(text) or patterns.goes_on(text))
        if self._quotes and text.strip() and self._message < 2 * _MESSAGE:
            return not patterns.is_traceback(text)
        if not text.strip():
            ends = self._blank and not self._chain
            if not self.lines[-1].text.rstrip().endswith(":"):  # what it announces may come below
                self._message = _MESSAGE
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

    def _note_error(self, line: Line, text: str) -> None:
        """Note the line if it names the error."""
        if text.strip().startswith("what():") and patterns.THROWN.search(self._first.text):
            self._error = line
        elif self._trace:
            if patterns.EXCEPTION_LINE.match(text) and not patterns.is_traceback(text):
                self._end_trace(line)
        elif self.shape == "python":
            self._message += 1
            if patterns.PART.match(text):  # "Output:", behind which another program is quoted
                self._blank, self._message = False, 0
            elif self._quotes and patterns.cause(text) in _OF_TOOLS:
                self._error, self._quotes = line, False
        elif self.shape == "ninja" and self._error is None:
            self._look_for_cause(line, text)

    def _end_trace(self, line: Line) -> None:
        """Note the line that names an exception; of a chain the root counts, or else the last."""
        if line.text.rstrip().endswith(": Traceback (most recent call last):"):
            return  # the text of this exception is another one, which was caught
        self._trace = self._blank = False
        root = _LOOKED_UP.match(self._error.text.strip()) if self._error is not None else None
        says_more = root is not None and root[1] in line.text
        if self._error is None or says_more or not self._chain.startswith(_DIRECT):
            self._error = line
            self._quotes = patterns.ANNOUNCES.search(line.text) is not None
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
