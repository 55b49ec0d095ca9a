"""Keep what else failed in a build of several jobs: the lines of each target that could not be made.

Ninja writes all that a command said below its `FAILED:`. make mixes the words of several commands, and names
the target later: an error is of the target that has the name of its file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import msgspec

_MOST: Final = 12  # targets; who builds on after so many errors reads the log
_LINES: Final = 40  # of a target
_FOLLOW: Final = 5  # lines below a compiler's error
_NINJA: Final = b"FAILED: "
_FAILED: Final = re.compile(rb"\bFAILED: (?:\[code=\d+\] )?(\S{1,400})")
_ENDS: Final = re.compile(rb"^[^\n]{0,80}?(?:\[\d+/\d+\] |\bFAILED: |ninja: )")
_ERRORS: Final = re.compile(rb"error(?:: | C\d)")
_SOURCE: Final = re.compile(
    rb"([\w.+-]{1,100})\.(?:c|cc|cpp|cxx|c\+\+|cu|hip|mm?|f|f90|F90)(?::\d+|\(\d+[,)])"
)
_MAKE: Final = re.compile(rb"\*\*\* \[(?:[^\]\n]{1,300}:\d+: )?([^\]\n]{1,400}\.o(?:bj)?)\] ")


class Other(msgspec.Struct, frozen=True):
    """The lines that a target failed with, of which the first has this number in the log."""

    target: str
    number: int
    lines: tuple[bytes, ...]


class Others:
    """The targets that failed, of a log that is fed in blocks of whole lines."""

    def __init__(self) -> None:
        self._ninja: dict[bytes, tuple[int, list[bytes]]] = {}
        self._errors: dict[bytes, tuple[int, list[bytes]]] = {}
        self._made: dict[bytes, bytes] = {}  # by the name of the file, the target of make's that failed
        self._open: list[bytes] | None = None

    @property
    def found(self) -> Sequence[Other]:
        """Return what failed, in the order of the log; nothing where it was one target alone."""
        made = {self._made[name]: error for name, error in self._errors.items() if name in self._made}
        failed = [
            Other(target.decode("utf-8", "replace"), number, tuple(lines))
            for target, (number, lines) in {**self._ninja, **made}.items()
        ]
        return sorted(failed, key=lambda each: each.number) if len(failed) > 1 else ()

    def feed_block(self, block: bytes, number: int) -> None:
        """Look at many lines, of which the first has this number."""
        if self._open is not None:
            self._open = self._take(self._open, block, 0)
        if _NINJA in block and len(self._ninja) < _MOST:
            self._feed_ninja(block, number)
        if len(self._errors) < _MOST:
            self._feed_errors(block, number)
        if b"*** [" in block:
            for found in _MAKE.finditer(block):
                self._made.setdefault(_name(found[1]), found[1])

    def _feed_ninja(self, block: bytes, number: int) -> None:
        for found in _FAILED.finditer(block):
            if len(self._ninja) == _MOST:
                return
            begins = block.rfind(b"\n", 0, found.start()) + 1
            ends = block.index(b"\n", begins)
            lines = [block[begins:ends]]
            self._ninja.setdefault(found[1], (number + block.count(b"\n", 0, begins), lines))
            self._open = self._take(lines, block, ends + 1)

    def _take(self, lines: list[bytes], block: bytes, at: int) -> list[bytes] | None:
        """Add the lines of a target from a place on; return None at its end, else what goes on."""
        while at < len(block):
            ends = block.index(b"\n", at)
            if _ENDS.match(block[at:ends]) or len(lines) == _LINES:
                return None
            lines.append(block[at:ends])
            at = ends + 1
        return lines

    def _feed_errors(self, block: bytes, number: int) -> None:
        for found in _ERRORS.finditer(block):
            begins = block.rfind(b"\n", 0, found.start()) + 1
            source = _SOURCE.search(block, begins, found.start())
            if source and source[1] not in self._errors and len(self._errors) < _MOST:
                below = block[begins:].split(b"\n", _FOLLOW + 1)[: _FOLLOW + 1]
                self._errors[source[1]] = (number + block.count(b"\n", 0, begins), below)


def _name(target: bytes) -> bytes:
    """Return the name of a target's file without its endings: h5 of h.dir/h5.cpp.o."""
    name = target.replace(b"\\", b"/").rpartition(b"/")[2]
    return re.sub(rb"(?:\.(?:c|cc|cpp|cxx|c\+\+|cu|hip|mm?|f|f90|F90))?\.o(?:bj)?$", b"", name)
