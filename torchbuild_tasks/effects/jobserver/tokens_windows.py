"""The tokens as a named semaphore, which is gone with the last handle to it.

Windows gives a released token to whoever waits already, so one that we wait for is ours. Source:
learn.microsoft.com/windows/win32/sync/semaphore-objects.
"""

from __future__ import annotations

import ctypes
import functools
import os
import secrets
import sys
import threading
from ctypes import wintypes
from pathlib import Path
from typing import Any, Final

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

    def put(self, number: int) -> None:
        """Give out so many."""
        if number > 0 and not _kernel32().ReleaseSemaphore(self._handle, number, None):
            raise _error()

    def take(self, timeout: float) -> bool:
        """Take one back, if one gets free in time."""
        return bool(_kernel32().WaitForSingleObject(self._handle, int(timeout * 1000)) == 0)

    def free(self) -> int:
        """How many there are for anybody to take: told to whoever gives one back, so one is taken first."""
        with self._counting:  # a second thread that counts would miss the one that this one holds
            if not self.take(0):
                return 0
            before = wintypes.LONG()
            if not _kernel32().ReleaseSemaphore(self._handle, 1, ctypes.byref(before)):
                raise _error()
            return before.value + 1

    def note_held(self, processes: tuple[tuple[int, float], ...]) -> None:
        """Nothing: the job object of the build ends with us, and what is held in it."""

    def close(self) -> None:
        """Let go of it."""
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
