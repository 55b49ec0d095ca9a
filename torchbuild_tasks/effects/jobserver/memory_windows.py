"""The memory of this moment on Windows, where programs are refused memory once commit is used up."""

from __future__ import annotations

import ctypes
import sys
from ctypes import wintypes

from torchbuild_tasks.model.pressure import MemoryState


class _Status(ctypes.Structure):
    """MEMORYSTATUSEX; its "page file" is commit: learn.microsoft.com/windows/win32/api/sysinfoapi."""

    _fields_ = (
        ("dwLength", wintypes.DWORD),
        ("dwMemoryLoad", wintypes.DWORD),
        *((name, ctypes.c_uint64) for name in ("total", "available", "commit", "commit_free")),
        *((name, ctypes.c_uint64) for name in ("virtual", "virtual_free", "extended")),
    )


class MemoryLook:
    """Call it for the memory of this moment."""

    def __call__(self) -> MemoryState:
        """Ask Windows; nothing is known where it does not answer."""
        status = _Status(dwLength=ctypes.sizeof(_Status))
        if sys.platform != "win32" or not ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status)):
            return MemoryState()
        return MemoryState(
            available=status.available,
            limit=status.commit,
            used=max(0, status.commit - status.commit_free),
        )
