"""Keep what else failed in a build of several jobs: the lines of each target that could not be made.

Ninja writes all that a command said below its `FAILED:`, and pip below its own mark. make names the target
later, and mixes the words of several commands: an error is of the target that has the name of its file, else
of the one that make names next. For MSBuild the file itself is named, with its project behind the message.
CMake reads on after most of its errors, and names the place of each. What is typed at a prompt begins anew.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import Final

import msgspec

_MOST: Final = 12  # targets; who builds on after so many errors reads the log
_LINES: Final = 60  # of a target
_LONGEST: Final = 400  # lines of what came of a command at a prompt
_FOLLOW: Final = 5  # lines below a compiler's error
_FAILED: Final = re.compile(
    rb"\bFAILED: (?:\[code=\d+\] )?(\S{1,400})|\berror: (subprocess-exited-with-error)"
)
_SIGNS: Final = (b"FAILED: ", b"subprocess-exited-with-error")
_ENDS: Final = re.compile(rb"^[^\n]{0,80}?(?:\[\d+/\d+\] |\bFAILED: |ninja: |\[end of output\])")
# An error of CMake, after which it reads on, and where it ends.
_OF_CMAKE: Final = re.compile(rb"\bCMake Error at (\S{1,300}:\d{1,6}) \(")
_CMAKE_ENDS: Final = re.compile(rb"^[^\n]{0,80}?(?:-- |\bCMake (?:Error|Warning|Deprecation) |Call Stack )")
_OUTPUT_ENDS: Final = b"[end of output]"
_ERRORS: Final = re.compile(rb"error(?:: | C\d)")
_SOURCES: Final = rb"\.(?:c|cc|cpp|cxx|c\+\+|cu|hip|mm?|f|f90|F90)"
_SOURCE: Final = re.compile(rb"([\w.+-]{1,100})" + _SOURCES + rb"(?::\d+|\(\d+[,)])")
_MAKE: Final = re.compile(rb"\*\*\* \[(?:[^\]\n]{1,300}:\d+: )?([^\]\n]{1,400})\] ")
_PROJECT: Final = b"proj]"  # with which MSBuild ends a compiler's message
_COLOURS: Final = re.compile(rb"\x1b\[[\d;]{0,20}[A-Za-z]")
# What make says of itself, which follows from an error.
_OF_MAKE: Final = re.compile(rb"\bg?make(?:\.exe)?(?:\[\d+\])?: |recipe for target .{1,400} failed")
_PIP: Final = "pip"
# A prompt with a command behind it: of a shell, with user and machine, of PowerShell and of cmd.
_PROMPT: Final = re.compile(
    rb"(?m)^(?:\$ |(?:\([\w.-]{1,40}\) )?[\w.-]{1,40}@[\w.-]{1,60}:[^\s$#]{0,200}[$#] ?"
    rb"|PS [A-Z]:[^>\n]{0,200}> ?|[A-Z]:\\[^>\n]{0,200}>)(?=[\w./(&\"])"
)
_TYPED: Final = 1024 * 1024  # bytes at the start of a log in which prompts are looked for


class Other(msgspec.Struct, frozen=True, kw_only=True):
    """The lines that a target failed with, of which the first has this number in the log."""

    target: str
    number: int
    lines: tuple[bytes, ...]
    of_cmake: bool = False
    typed: bool = False

    @property
    def may_repeat(self) -> bool:
        """Return whether it is of pip, or of a command that was typed, and may only repeat what failed."""
        return self.target == _PIP or self.typed


class Others:
    """The targets that failed, of a log that is fed in blocks of whole lines."""

    def __init__(self) -> None:
        self._below: list[tuple[bytes, int, list[bytes]]] = []  # of Ninja and pip
        self._errors: dict[bytes, tuple[int, list[bytes]]] = {}  # of compilers, by the name of the file
        self._made: dict[bytes, tuple[int, list[bytes]]] = {}  # of make, what stands above each target
        self._cmake: dict[bytes, tuple[int, list[bytes]]] = {}  # of CMake, by the place
        self._typed: list[tuple[int, list[bytes]]] = []  # what came of each command at a prompt
        self._seen = 0
        self._open: list[bytes] | None = None
        self._ends = _ENDS

    @property
    def found(self) -> Sequence[Other]:
        """Return what failed, in the order of the log; nothing where it was one target alone."""
        made = ((target, *self._errors.get(_name(target), above)) for target, above in self._made.items())
        projects = ((name, *error) for name, error in self._errors.items() if _PROJECT in error[1][0])
        failed = [
            Other(target=target.decode("utf-8", "replace"), number=number, lines=tuple(lines))
            for target, number, lines in (*self._below, *made, *projects)
        ]
        unread = [
            Other(target=place.decode("utf-8", "replace"), number=number, lines=tuple(lines), of_cmake=True)
            for place, (number, lines) in self._cmake.items()
        ]
        typed = [
            Other(target="", number=number, lines=tuple(lines), typed=True) for number, lines in self._typed
        ]
        several = (each for each in (failed, unread, typed) if len(each) > 1)
        return sorted((other for each in several for other in each), key=lambda other: other.number)

    def feed_block(self, block: bytes, number: int) -> None:
        """Look at many lines, of which the first has this number."""
        if b"\x1b" in block:
            block = _COLOURS.sub(b"", block)
        if self._seen < _TYPED:
            self._feed_typed(block, number)
        self._seen += len(block)
        if self._open is not None:
            self._open = self._take(self._open, block, 0)
        if any(sign in block for sign in _SIGNS):
            self._feed_failed(block, number)
        if b"CMake Error at " in block:
            self._feed_cmake(block, number)
        if len(self._errors) < _MOST:
            self._feed_errors(block, number)
        if b"*** [" in block:
            self._feed_made(block, number)

    def _feed_failed(self, block: bytes, number: int) -> None:
        for found in _FAILED.finditer(block):
            target = found[1] or _PIP.encode()
            if len(self._below) == _MOST or any(target == each for each, *_ in self._below if found[1]):
                continue
            begins = block.rfind(b"\n", 0, found.start()) + 1
            ends = block.index(b"\n", begins)
            lines = [block[begins:ends]]
            self._below.append((target, number + block.count(b"\n", 0, begins), lines))
            self._ends = _ENDS
            self._open = self._take(lines, block, ends + 1)

    def _feed_typed(self, block: bytes, number: int) -> None:
        prompts = [found.start() for found in _PROMPT.finditer(block)]
        for begins, ends in itertools.pairwise((0, *prompts, len(block))):
            lines = block[begins:ends].split(b"\n")[:-1]
            if begins in prompts and len(self._typed) < _MOST:
                self._typed.append((number + block.count(b"\n", 0, begins), lines))
            elif self._typed and begins not in prompts:
                self._typed[-1][1].extend(lines)
        for _, lines in self._typed:
            del lines[_LONGEST:]

    def _feed_cmake(self, block: bytes, number: int) -> None:
        for found in _OF_CMAKE.finditer(block):
            if found[1] in self._cmake or len(self._cmake) == _MOST:
                continue
            begins = block.rfind(b"\n", 0, found.start()) + 1
            ends = block.index(b"\n", begins)
            lines = [block[begins:ends]]
            self._cmake[found[1]] = (number + block.count(b"\n", 0, begins), lines)
            self._ends = _CMAKE_ENDS
            self._open = self._take(lines, block, ends + 1)

    def _take(self, lines: list[bytes], block: bytes, at: int) -> list[bytes] | None:
        """Add the lines of a target from a place on; return None at its end, else what goes on."""
        while at < len(block):
            ends = block.index(b"\n", at)
            line = block[at:ends]
            if line.endswith(_OUTPUT_ENDS):
                lines.append(line)
            if self._ends.match(line) or len(lines) >= _LINES:
                return None
            lines.append(line)
            at = ends + 1
        return lines

    def _feed_errors(self, block: bytes, number: int) -> None:
        for found in _ERRORS.finditer(block):
            begins = block.rfind(b"\n", 0, found.start()) + 1
            source = _SOURCE.search(block, begins, found.start())
            if source and source[1] not in self._errors and len(self._errors) < _MOST:
                below = block[begins:].split(b"\n", _FOLLOW + 1)[: _FOLLOW + 1]
                self._errors[source[1]] = (number + block.count(b"\n", 0, begins), below)

    def _feed_made(self, block: bytes, number: int) -> None:
        after = 0
        for found in _MAKE.finditer(block):
            begins = block.rfind(b"\n", 0, found.start()) + 1
            if found[1] not in self._made and len(self._made) < _MOST:
                above = block[after:begins].split(b"\n")[:-1][-_LINES:]
                first = number + block.count(b"\n", 0, begins) - len(above)
                self._made[found[1]] = (first, [b"" if _OF_MAKE.search(each) else each for each in above])
            after = block.index(b"\n", begins) + 1


def _name(target: bytes) -> bytes:
    """Return the name of a target's file without its endings: h5 of h.dir/h5.cpp.o."""
    name = target.replace(b"\\", b"/").rpartition(b"/")[2]
    return re.sub(rb"(?:" + _SOURCES + rb")?\.o(?:bj)?$", b"", name)
