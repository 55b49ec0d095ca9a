"""Reads what a process says until it is over, and notices a signal meanwhile.

A daemon that the build left behind (a compiler cache's server) may hold the pipe open:
then the exit of the process and half a second of silence end it.
"""

from __future__ import annotations

import contextlib
import functools
import os
import queue
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import IO, Final

if sys.platform != "win32":
    import select
if sys.platform == "linux":
    import fcntl

IDLE: Final = 0.5
Chunks = AbstractContextManager[Iterator[bytes]]
_CHUNK: Final = 1 << 20  # of one read, and what the pipe holds where that can be said


def chunks(pipe: IO[bytes], is_over: Callable[[], bool]) -> Chunks:
    """A context in which one can go through what comes, and which closes the pipe.

    To be left after the process has been ended: whoever writes into a closed pipe dies,
    a Ninja that was asked to stop too, before it has removed what it had half done.
    """
    # glibc gives a freed chunk back to the kernel, and gets the next page by page, which is
    # half of all the time; until a larger one, though never touched, was freed.
    bytes(8 * _CHUNK)
    if sys.platform != "win32":
        return polled(pipe, is_over)
    return threaded(pipe, is_over)


if sys.platform != "win32":

    @contextlib.contextmanager
    def polled(pipe: IO[bytes], is_over: Callable[[], bool]) -> Iterator[Iterator[bytes]]:
        """Nothing is handed from thread to thread, which costs more than the reading itself."""
        with pipe:
            _widen(pipe)
            poll = select.poll()
            poll.register(pipe, select.POLLIN)
            yield _polled(pipe, poll, is_over)

    def _polled(pipe: IO[bytes], poll: select.poll, is_over: Callable[[], bool]) -> Iterator[bytes]:
        while True:
            if poll.poll(IDLE * 1000):
                if not (chunk := os.read(pipe.fileno(), _CHUNK)):
                    return
                yield chunk
            elif is_over():
                return


def _widen(pipe: IO[bytes]) -> None:
    """Let the pipe hold more: the build goes on while a chunk is looked at."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):  # the kernel may set a lower limit
            fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, _CHUNK)


@contextlib.contextmanager
def threaded(pipe: IO[bytes], is_over: Callable[[], bool]) -> Iterator[Iterator[bytes]]:
    """A thread reads, because Windows cannot wait for a pipe and a signal at once."""
    read: queue.Queue[bytes] = queue.Queue(maxsize=8)
    over = threading.Event()
    threading.Thread(target=_read, args=(pipe, read, over), daemon=True).start()
    try:
        yield iter(functools.partial(_next, read, is_over), b"")
    finally:
        over.set()
        with contextlib.suppress(queue.Empty):
            while True:  # room for the reader, if it waits for some: it goes on, and ends
                read.get_nowait()


def _next(read: queue.Queue[bytes], is_over: Callable[[], bool]) -> bytes:
    while True:
        with contextlib.suppress(queue.Empty):
            return read.get(timeout=IDLE)
        if is_over() and read.empty():
            return b""


def _read(pipe: IO[bytes], read: queue.Queue[bytes], over: threading.Event) -> None:
    """Read to the end; the empty chunk says so. The pipe is closed here and nowhere else."""
    with pipe:
        while not over.is_set() and (chunk := os.read(pipe.fileno(), _CHUNK)):
            read.put(chunk)
    read.put(b"")
