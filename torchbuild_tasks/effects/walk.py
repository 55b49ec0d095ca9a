"""Lists what a build may have written in a checkout, without following any link."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from pathlib import Path
from typing import Protocol

from torchbuild_tasks.effects.files import STATE_DIR

Stamp = tuple[int, int, int]


class Scope(Protocol):
    """Which paths count: `core.outputs.Outputs`, handed in by whoever starts the walk."""

    def matches(self, path: str) -> bool: ...
    def reaches(self, folder: str) -> bool: ...


def snapshot(root: Path, scope: Scope) -> dict[str, Stamp]:
    """Every path of the scope with its stamp (see core/outputs.py), folders with a final `/`.

    A folder that holds a `.git` is a repository of its own, and somebody's: it is left
    out with all it holds, and so is a folder that cannot be read.
    """
    found: dict[str, Stamp] = {}
    todo = [""]
    while todo:
        folder = todo.pop()
        entries = _entries(root / folder)
        if folder and any(entry.name == ".git" for entry in entries):
            found.pop(folder, None)
            continue
        for entry in entries:
            with contextlib.suppress(FileNotFoundError):
                info = entry.stat(follow_symlinks=False)
                path = folder + entry.name + ("/" if is_folder(info) else "")
                if scope.matches(path):
                    found[path] = stamp(info)
                if is_folder(info) and scope.reaches(path) and path != f"{STATE_DIR}/":
                    todo.append(path)
    return found


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        return list(entries)
    return []


def stamp(info: os.stat_result) -> Stamp:
    """Modified, size, changed; a folder's own size and times say nothing about what is in it.

    Windows keeps the time of creation where others keep that of the change: there the later
    one of this and the time of modification stands for it.
    """
    if is_folder(info):
        return (0, 0, info.st_ctime_ns)
    changed = max(info.st_ctime_ns, info.st_mtime_ns) if sys.platform == "win32" else info.st_ctime_ns
    return (info.st_mtime_ns, info.st_size, changed)


def is_folder(info: os.stat_result) -> bool:
    """A folder, and neither a symbolic link nor a junction to one."""
    return stat.S_ISDIR(info.st_mode) and not getattr(info, "st_reparse_tag", 0)


def is_link(path: Path) -> bool:
    """A symbolic link, or a junction to a folder."""
    with contextlib.suppress(OSError):
        info = path.lstat()
        return stat.S_ISLNK(info.st_mode) or (stat.S_ISDIR(info.st_mode) and not is_folder(info))
    return False
