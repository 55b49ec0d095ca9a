"""Detect a stalled program that downloads or uploads, so that it can be ended.

A time-out of pip's, uv's or twine's is for one wait: a byte every few seconds keeps a connection up for ever.
What such a program reads and writes in all, and what it computes, tells whether anything still moves.
"""

from __future__ import annotations

import contextlib
import os
import time
from typing import Final

from torchbuild_tasks.errors import UsageError

# pip waits 15 s for a response, six times: its own message is more precise than ours.
PATIENCE: Final = 180.0  # seconds
_LEAST: Final = 1024.0  # bytes a second, as for our own downloads
_SHARE: Final = 0.01  # of a processor: unpacking, resolving and compiling use far more, a trickle far less


def patience(usual: float) -> float:
    """Return the seconds after which a stalled program is ended: TORCHBUILD_STALL, else `usual`.

    Raises:
        UsageError: TORCHBUILD_STALL is not a number of seconds.
    """
    text = os.environ.get("TORCHBUILD_STALL")
    with contextlib.suppress(ValueError):
        if (seconds := float(text or usual)) >= 1:
            return seconds
    raise UsageError(f"TORCHBUILD_STALL={text} is not a number of seconds, 1 or more")


class Stalled(Exception):
    """A program made no progress for too long; the message says how long."""


class Pace:
    """Measures one program's progress; pass `look` as `on_idle` to `process.stream`."""

    def __init__(self, usual: float = PATIENCE) -> None:
        self._seconds = patience(usual)
        self._since = time.monotonic()
        self._before: tuple[float, int] | None = None

    def look(self, pid: int) -> None:
        """Compare the work since the last look of this kind; raises Stalled."""
        now = time.monotonic()
        took = now - self._since
        if self._before is not None and took < self._seconds:
            return
        work = _work(pid)
        before = self._before
        self._before = work
        self._since = now
        if before is None or work is None:
            return
        # The figures drop when a child ends: that is progress, too.
        computed = abs(work[0] - before[0])
        moved = abs(work[1] - before[1])
        if computed < _SHARE * took and moved < _LEAST * took:
            raise Stalled(
                f"it moved {moved} bytes in {took:.0f} s, less than {_LEAST:.0f} a second, and was ended"
            )


def _work(pid: int) -> tuple[float, int] | None:
    """Return the CPU seconds of a program and its descendants, and the bytes that they read and wrote.

    None if the system does not report it.
    """
    import psutil

    seconds = 0.0
    count = 0
    try:
        top = psutil.Process(pid)
        for each in (top, *top.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):
                moved = each.io_counters()
                # Linux: bytes of system calls, for much never reaches a disk. Windows: "other" has sockets.
                of_calls = getattr(moved, "read_chars", 0) + getattr(moved, "write_chars", 0)
                of_disk = moved.read_bytes + moved.write_bytes + getattr(moved, "other_bytes", 0)
                count += of_calls or of_disk
                seconds += sum(each.cpu_times()[:2])
    except (psutil.Error, OSError):
        return None
    # Every program has read something; wine counts nothing, so a zero means unknown.
    return (seconds, count) if count else None
