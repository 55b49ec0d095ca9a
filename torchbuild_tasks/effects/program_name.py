"""The name of the program that a process runs now."""

from __future__ import annotations

import contextlib
import ctypes
import sys
from pathlib import Path
from typing import Final

_QUERY: Final = 0x1000  # PROCESS_QUERY_LIMITED_INFORMATION
_LONGEST: Final = 32_768


def program_name(pid: int) -> str:
    """Its file name ("cl.exe"), on Linux at most the first 15 letters of it; "" where it has ended."""
    if sys.platform == "win32":
        return _on_windows(pid).rpartition("\\")[2]
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text("utf-8", "replace").rstrip("\n")
    return ""


if sys.platform == "win32":

    def _on_windows(pid: int) -> str:
        kernel32 = ctypes.WinDLL("kernel32", use_last_error=True)
        kernel32.OpenProcess.restype = ctypes.c_void_p
        kernel32.QueryFullProcessImageNameW.argtypes = (
            ctypes.c_void_p,
            ctypes.c_uint32,
            ctypes.c_wchar_p,
            ctypes.POINTER(ctypes.c_uint32),
        )
        kernel32.CloseHandle.argtypes = (ctypes.c_void_p,)
        process = kernel32.OpenProcess(_QUERY, False, pid)
        if not process:
            return ""
        try:
            size = ctypes.c_uint32(_LONGEST)
            name = ctypes.create_unicode_buffer(_LONGEST)
            done = kernel32.QueryFullProcessImageNameW(process, 0, name, ctypes.byref(size))
            return name.value if done else ""
        finally:
            kernel32.CloseHandle(process)
