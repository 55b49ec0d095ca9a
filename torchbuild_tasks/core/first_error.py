"""Finds the first real error of a build log while the log goes by, in flat memory.

What fails a build says so twice: the cause, and then every program above it. The first
cause is kept. Some lines are proof (Ninja's FAILED, a CMake Error); a compiler's error or
a traceback alone is only a suspicion, since a configure test may have failed on purpose
and a script may go on: it is dropped when the log shows that the build went on in order.
"""

from __future__ import annotations

import itertools
import re
from collections import deque
from dataclasses import dataclass
from typing import Final

MAX_LINES: Final = 60
CONTEXT: Final = 3
LAST: Final = 12
_COMMAND_WIDTH: Final = 200
_LINE_WIDTH: Final = 1000
_BEFORE_ERROR: Final = 20

# How a block begins that proves the failure, and how its end is found.
_PROOF: Final = (
    ("FAILED: ", "ninja"),
    ("CMake Error", "cmake"),
    ("ninja: error: ", "words"),
    ("ninja: fatal: ", "words"),
)
# What names a cause, most telling first. A source line quoted by the compiler has a `|`.
_CAUSES: Final = tuple(
    (kind, re.compile(pattern))
    for kind, pattern in (
        ("killed", r"Killed signal terminated|Killed \(program|signal 9\b|^(\S+: )?Killed$"),
        ("linker", r"undefined reference to |cannot find -l|error LNK\d|ld returned \d|unresolved external"),
        ("compiler", r"^[^\s|][^|]*?(:\d+|\(\d+(,\d+)?\)) ?: (fatal )?error( [A-Z#]\S*)?:"),
        ("compiler", r"^[\w.+/\\:-]+ ?: (fatal )?error( [A-Z#]\S*)?:|^nvcc (fatal|error) *:"),
        ("python", r"^Traceback \(most recent call last\):"),
        ("words", r"^(ERROR|error): (?!subprocess-exited|Failed |Could not build|metadata-gen|command ')"),
        ("words", r"^Could not find .*(CMakeLists\.txt|third_party)"),
    )
)
# What a compiler or linker says to lead up to an error.
_LEADS: Final = re.compile(
    r"In file included|\s+from |\S.*: [Ii]n |.*required from|.*instantiat|.*: cannot find -l"
)
_STATUS: Final = re.compile(r"\[(\d+/\d+| *\d+%)\] ")
_IN_ORDER: Final = re.compile(r"-- |\[\d+/\d+\] |Successfully ")
_MAKE: Final = re.compile(r"\S*make(\.exe)?(\[\d+\])?: \*\*\* ")
# One of these is in whatever a pattern above finds, and none is in a compile command,
# which has -Werror=x, or error_handling.cpp.
NEEDLES: Final = (
    "FAILED: ",
    ": error",
    "error: ",
    "ERROR: ",
    "fatal",
    "CMake Error",
    "Traceback (",
    "undefined reference",
    "unresolved external",
    "cannot find -l",
    "error LNK",
    "ld returned",
    "nvcc error",
    "Could not find ",
    "Killed",
    "signal 9",
    ": *** ",
)
_NEEDLES: Final = tuple(needle.encode() for needle in NEEDLES)


@dataclass(frozen=True, kw_only=True)
class ErrorBlock:
    """The first error: its lines, and the number of the first of them in the log (from 1).

    `kind` is killed, linker, compiler, python, cmake, make, ninja or words (said in words
    by setup.py, pip or another tool).
    """

    kind: str
    line_number: int
    lines: tuple[str, ...]


