"""Runs a build and has its log searched for the error, but only once it has failed.

Searching costs ten times what reading and writing the log costs. A build that goes well
is not searched at all, and a failed one from the log on disk, in a second or two.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

from torchbuild_tasks.effects.blocks import Blocks
from torchbuild_tasks.effects.log import Log
from torchbuild_tasks.effects.process import stream

_CHUNK: Final = 512 * 1024


class Scanner(Protocol):
    """What searches; core's FirstErrorScanner."""

    def skip_block(self, block: bytes, /) -> None: ...
    def feed_block(self, block: bytes, /) -> None: ...


def stream_searched(
    argv: Sequence[str],
    *,
    env: Mapping[str, str] | None,
    cwd: Path | str | None,
    log: Log,
    on_block: Callable[[bytes], None],
    scanner: Scanner,
) -> int:
    """`stream`, and after a failure the scanner has seen all of it; lines before it in the log count."""
    start, live = log.path.stat().st_size, False

    def see(block: bytes) -> None:
        nonlocal live
        if log.problem and not live:  # the disk is full: from here on it is searched as it goes by
            _search(log.path, start, scanner)
            live = True
        if live:
            scanner.feed_block(block)
        on_block(block)

    rc = stream(argv, env=env, cwd=cwd, log=log, on_block=see)
    if rc != 0 and not live:
        _search(log.path, start, scanner)
    return rc


def _search(path: Path, start: int, scanner: Scanner) -> None:
    blocks = Blocks()
    with contextlib.suppress(OSError), path.open("rb") as file:
        scanner.skip_block(file.read(start))
        while chunk := file.read(_CHUNK):
            scanner.feed_block(blocks.feed(chunk))
        scanner.feed_block(blocks.end())
