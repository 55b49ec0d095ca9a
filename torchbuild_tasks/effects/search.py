"""Has the log of a command searched for its error: all of it once it has failed, before that where need be.

Searching costs many times what reading and writing the log costs. So while the command runs only plain text
that a failure alone says is looked for, and what goes well is never searched.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Generic, Protocol, TypeVar

from torchbuild_tasks.system.log import Log
from torchbuild_tasks.system.process import Blocks, stream

_CHUNK: Final = 512 * 1024


class Scanner(Protocol):
    """What searches; core's LogScanner."""

    def skip_block(self, block: bytes, /) -> None: ...
    def feed_block(self, block: bytes, /) -> None: ...


S = TypeVar("S", bound=Scanner)
T = TypeVar("T")


class Search(Generic[S]):
    """The search in what a log gets from now on; the lines that it has count, and no more.

    Args:
        log: open, and written by somebody else.
        make_scanner: called when there is something to search for.
        signs: where one of these stands, searching begins while the command runs.
    """

    def __init__(self, log: Log, make_scanner: Callable[[], S], signs: Sequence[bytes] = ()) -> None:
        self.log = log
        self._make, self._signs = make_scanner, signs
        self._overlap = max((len(sign) - 1 for sign in signs), default=0) or 1
        self._tail = b""
        self._begin = self._at = log.path.stat().st_size
        self._blocks = Blocks(carriage_return=False)
        self._scanner: S | None = None
        self._over = False
        self._lock = threading.Lock()

    def look(self, ask: Callable[[S], T]) -> T | None:
        """Ask about the log so far, from any thread; None while no sign was met, and after the end."""
        with self._lock:
            if self._over or (self._scanner is None and not self._sign_met()):
                return None
            return ask(self._caught_up())

    def end(self) -> S:
        """The scanner, which has now seen all that is in the log."""
        with self._lock:
            scanner = self._scanner if self._over and self._scanner else self._caught_up()
            if rest := self._blocks.end():
                scanner.feed_block(rest)
            self._over = True
            return scanner

    def went_by(self, block: bytes) -> None:
        """Search a block at once that the log, on a full disk, did not take."""
        if self.log.problem is not None:
            self.end().feed_block(block)

    def _sign_met(self) -> bool:
        for chunk in self._new():
            window = self._tail + chunk
            if any(sign in window for sign in self._signs):
                return True
            self._tail = window[-self._overlap :]
        return False

    def _caught_up(self) -> S:
        if self._scanner is None:
            self._scanner = self._make()
            with contextlib.suppress(OSError), self.log.path.open("rb") as file:
                self._scanner.skip_block(file.read(self._begin))
            self._at = self._begin
        for chunk in self._new():
            if block := self._blocks.feed(chunk):
                self._scanner.feed_block(block)
        return self._scanner

    def _new(self) -> Iterator[bytes]:
        with contextlib.suppress(OSError), self.log.path.open("rb") as file:
            file.seek(self._at)
            while chunk := file.read(_CHUNK):
                self._at = file.tell()
                yield chunk


def stream_searched(
    argv: Sequence[str],
    *,
    env: Mapping[str, str] | None,
    cwd: Path | str | None,
    on_block: Callable[[bytes], None],
    search: Search[S],
) -> tuple[int, S | None]:
    """`stream` into the log of this search; after a failure also its scanner, which has seen all of it."""

    def see(block: bytes) -> None:
        search.went_by(block)
        on_block(block)

    rc = stream(argv, env=env, cwd=cwd, log=search.log, on_block=see)
    return rc, search.end() if rc else None


def whole_lines(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Blocks of whole lines out of a file's chunks; a line ends as an editor counts it, with a line feed."""
    blocks = Blocks(carriage_return=False)
    for chunk in chunks:
        if block := blocks.feed(chunk):
            yield block
    if block := blocks.end():
        yield block
