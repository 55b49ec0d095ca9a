"""Memory, processes and tokens of a jobserver on Windows.

The tokens are a named semaphore, which disappears with its last handle. Windows gives a released token to a
thread that waits already, so a token that we wait for is ours. Source:
learn.microsoft.com/windows/win32/sync/semaphore-objects. Processes are suspended through psutil.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import secrets
import sys
import threading
import time
from collections.abc import Callable, Sequence
from ctypes import wintypes
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from torchbuild_tasks.build.jobserver.tokens import MemoryState, Running
from torchbuild_tasks.system.windows_memory import memory_status

if TYPE_CHECKING:
    import psutil

CAN_HOLD: Final = sys.platform == "win32"
# Seconds without CPU time after which a process counts as waiting: for a lock, a server, a network.
_IDLE: Final = 2.0
_MOST: Final = 1 << 15


class Tokens:
    """An empty pool of tokens. `folder` is for other systems.

    Raises:
        OSError: the system refuses a semaphore.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.auth = f"torchbuild-jobs-{os.getpid()}-{secrets.token_hex(4)}"
        self._handle: int | None = _kernel32().CreateSemaphoreW(None, 0, _MOST, self.auth)
        if not self._handle:
            raise _error()
        self._counting = threading.Lock()

    def give_out(self, number: int) -> None:
        """Add tokens to the pool."""
        if number > 0 and not _kernel32().ReleaseSemaphore(self._handle, number, None):
            raise _error()

    def take(self, timeout: float) -> bool:
        """Take a token out of the pool; false if none was free in time."""
        return bool(_kernel32().WaitForSingleObject(self._handle, int(timeout * 1000)) == 0)

    def free(self) -> int:
        """Return how many tokens are free; only ReleaseSemaphore reports that, so one is taken first."""
        with self._counting:  # a second thread that counts would miss the one that this one holds
            if not self.take(0):
                return 0
            before = wintypes.LONG()
            if not _kernel32().ReleaseSemaphore(self._handle, 1, ctypes.byref(before)):
                raise _error()
            return before.value + 1

    def note_held(self, processes: tuple[tuple[int, float], ...]) -> None:
        """Do nothing: the build's job object, and every suspended process in it, ends with this process."""

    def close(self) -> None:
        """Close the semaphore."""
        if self._handle:
            _kernel32().CloseHandle(self._handle)
            self._handle = None


@functools.cache
def _kernel32() -> Any:
    if sys.platform != "win32":
        raise OSError("only Windows has named semaphores of this kind")
    kernel32 = ctypes.WinDLL("kernel32", use_last_error=True)
    kernel32.CreateSemaphoreW.restype = wintypes.HANDLE
    long = wintypes.LONG
    kernel32.CreateSemaphoreW.argtypes = (ctypes.c_void_p, long, long, wintypes.LPCWSTR)
    kernel32.ReleaseSemaphore.argtypes = (wintypes.HANDLE, long, ctypes.c_void_p)
    kernel32.WaitForSingleObject.argtypes = (wintypes.HANDLE, wintypes.DWORD)
    kernel32.WaitForSingleObject.restype = wintypes.DWORD
    kernel32.CloseHandle.argtypes = (wintypes.HANDLE,)
    return kernel32


def _error() -> OSError:
    if sys.platform == "win32":
        return ctypes.WinError(ctypes.get_last_error())
    return OSError("only Windows has named semaphores of this kind")


# ---- processes


class Processes:
    """All descendants of this process and of the `also` processes, and those of them that are suspended.

    Args:
        also: returns the pids of other processes that work for the build; they are not counted themselves.
    """

    def __init__(self, also: Callable[[], Sequence[int]] = tuple) -> None:
        self._also = also
        self._held: dict[int, psutil.Process] = {}
        self._seen: dict[int, psutil.Process] = {}
        self._busy: dict[int, tuple[float, float]] = {}  # pid -> CPU seconds, and when they last changed

    def look(self) -> list[Running]:
        """Return the processes without children, with their present state."""
        now = time.monotonic()
        self._seen = {process.pid: process for process in self._leaves()}
        self._busy = {pid: seen for pid, seen in self._busy.items() if pid in self._seen}
        return [one for process in self._seen.values() if (one := self._read(process, now))]

    def hold(self, wanted: frozenset[int]) -> tuple[tuple[int, float], ...]:
        """Suspend exactly these processes and resume all others; return those suspended (pid, start)."""
        import psutil

        for pid in self._held.keys() - wanted:
            with contextlib.suppress(psutil.Error, OSError):
                self._held[pid].resume()
            self._busy.pop(pid, None)
            del self._held[pid]
        for pid in (wanted & self._seen.keys()) - self._held.keys():
            with contextlib.suppress(psutil.Error, OSError):
                self._seen[pid].suspend()
                self._held[pid] = self._seen[pid]
        return tuple((pid, process.create_time()) for pid, process in self._held.items())

    def _leaves(self) -> list[psutil.Process]:
        import psutil

        leaves: dict[int, psutil.Process] = {}
        for root in (os.getpid(), *self._also()):
            with contextlib.suppress(psutil.Error, OSError):
                leaves.update((each.pid, each) for each in psutil.Process(root).children(recursive=True))
        parents = set()
        for process in leaves.values():
            with contextlib.suppress(psutil.Error, OSError):
                parents.add(process.ppid())
        return [each for pid, each in leaves.items() if pid not in parents or pid in self._held]

    def _read(self, process: psutil.Process, now: float) -> Running | None:
        """Return the state of a process; its sizes are commit charge, which psutil calls the page file."""
        import psutil

        try:
            with process.oneshot():
                memory = process.memory_info()
                times = process.cpu_times()
                started = process.create_time()
        except (psutil.Error, OSError):
            return None
        size = int(getattr(memory, "pagefile", memory.rss))
        used = times.user + times.system
        before = self._busy.get(process.pid)
        if before is None or before[0] != used or process.pid in self._held:
            before = self._busy[process.pid] = (used, now)
        return Running(
            pid=process.pid,
            started=started,
            size=size,
            peak=max(size, int(getattr(memory, "peak_pagefile", 0))),
            held=process.pid in self._held,
            idle=now - before[1] > _IDLE,
        )


# ---- memory


class MemoryLook:
    """Reads the memory at each call."""

    def __call__(self) -> MemoryState:
        """Read the memory; all fields are None if Windows does not answer."""
        status = memory_status()
        if status is None:
            return MemoryState()
        return MemoryState(
            available=status.available,
            limit=status.commit_limit,
            used=max(0, status.commit_limit - status.commit_free),
        )