class FirstErrorScanner:
    """Feed it every line of a log, in order; `found` is the answer so far.

    Nearly every block of lines has nothing to say: one in which no needle is costs a
    plain search for each, and one after the proof only the count of its lines.
    """

    def __init__(self) -> None:
        self._number = 0
        self._recent: deque[str] = deque(maxlen=LAST)
        self._block: _Block | None = None  # being read
        self._suspect: _Block | None = None
        self._proof: _Block | None = None

    @property
    def found(self) -> ErrorBlock | None:
        """The first proven error, or the first that was not followed by a build in order."""
        block = self._proof or self._suspect
        if block is None:
            return None
        return ErrorBlock(kind=block.kind, line_number=block.number, lines=tuple(block.lines))

    @property
    def last(self) -> tuple[str, ...]:
        """The last lines, for a log in which nothing was found."""
        return tuple(self._recent)

    def skip_block(self, block: bytes) -> None:
        """Count the lines of a block that is not to be looked at."""
        self._number += block.count(b"\n")

    def feed_block(self, block: bytes) -> None:
        """Look at many lines at once; each ends with a newline."""
        calm = self._block is None and (self._proof or not (self._suspect or _has_needle(block)))
        if calm:
            self.skip_block(block)
            self._recent.extend(_last_lines(block))
            return
        for line in _lines(block):
            self.feed(line)

    def feed(self, line: str) -> None:
        """Look at the next line, without its end."""
        self._number += 1
        if self._block is not None:
            if self._block.take(line):
                return
            self._block = None
        if self._proof is None and (self._suspect or any(needle in line for needle in NEEDLES)):
            self._judge(line, line.lstrip())
        self._recent.append(line)

    def _judge(self, line: str, text: str) -> None:
        if shape := _proof_shape(text):
            self._proof = self._block = self._prove(line, shape)
        elif _MAKE.match(text):
            self._proof = self._suspect or self._new("make", [*self._recent, line], "words")
        elif self._suspect is not None:
            if _IN_ORDER.match(text):
                self._suspect = None
        elif kind := _cause(text):
            self._suspect = self._block = self._new(kind, [*self._leads(), line], kind)

    def _prove(self, line: str, shape: str) -> _Block:
        """A traceback just before a CMake Error is its cause, and so is any error before FAILED."""
        suspect = self._suspect
        if suspect is None or (shape == "cmake" and suspect.kind != "python"):
            return self._new(shape, [line], shape)
        suspect.reopen(line, shape)
        return suspect

    def _leads(self) -> list[str]:
        leads = itertools.takewhile(_LEADS.match, reversed(self._recent))
        return list(leads)[::-1]

    def _new(self, kind: str, lines: list[str], shape: str) -> _Block:
        return _Block(kind, self._number - len(lines) + 1, lines, shape)


class _Block:
    """Lines that belong together; at most `MAX_LINES` of them."""

    def __init__(self, kind: str, number: int, lines: list[str], shape: str) -> None:
        self.kind, self.number, self.lines, self.shape = kind, number, lines, shape
        self._indent = len(lines[-1]) - len(lines[-1].lstrip())
        self._over = self._blank = False

    def reopen(self, line: str, shape: str) -> None:
        """Go on with what this was the cause of."""
        self.lines.append(line)
        self.shape, self._over = shape, False

    def take(self, line: str) -> bool:
        """Add the line if it still belongs here."""
        text = line[self._indent :] if line[: self._indent].isspace() else line
        if self._over or len(self.lines) >= MAX_LINES or not self._belongs(text):
            return False
        is_command = self.shape == "ninja" and len(self.lines) == 1
        width = _COMMAND_WIDTH if is_command else _LINE_WIDTH
        if line.strip():
            self.lines.append(line if len(line) <= width else line[:width] + " ...")
        if self.kind == "ninja":
            self._look_for_cause(text)
        return True

    def _belongs(self, text: str) -> bool:
        if self.shape == "cmake":  # paragraphs, and two empty lines after the last
            blank, self._blank = self._blank, not text
            return text.startswith((" ", "Call Stack")) or (not text and not blank)
        if _STATUS.match(text) or _proof_shape(text) or _MAKE.match(text) or text.startswith("ninja: "):
            return False
        if self.shape == "python":
            self._over = not text.startswith(" ")  # the line that names the exception ends it
            return True
        return self.shape == "ninja" or (bool(text.strip()) and not text.startswith("-- "))

    def _look_for_cause(self, text: str) -> None:
        """Ninja's block begins with FAILED and the command; then with what leads up to the error."""
        if kind := _cause(text):
            self.kind = kind
            del self.lines[2 : max(2, len(self.lines) - 1 - CONTEXT)]
        elif len(self.lines) > _BEFORE_ERROR:
            del self.lines[2]


def _has_needle(block: bytes) -> bool:
    return any(needle in block for needle in _NEEDLES)


def _lines(block: bytes) -> list[str]:
    return block.decode(errors="replace").removesuffix("\n").split("\n") if block else []


def _last_lines(block: bytes) -> list[str]:
    start = len(block)
    for _ in range(LAST + 1):
        start = block.rfind(b"\n", 0, start)
        if start < 0:
            break
    return _lines(block[start + 1 :])


def _proof_shape(text: str) -> str | None:
    return next((shape for prefix, shape in _PROOF if text.startswith(prefix)), None)


def _cause(text: str) -> str | None:
    return next((kind for kind, pattern in _CAUSES if pattern.search(text)), None)
