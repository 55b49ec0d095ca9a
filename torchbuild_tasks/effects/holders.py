"""Who holds a file on Windows, so that a person can be told what to close.

The Restart Manager knows it best (learn.microsoft.com/windows/win32/rstmgr); where it
does not work, psutil looks through the open files of every process that it may look at.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from collections.abc import Iterator
from ctypes import wintypes
from pathlib import Path
from typing import Any, Final

_KEY_LENGTH: Final = 33  # CCH_RM_SESSION_KEY and the final 0
_ROOM: Final = 16  # nobody reads more names


class _ProcessInfo(ctypes.Structure):
    """RM_PROCESS_INFO."""

    _fields_ = (
        ("dwProcessId", wintypes.DWORD),
        ("ProcessStartTime", wintypes.FILETIME),
        ("strAppName", wintypes.WCHAR * 256),
        ("strServiceShortName", wintypes.WCHAR * 64),
        ("ApplicationType", ctypes.c_int),
        ("AppStatus", wintypes.ULONG),
        ("TSSessionId", wintypes.DWORD),
        ("bRestartable", wintypes.BOOL),
    )


def holders(path: Path) -> tuple[str, ...]:
    """The programs that have the file open or loaded, as `ninja.exe (process 12)`; empty when unknown."""
    if sys.platform != "win32":
        return ()
    told = by_restart_manager(path)
    return tuple(by_open_files(path)) if told is None else told


def by_restart_manager(path: Path) -> tuple[str, ...] | None:
    """What the Restart Manager says; None when it is not there or fails."""
    if sys.platform != "win32":
        return None
    try:
        manager = ctypes.WinDLL("rstrtmgr")
    except OSError:
        return None
    session, key = wintypes.DWORD(), ctypes.create_unicode_buffer(_KEY_LENGTH)
    # A session without a key is none: the manager is an empty shell of itself.
    if manager.RmStartSession(ctypes.byref(session), 0, key) or not key.value:
        return None
    try:
        files = (wintypes.LPCWSTR * 1)(str(path.absolute()))
        if manager.RmRegisterResources(session, 1, files, 0, None, 0, None):
            return None
        return _listed(manager, session)
    finally:
        manager.RmEndSession(session)


def _listed(manager: Any, session: wintypes.DWORD) -> tuple[str, ...] | None:
    found, needed, reasons = (_ProcessInfo * _ROOM)(), wintypes.UINT(), wintypes.DWORD()
    count = wintypes.UINT(_ROOM)
    if manager.RmGetList(session, ctypes.byref(needed), ctypes.byref(count), found, ctypes.byref(reasons)):
        return None
    return tuple(f"{each.strAppName} (process {each.dwProcessId})" for each in found[: count.value])


def by_open_files(path: Path) -> Iterator[str]:
    """The processes that psutil sees the file open in."""
    import psutil

    wanted = os.path.normcase(path.absolute())
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if any(os.path.normcase(file.path) == wanted for file in process.open_files()):
                yield f"{_name(process)}process {process.pid}"


def _name(process: Any) -> str:
    with contextlib.suppress(OSError):  # psutil.Error is none
        return f"{process.name()}, "
    return ""
