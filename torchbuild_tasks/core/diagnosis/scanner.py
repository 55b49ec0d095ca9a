"""Reads a log once, in flat memory, and keeps the first real error of it.

What fails a build says so twice: the cause, and then every program above it. The first
cause is kept. What is only suspicious is dropped when the log shows that the build went on
in order, and taken up again when a marker says that it did not end well.

Nearly every line has nothing to say, so plain text is looked for (`SIGNS`) in many at once,
and only a line that holds one is read, or one that follows what was found.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from torchbuild_tasks.catalog import FailureRow
from torchbuild_tasks.catalog.failures import FailureBook
from torchbuild_tasks.core.diagnosis import shapes
from torchbuild_tasks.core.diagnosis.block import Block, ErrorBlock, Line
from torchbuild_tasks.core.diagnosis.signs import FIRST_SIGNS, SIGNS, Places
from torchbuild_tasks.core.diagnosis.text import Decoder, clean

LAST: Final = 12
_ADJACENT: Final = 2
# So far into a log the first signs and the plain text of every row are looked for as well: an excerpt holds
# perhaps only that, and CMake speaks at the start. Later on it would cost many times as much.
_AT_FIRST: Final = 8 * 1024 * 1024


class LogScanner:
    """Feed it a whole log in blocks of lines; `found` is the answer so far.

    Args:
        book: the rows; a line that one of them knows is an error too, or a warning (`warned`).
    """

    def __init__(self, book: FailureBook) -> None:
        self._book = book
        known = (*SIGNS, *FIRST_SIGNS)
        more = (text for text in sorted(book.anchors) if not any(sign in text for sign in known))
        self._signs = tuple(sign.encode() for sign in (*known, *more))
        self._seen = 0
        self._decode = Decoder()
        self._number = 0
        self._recent: deque[tuple[int, bytes]] = deque(maxlen=LAST)
        self._block: Block | None = None  # being read
        self._proof: Block | None = None
        self._suspect: Block | None = None
        self._dropped: Block | None = None
        self._dropped_in_build = False
        self._weak: Block | None = None
        self._sticky: Block | None = None  # a line of CMake that the end of configuring settles
        self._hint: Block | None = None  # pip says that something failed, and what is to come
        self._in_pip = self._in_trial = False
        self._warned: dict[str, tuple[FailureRow, str]] = {}

    @property
    def found(self) -> ErrorBlock | None:
        """The first proven error, or the first that was not followed by a build in order."""
        self._demote()
        if self._proof is not None:
            return self._proof.done()
        others = [block for block in (self._passed_over(), self._suspect, self._weak) if block is not None]
        last_resort = self._sticky or self._hint
        first = min(others, key=lambda block: block.last_number, default=last_resort)
        return first.done() if first else None

    @property
    def proven(self) -> ErrorBlock | None:
        """The first proven error, to which what comes adds at most its last lines."""
        return self._proof.done() if self._proof is not None else None

    def _passed_over(self) -> Block | None:
        """An error after which a build went on, in a log that does not show that it ended well."""
        if self._dropped is None or not self._dropped_in_build:
            return None
        return None if any(shapes.ended_well(line) for line in self.last) else self._dropped

    @property
    def status_line(self) -> str:
        """What CMake said on the way that a row takes for an error; "" when configuring ended well."""
        return self._sticky.done().error.said if self._sticky else ""

    @property
    def warned(self) -> tuple[tuple[FailureRow, str], ...]:
        """Rows for warnings that were met, each with the first line that it knows."""
        return tuple(self._warned.values())

    @property
    def last(self) -> tuple[str, ...]:
        """The last lines, for a log in which nothing was found."""
        return tuple(self._line(*recent).said for recent in self._recent)

    # ------------------------------------------------------------ lines in

    def skip_block(self, block: bytes) -> None:
        """Count the lines of a block that is not to be looked at."""
        self._number += block.count(b"\n")

    def feed_block(self, block: bytes) -> None:
        """Look at many lines at once; each ends with a newline."""
        if b"\0" in block:  # two bytes a character, in the midst of a log of one
            block = block.replace(b"\0", b"")
        signs = self._signs if self._seen < _AT_FIRST else self._signs[: len(SIGNS)]
        self._seen += len(block)
        at, places = 0, Places(block, signs)
        while at < len(block):
            if self._block is None and self._suspect is None:
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
        """Look at the next line, without its end."""
        self._number += 1
        if self._proof is None or self._block is not None:
            line = self._line(self._number, raw)
            if self._block is None or not self._block.take(line):
                self._close()
                if self._proof is None:
                    self._judge(line, line.said.strip())
        self._recent.append((self._number, raw))

    def _line(self, number: int, raw: bytes) -> Line:
        text = self._decode(raw)
        return Line(number, text.rstrip("\r"), clean(text))

    # ------------------------------------------------------------ judging

    def _close(self) -> None:
        """The block has ended."""
        if self._block is not None:
            self._demote()
            self._block = None

    def _demote(self) -> None:
        """An exception that only repeats what failed below it is a marker, and no suspect."""
        block = self._suspect
        if block is None or block.shape != "python" or not shapes.is_marker(block.done().error.said.strip()):
            return
        block.weak, self._suspect = True, None
        self._weak = self._weak or block
        self._proof = self._proof or self._culprit()

    def _judge(self, line: Line, text: str) -> None:
        shape = shapes.proof(text)
        if shapes.TRIAL.search(text) and shape != "cmake":
            self._try(line, shape)
        elif self._in_trial and text.startswith("ninja: build stopped"):
            self._in_trial = False
        elif shape:
            self._proof = self._block = self._prove(line, shape)
        elif shapes.PIP_BEGINS.match(text):
            self._in_pip = True
            self._hint = self._hint or Block("words", [line], "words", weak=True)
        elif self._in_pip and shapes.PIP_ENDS.match(text):
            self._end_pip()
        elif shapes.is_marker(text):
            self._mark(line)
        elif shapes.goes_on(text):
            self._go_on(line, text)
        elif self._suspect is None and not shapes.is_command(text):
            self._suspect_it(line, text)

    def _try(self, line: Line, shape: shapes.Kind | None) -> None:
        """Read a trial of CMake, which may fail, and forget it."""
        self._suspect = None
        if shape == "ninja":
            self._in_trial = True
            self._block = Block("ninja", [line], "ninja")

    def _prove(self, line: Line, shape: shapes.Kind) -> Block:
        """Any error before FAILED is its cause, and before a CMake Error one that stands right there."""
        suspect = self._suspect
        near = suspect is not None and line.number - suspect.last_number <= _ADJACENT
        if suspect is None or (shape == "cmake" and suspect.kind != "python" and not near):
            return Block(shape, [line], shape)
        suspect.reopen(line, shape)
        return suspect

    def _mark(self, line: Line) -> None:
        """Something before this line has failed."""
        if culprit := self._culprit():
            self._proof = culprit
        elif self._weak is None:
            lines = [self._line(*recent) for recent in self._recent]
            self._weak = Block("make" if "***" in line.said else "words", [*lines, line], "words", weak=True)
            complaints = [each for each in lines if shapes.COMPLAINT.match(each.said.strip())]
            if complaints and not shapes.is_harmless(complaints[-1].said.strip()):
                self._weak.blame(complaints[-1])

    def _culprit(self) -> Block | None:
        """What a marker speaks of: the first that failed while make went on, or the last suspect."""
        return self._dropped if self._dropped_in_build else self._suspect or self._dropped

    def _end_pip(self) -> None:
        """The end of what a subprocess of pip said: it has failed, whatever was said in between."""
        self._in_pip = False
        self._proof = self._culprit()
        lines = [self._line(*recent) for recent in self._recent if recent[1].strip()]
        if self._proof is None and self._weak is None and lines:
            self._weak = Block("words", lines, "words", weak=True)

    def _go_on(self, line: Line, text: str) -> None:
        if self._suspect is not None and self._dropped is None:
            self._dropped = self._suspect
            built = self._dropped.kind in ("killed", "compiler", "linker")
            self._dropped_in_build = built and shapes.STATUS.match(text) is not None
        self._suspect = None
        if shapes.CONFIGURED.match(text):
            self._dropped = self._sticky = None
        elif text.startswith("-- "):
            known = self._known(text)
            if known and self._sticky is None:
                self._sticky = Block("words", [line], "words")

    def _suspect_it(self, line: Line, text: str) -> None:
        kind = shapes.cause(text)
        if kind is None and self._known(text) and not shapes.is_harmless(text):
            if shapes.WARNED.search(text):  # what fails later on counts more
                self._hint = self._hint or Block("words", [line], "words", weak=True)
                return
            kind = "words"
        if kind:
            leads = self._leads()
            shape = "words" if kind == "python" and not shapes.is_traceback(text) else kind
            self._suspect = self._block = Block(kind, [*leads, line], shape)
            if said := next((lead for lead in leads if shapes.cause(lead.said.strip())), None):
                self._block.blame(said)

    def _known(self, text: str) -> bool:
        """Whether a row knows this line as an error; rows for warnings are noted."""
        hit = next(iter(self._book.look_up(text)), None)
        if hit is not None and hit.row.severity == "warning":
            self._warned.setdefault(hit.row.id, (hit.row, text))
        return hit is not None and hit.row.severity == "error"

    def _leads(self) -> list[Line]:
        """What was said just before, if it leads up to an error."""
        leads: list[Line] = []
        for recent in reversed(self._recent):
            line = self._line(*recent)
            if not shapes.LEADS.match(line.said):
                break
            leads.insert(0, line)
        return leads


def _last_lines(block: bytes, start: int, end: int) -> list[bytes]:
    """At most `LAST` lines of this part of a block, which ends with a newline."""
    at = end
    for _ in range(LAST + 1):
        at = block.rfind(b"\n", start, at)
        if at < 0:
            at = start - 1
            break
    return block[at + 1 : end - 1].split(b"\n")
