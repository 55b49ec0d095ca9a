"""Find the programs that have a file open on Windows.

By the Restart Manager (learn.microsoft.com/windows/win32/rstmgr) or, if that does not work, by psutil's list
of open files.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import time
from collections.abc import Iterator
from ctypes import wintypes
from pathlib import Path
from typing import Any, Final

_KEY_LENGTH: Final = 33  # CCH_RM_SESSION_KEY and the final 0
_ROOM: Final = 16  # names that an error shows
_LOOK_FOR: Final = 20.0  # seconds for the search by psutil


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
    """Return the programs that have the file open, as `ninja.exe (process 12)`; empty when unknown."""
    if sys.platform != "win32":
        return ()
    found = by_restart_manager(path)
    return tuple(by_open_files(path)) if found is None else found


def by_restart_manager(path: Path) -> tuple[str, ...] | None:
    """Return what the Restart Manager reports; None when it is missing or fails."""
    if sys.platform != "win32":
        return None
    try:
        manager = ctypes.WinDLL("rstrtmgr")
    except OSError:
        return None
    session = wintypes.DWORD()
    key = ctypes.create_unicode_buffer(_KEY_LENGTH)
    # Without a session key the Restart Manager is a stub.
    if manager.RmStartSession(ctypes.byref(session), 0, key) or not key.value:
        return None
    try:
        files = (wintypes.LPCWSTR * 1)(str(path.absolute()))
        if manager.RmRegisterResources(session, 1, files, 0, None, 0, None):
            return None
        return _list_names(manager, session)
    finally:
        manager.RmEndSession(session)


def _list_names(manager: Any, session: wintypes.DWORD) -> tuple[str, ...] | None:
    found = (_ProcessInfo * _ROOM)()
    needed = wintypes.UINT()
    reasons = wintypes.DWORD()
    count = wintypes.UINT(_ROOM)
    if manager.RmGetList(session, ctypes.byref(needed), ctypes.byref(count), found, ctypes.byref(reasons)):
        return None
    return tuple(f"{each.strAppName} (process {each.dwProcessId})" for each in found[: count.value])


def by_open_files(path: Path) -> Iterator[str]:
    """Yield the processes that have the file open, newest first, for a few seconds.

    It waits for each handle of each process, which takes a minute where there are many.
    """
    import psutil

    wanted = os.path.normcase(path.absolute())
    deadline = time.monotonic() + _LOOK_FOR
    for process in sorted(psutil.process_iter(), key=lambda each: -each.pid):
        if time.monotonic() > deadline:
            return
        with contextlib.suppress(psutil.Error, OSError):
            if any(os.path.normcase(file.path) == wanted for file in process.open_files()):
                yield f"{_name(process)}process {process.pid}"


def _name(process: Any) -> str:
    with contextlib.suppress(OSError):  # psutil.Error is not an OSError
        return f"{process.name()}, "
    return ""
