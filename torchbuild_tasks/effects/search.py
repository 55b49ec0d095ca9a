"""Runs a build and has its log searched for the error, but only once it has failed.

Searching costs many times what reading and writing the log costs. A build that goes well
is not searched at all, and a failed one from the log on disk, in a second or two.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol, TypeVar

from torchbuild_tasks.effects.blocks import Blocks
from torchbuild_tasks.effects.log import Log
from torchbuild_tasks.effects.process import stream

_CHUNK: Final = 512 * 1024


class Scanner(Protocol):
    """What searches; core's LogScanner."""

    def skip_block(self, block: bytes, /) -> None: ...
    def feed_block(self, block: bytes, /) -> None: ...


S = TypeVar("S", bound=Scanner)


def stream_searched(
    argv: Sequence[str],
    *,
    env: Mapping[str, str] | None,
    cwd: Path | str | None,
    log: Log,
    on_block: Callable[[bytes], None],
    make_scanner: Callable[[], S],
) -> tuple[int, S | None]:
    """`stream`; after a failure also a scanner that has seen all of it (lines before it in the log count)."""
    start = log.path.stat().st_size
    live: S | None = None

    def see(block: bytes) -> None:
        nonlocal live
        if log.problem and live is None:  # the disk is full: from here on it is searched as it goes by
            live = make_scanner()
            _search(log.path, start, live)
        if live is not None:
            live.feed_block(block)
        on_block(block)

    rc = stream(argv, env=env, cwd=cwd, log=log, on_block=see)
    if rc == 0:
        return rc, None
    if live is None:
        live = make_scanner()
        _search(log.path, start, live)
    return rc, live


def whole_lines(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Blocks of whole lines out of a file's chunks; a line ends as an editor counts it, with a line feed."""
    blocks = Blocks(carriage_return=False)
    for chunk in chunks:
        if block := blocks.feed(chunk):
            yield block
    if block := blocks.end():
        yield block


def _search(path: Path, start: int, scanner: Scanner) -> None:
    with contextlib.suppress(OSError), path.open("rb") as file:
        scanner.skip_block(file.read(start))
        for block in whole_lines(iter(lambda: file.read(_CHUNK), b"")):
            scanner.feed_block(block)
