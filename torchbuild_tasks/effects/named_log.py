"""Reads a log that somebody names: a file, or what comes in by a pipe."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

from torchbuild_tasks.errors import UsageError

STDIN: Final = "-"
_CHUNK: Final = 512 * 1024
_NEXT: Final = "Name a log: diagnose PATH, or `-` for what comes in by a pipe."


def log_chunks(name: str) -> Iterator[bytes]:
    """The bytes of a log; of one that is still being written, as far as it is now.

    Raises:
        UsageError: it is no file, or cannot be read.
    """
    if name == STDIN:
        if sys.stdin.isatty():
            raise UsageError("Nothing comes in by a pipe.", next_step=_NEXT)
        yield from _chunks(sys.stdin.buffer, None)
        return
    path = Path(name).expanduser()
    if path.is_dir():
        raise UsageError(f"{path} is a folder.", next_step=_NEXT)
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            yield from _chunks(file, status.st_size if stat.S_ISREG(status.st_mode) else None)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.", next_step=_NEXT) from None


def _chunks(file: IO[bytes], size: int | None) -> Iterator[bytes]:
    """At most `size` bytes, or all there are: whoever writes on must not keep us for ever."""
    left = size
    while left is None or left > 0:
        chunk = file.read(_CHUNK if left is None else min(_CHUNK, left))
        if not chunk:
            return
        left = None if left is None else left - len(chunk)
        yield chunk
