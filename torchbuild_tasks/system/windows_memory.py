"""Read the memory of a Windows machine.

Not psutil (7.2.2): it passes on the first half of what the system says, and reckons what is left
of page files by a performance counter; a program is refused memory when commit is used up.
"""

from __future__ import annotations

import ctypes
import sys
from typing import NamedTuple


class MemoryStatus(NamedTuple):
    """Bytes of memory, and of commit: the limit of allocations, memory plus page files."""

    total: int
    available: int
    commit_limit: int
    commit_free: int


class _MemoryStatusEx(ctypes.Structure):
    """MEMORYSTATUSEX; its "page file" fields are commit: learn.microsoft.com/windows/win32/api/sysinfoapi."""

    _fields_ = (
        ("length", ctypes.c_uint32),
        ("load", ctypes.c_uint32),
        *((name, ctypes.c_uint64) for name in MemoryStatus._fields),
        *((name, ctypes.c_uint64) for name in ("virtual", "virtual_free", "extended_virtual_free")),
    )


def memory_status() -> MemoryStatus | None:
    """Return the result of GlobalMemoryStatusEx; None if it fails, and on other systems."""
    status = _MemoryStatusEx(length=ctypes.sizeof(_MemoryStatusEx))
    if sys.platform != "win32" or not ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status)):
        return None
    return MemoryStatus(*(getattr(status, name) for name in MemoryStatus._fields))
