"""Names what a run fills or removes, so that a later run knows what a killed one left."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path
from typing import Final

UNPACKING: Final = "unpacking"
REMOVING: Final = "removing"
DOWNLOADING: Final = "downloading"
FOLDERS: Final = (UNPACKING, REMOVING, DOWNLOADING)
WRITING: Final = "torchbuild-partial"  # a file, also in folders of others: no other program's has that name
_NAME: Final = re.compile(r"\.(?P<of>.+)\.(?P<pid>\d{1,9})\.(?P<doing>[a-z-]+)")


def temporary_name(path: Path, doing: str) -> Path:
    """Return the hidden name next to `path` of what this process fills, or removes."""
    return path.with_name(f".{path.name}.{os.getpid()}.{doing}")


def list_abandoned(parent: Path, *doings: str, name: str | None = None) -> list[Path]:
    """Return what has such a name in a folder and whose process is over, or is this one.

    Args:
        parent: the folder; one that cannot be read holds nothing.
        doings: what the process was at.
        name: only of the path with this name.
    """
    found = []
    with contextlib.suppress(OSError):
        for path in parent.iterdir():
            match = _NAME.fullmatch(path.name)
            if match is None or match["doing"] not in doings or name not in (None, match["of"]):
                continue
            if _is_over(int(match["pid"])):
                found.append(path)
    return found


def _is_over(pid: int) -> bool:
    import psutil  # seldom needed

    return pid == os.getpid() or not psutil.pid_exists(pid)


def owner_of(leftover: Path) -> str:
    """Return the name of the path that a leftover was to become, or was."""
    match = _NAME.fullmatch(leftover.name)
    return match["of"] if match else ""
