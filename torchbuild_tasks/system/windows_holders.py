"""Find the programs that have a file open on Windows, by the Restart Manager.

See learn.microsoft.com/windows/win32/rstmgr. psutil's open_files waits for each handle of each process there.
"""

from __future__ import annotations

import ctypes
import sys
from ctypes import wintypes
from pathlib import Path
from typing import Any, Final

_KEY_LENGTH: Final = 33  # CCH_RM_SESSION_KEY and the final 0
_ROOM: Final = 16  # names that an error shows


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
    try:
        manager = ctypes.WinDLL("rstrtmgr")
    except OSError:
        return ()
    session = wintypes.DWORD()
    key = ctypes.create_unicode_buffer(_KEY_LENGTH)
    # Without a session key the Restart Manager is a stub, as in wine.
    if manager.RmStartSession(ctypes.byref(session), 0, key) or not key.value:
        return ()
    try:
        files = (wintypes.LPCWSTR * 1)(str(path.absolute()))
        if manager.RmRegisterResources(session, 1, files, 0, None, 0, None):
            return ()
        return _list_names(manager, session)
    finally:
        manager.RmEndSession(session)


def _list_names(manager: Any, session: wintypes.DWORD) -> tuple[str, ...]:
    found = (_ProcessInfo * _ROOM)()
    needed = wintypes.UINT()
    reasons = wintypes.DWORD()
    count = wintypes.UINT(_ROOM)
    if manager.RmGetList(session, ctypes.byref(needed), ctypes.byref(count), found, ctypes.byref(reasons)):
        return ()
    return tuple(f"{each.strAppName} (process {each.dwProcessId})" for each in found[: count.value])
