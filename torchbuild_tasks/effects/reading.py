"""Read what a process says from its pipes, never waiting so long that a signal goes unnoticed.

Windows cannot wait for a pipe and a signal at once, so a thread reads each pipe there.
Elsewhere nothing is handed from thread to thread, which costs more than the reading itself.
"""

from __future__ import annotations

import contextlib
import os
import queue
import sys
import threading
from typing import IO, Final, NamedTuple

if sys.platform != "win32":
    import select
if sys.platform == "linux":
    import fcntl

IDLE: Final = 0.5  # seconds; no read waits longer
_CHUNK: Final = 1 << 20  # bytes of one read, and what a widened pipe holds


class Chunk(NamedTuple):
    """What one read brought: the number of the pipe, and bytes; none at the end of that pipe."""

    pipe: int
    data: bytes


def widen(pipe: IO[bytes]) -> None:
    """Let a pipe hold more, so that a build goes on while a chunk is looked at.

    Not for short answers: the kernel gives every pipe of a user less once many are wide
    (pipe-user-pages-soft in pipe(7)).
    """
    # glibc gives a freed chunk back to the kernel, and gets the next page by page, which is
    # half of all the time; until a larger one, though never touched, was freed.
    bytes(8 * _CHUNK)
    if sys.platform == "linux":
        with contextlib.suppress(OSError):  # the kernel may set a lower limit
            fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, _CHUNK)


class Threaded:
    """Pipes that threads read; `open` until all have ended.

    A context that closes the pipes. To be left after the process has been ended: whoever
    writes into a closed pipe dies, a Ninja that was asked to stop too, before it has
    removed what it had half done.
    """

    def __init__(self, *pipes: IO[bytes]) -> None:
        self._read: queue.Queue[Chunk] = queue.Queue(maxsize=8)
        self._over = threading.Event()
        self._left = len(pipes)
        for number, pipe in enumerate(pipes):
            threading.Thread(target=self._read_all, args=(number, pipe), daemon=True).start()

    def __enter__(self) -> Threaded:
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        with contextlib.suppress(queue.Empty):
            while True:  # room for the reader, if it waits for some: it goes on, and ends
                self._read.get_nowait()

    @property
    def open(self) -> bool:
        """Whether more can come."""
        return self._left > 0

    def read(self, seconds: float) -> Chunk | None:
        """Return what came; None when nothing does for `seconds`, `IDLE` at most."""
        try:
            chunk = self._read.get(timeout=min(seconds, IDLE))
        except queue.Empty:
            return None
        self._left -= not chunk.data
        return chunk

    def _read_all(self, number: int, pipe: IO[bytes]) -> None:
        """Read to the end. The pipe is closed here alone: to close it under a read waits for the read."""
        with pipe:
            while not self._over.is_set() and (data := os.read(pipe.fileno(), _CHUNK)):
                self._read.put(Chunk(number, data))
        self._read.put(Chunk(number, b""))


if sys.platform != "win32":

    class Polled:
        """The same, with poll(2)."""

        def __init__(self, *pipes: IO[bytes]) -> None:
            self._pipes = pipes
            self._numbers = {pipe.fileno(): number for number, pipe in enumerate(pipes)}
            self._ready: list[int] = []
            self._poll = select.poll()
            for descriptor in self._numbers:
                self._poll.register(descriptor, select.POLLIN)

        def __enter__(self) -> Polled:
            return self

        def __exit__(self, *_: object) -> None:
            for pipe in self._pipes:
                pipe.close()

        @property
        def open(self) -> bool:
            """Whether more can come."""
            return bool(self._numbers)

        def read(self, seconds: float) -> Chunk | None:
            """Return what came; None when nothing does for `seconds`, `IDLE` at most."""
            if not self._ready:
                self._ready = [found for found, _ in self._poll.poll(1000 * min(seconds, IDLE))]
            if not self._ready:
                return None
            descriptor = self._ready.pop()
            chunk = Chunk(self._numbers[descriptor], os.read(descriptor, _CHUNK))
            if not chunk.data:
                self._poll.unregister(descriptor)
                del self._numbers[descriptor]
            return chunk


if sys.platform == "win32":
    Reader = Threaded
else:
    Reader = Polled
