"""Questions of the probe to Linux itself; system_windows.py holds the same functions."""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchbuild_tasks.system.windows_memory import MemoryStatus

assert sys.platform != "win32"  # for mypy, which then skips this file on Windows


def disk_usage(path: Path) -> tuple[int, int]:
    """Return the total bytes of the file system, and those free to this user.

    Raises:
        OSError: the query fails.
    """
    usage = os.statvfs(path)
    return usage.f_blocks * usage.f_frsize, usage.f_bavail * usage.f_frsize


def volume(path: Path) -> str | None:
    """Return None: Linux has a file for it, see `machine.read_mounts`."""
    return None


def affinity() -> int | None:
    """Return cores that the scheduler lets this process run on (taskset, cpusets)."""
    try:
        return len(os.sched_getaffinity(0))
    except (AttributeError, OSError):
        return None


def release_and_machine() -> tuple[str | None, str | None]:
    """Return release and machine of uname(2)."""
    uname = os.uname()
    return uname.release, uname.machine


def glibc() -> str | None:
    """Return the C library under this process as confstr(3) names it; None where it is not glibc."""
    try:
        return os.confstr("CS_GNU_LIBC_VERSION")
    except (OSError, ValueError):
        return None


def memory_status() -> MemoryStatus | None:
    """Return None: Linux has files for it, see `machine.look_at_memory`."""
    return None


def registry_value(key: str, name: str) -> str | int | None:
    """Return None: there is no registry."""
    return None


def registry_keys(key: str) -> tuple[str, ...]:
    """Return nothing: there is no registry."""
    return ()


def file_version(path: Path) -> str | None:
    """Return None: programs carry no version resource."""
    return None


def open_files() -> tuple[int, int] | None:
    """Return the soft and the hard limit of open files (getrlimit); a limit of none is a large number."""
    try:
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    except (OSError, ValueError):
        return None
    soft, hard = (1 << 30 if each == resource.RLIM_INFINITY else each for each in limits)
    return soft, hard


def administrator() -> bool | None:
    """Say whether this is root."""
    return os.geteuid() == 0


def file_system(volume: str) -> str | None:
    """Return None: Linux has a file for it, see `machine.read_mounts`."""
    return None
