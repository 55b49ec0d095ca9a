"""What the door asks Linux itself; system_windows.py holds the same functions."""

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
    """Total bytes of the file system, and those free to this user. Raises OSError."""
    usage = os.statvfs(path)
    return usage.f_blocks * usage.f_frsize, usage.f_bavail * usage.f_frsize


def volume(path: Path) -> str | None:
    """None: the mount table is a file here, see mounts.py."""
    return None


def affinity() -> int | None:
    """Cores that the scheduler lets this process run on (taskset, cpusets)."""
    try:
        return len(os.sched_getaffinity(0))
    except (AttributeError, OSError):
        return None


def release_and_machine() -> tuple[str | None, str | None]:
    """What uname(2) says."""
    said = os.uname()
    return said.release, said.machine


def glibc() -> str | None:
    """The C library under this process as confstr(3) names it; None where it is not glibc."""
    try:
        return os.confstr("CS_GNU_LIBC_VERSION")
    except (OSError, ValueError):
        return None


def memory_status() -> MemoryStatus | None:
    """None: the kernel says it in files, see memory.py."""
    return None


def registry_value(key: str, name: str) -> str | int | None:
    """None: there is no registry."""
    return None


def registry_keys(key: str) -> tuple[str, ...]:
    """Nothing: there is no registry."""
    return ()


def file_version(path: Path) -> str | None:
    """None: programs carry no version resource."""
    return None


def open_files() -> tuple[int, int] | None:
    """The soft and the hard limit of open files (getrlimit); a limit of none is a large number."""
    try:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    except (OSError, ValueError):
        return None
    many = 1 << 30
    return (
        many if soft == resource.RLIM_INFINITY else soft,
        many if hard == resource.RLIM_INFINITY else hard,
    )


def administrator() -> bool | None:
    """Whether this is root."""
    return os.geteuid() == 0


def file_system(volume: str) -> str | None:
    """None: the mount table is a file here, see mounts.py."""
    return None
