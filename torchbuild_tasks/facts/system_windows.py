"""Questions of the probe to Windows itself; system_posix.py holds the same functions."""

from __future__ import annotations

import ctypes
import os
import sys
from ctypes import wintypes
from pathlib import Path
from typing import Any, Final

from torchbuild_tasks.system.windows_memory import memory_status as memory_status

assert sys.platform == "win32"  # for mypy, which then skips this file elsewhere

import winreg  # noqa: E402 - exists nowhere else

_HIVES = {"HKLM": winreg.HKEY_LOCAL_MACHINE, "HKCU": winreg.HKEY_CURRENT_USER}
_READ: Final = winreg.KEY_READ | winreg.KEY_WOW64_64KEY


def _library(name: str, **functions: list[Any]) -> Any:
    """Return a DLL with the argument types of some of its functions; handles are pointers, not ints."""
    library = ctypes.WinDLL(name, use_last_error=True)
    for function, types in functions.items():
        getattr(library, function).argtypes = types
    return library


def disk_usage(path: Path) -> tuple[int, int]:
    """Return the total bytes of the volume, and those free to this user (shutil ignores quotas).

    Raises:
        OSError: the query of the volume fails.
    """
    free = ctypes.c_ulonglong()
    total = ctypes.c_ulonglong()
    kernel = _library("kernel32")
    if not kernel.GetDiskFreeSpaceExW(str(path), ctypes.byref(free), ctypes.byref(total), None):
        raise ctypes.WinError(ctypes.get_last_error())
    return total.value, free.value


def volume(path: Path) -> str | None:
    """Return the drive, or the folder that a volume is mounted on, that holds `path`."""
    buffer = ctypes.create_unicode_buffer(32768)
    succeeded = _library("kernel32").GetVolumePathNameW(str(path), buffer, len(buffer))
    return buffer.value if succeeded else None


def affinity() -> int | None:
    """Return cores that this process may run on; None above 64, where one mask cannot tell."""
    size = ctypes.sizeof(ctypes.c_void_p)
    own = ctypes.c_size_t()
    machine = ctypes.c_size_t()
    kernel = _library("kernel32", GetProcessAffinityMask=[wintypes.HANDLE, *[ctypes.c_void_p] * 2])
    kernel.GetCurrentProcess.restype = wintypes.HANDLE
    masks = (ctypes.byref(own), ctypes.byref(machine))
    if (os.cpu_count() or 1) > 8 * size:
        return None
    if not kernel.GetProcessAffinityMask(kernel.GetCurrentProcess(), *masks):
        return None
    return own.value.bit_count() or None


def release_and_machine() -> tuple[str | None, str | None]:
    """Return major, minor and build; the processor of the machine, also for a 32-bit process.

    `platform` would ask WMI, which can take seconds.
    """
    windows = sys.getwindowsversion()
    machine = os.environ.get("PROCESSOR_ARCHITEW6432") or os.environ.get("PROCESSOR_ARCHITECTURE")
    return f"{windows.major}.{windows.minor}.{windows.build}", machine


def glibc() -> str | None:
    """Return None: Windows has another C library."""
    return None


def registry_value(key: str, name: str) -> str | int | None:
    """Return a text or number of a key (HKLM\\SOFTWARE\\x), 64-bit view; "" is the default value."""
    try:
        with _open(key) as handle:
            value = winreg.QueryValueEx(handle, name)[0]
    except (OSError, ValueError):
        return None
    return value if isinstance(value, (str, int)) else None


def registry_keys(key: str) -> tuple[str, ...]:
    """Return the keys below a key; empty when it cannot be read."""
    try:
        with _open(key) as handle:
            return tuple(winreg.EnumKey(handle, number) for number in range(winreg.QueryInfoKey(handle)[0]))
    except (OSError, ValueError):
        return ()


def _open(key: str) -> winreg.HKEYType:
    hive, _, path = key.partition("\\")
    return winreg.OpenKey(_HIVES[hive], path, 0, _READ)


def file_version(path: Path) -> str | None:
    """Return the four numbers of a program's version resource (VS_FIXEDFILEINFO)."""
    library = _library("version", VerQueryValueW=[ctypes.c_void_p, wintypes.LPCWSTR, *[ctypes.c_void_p] * 2])
    size = library.GetFileVersionInfoSizeW(str(path), None)
    data = ctypes.create_string_buffer(size) if size else None
    if data is None or not library.GetFileVersionInfoW(str(path), 0, size, data):
        return None
    info = ctypes.POINTER(wintypes.DWORD)()
    length = wintypes.UINT()
    if not library.VerQueryValueW(data, "\\", ctypes.byref(info), ctypes.byref(length)) or length.value < 16:
        return None
    # Signature, structure version, then the file's version as two words of two numbers each.
    return ".".join(str(part) for word in (info[2], info[3]) for part in (word >> 16, word & 0xFFFF))


def open_files() -> tuple[int, int] | None:
    """Return None: Windows has no such limit for a process."""
    return None


def administrator() -> bool | None:
    """Say whether this process has an administrator's rights."""
    return bool(_library("shell32").IsUserAnAdmin())


def file_system(volume: str) -> str | None:
    """Return GetVolumeInformation's name for the file system of a volume ("C:\\")."""
    buffer = ctypes.create_unicode_buffer(64)
    library = _library(
        "kernel32", GetVolumeInformationW=[wintypes.LPCWSTR, *[ctypes.c_void_p] * 6, wintypes.DWORD]
    )
    succeeded = library.GetVolumeInformationW(volume, None, None, None, None, None, buffer, len(buffer))
    return buffer.value if succeeded else None
