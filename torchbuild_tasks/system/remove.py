"""List and remove folders without following links.

`snapshot` lists the possible outputs of builds in a checkout; the other functions remove folders of this
tool, and leftovers of its killed runs.
"""

from __future__ import annotations

import contextlib
import fnmatch
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Protocol

from torchbuild_tasks.errors import TorchbuildError
from torchbuild_tasks.system.files import (
    FOLDERS,
    REMOVING,
    STATE_DIR,
    UNPACKING,
    Patience,
    list_abandoned,
    replace,
    temporary_name,
    translate_errors,
)

Stamp = tuple[int, int, int]
_LIFTED: Final = "too-deep"
# Characters; deeper folders are moved up first: a path may have 4,096 bytes, a Python stack 1,000 calls.
# Killed programs that test the depth of paths (autoconf's getcwd test) leave such folders.
_DEEP: Final = 1000
_LONGEST: Final = 4000  # bytes; Linux takes 4,096 for a path


class Scope(Protocol):
    """Selects paths; implemented by `Outputs`."""

    def matches(self, path: str) -> bool: ...
    def reaches(self, folder: str) -> bool: ...


def snapshot(root: Path, scope: Scope) -> dict[str, Stamp]:
    """Return every path in scope with its stamp (see build/outputs.py), folders with a final `/`.

    A folder that holds a `.git` is a repository of its own, and the user's: it is left
    out with all it holds, and so is a folder that cannot be read.
    """
    found: dict[str, Stamp] = {}
    todo = [""]
    while todo:
        folder = todo.pop()
        entries = list_entries(root / folder)
        if folder and any(entry.name == ".git" for entry in entries):
            found.pop(folder, None)
            continue
        for entry in entries:
            with contextlib.suppress(OSError):  # removed meanwhile, or too deep for a path
                info = entry.stat(follow_symlinks=False)
                path = folder + entry.name + ("/" if is_folder(info) else "")
                if scope.matches(path):
                    found[path] = stamp(info)
                if is_folder(info) and scope.reaches(path) and path != f"{STATE_DIR}/":
                    todo.append(path)
    return found


def list_entries(folder: Path | str) -> list[os.DirEntry[str]]:
    """Return the entries of a folder; empty if it cannot be listed."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        return list(entries)
    return []


def stamp(info: os.stat_result) -> Stamp:
    """Return mtime, size and ctime; for a folder only ctime: its size and mtime say nothing about its files.

    Windows keeps the time of creation where others keep that of the change: there the later
    one of this and the time of modification stands for it.
    """
    if is_folder(info):
        return (0, 0, info.st_ctime_ns)
    changed = max(info.st_ctime_ns, info.st_mtime_ns) if sys.platform == "win32" else info.st_ctime_ns
    return (info.st_mtime_ns, info.st_size, changed)


def is_folder(info: os.stat_result) -> bool:
    """Say whether it is a folder, and neither a symbolic link nor a junction to one."""
    return stat.S_ISDIR(info.st_mode) and not getattr(info, "st_reparse_tag", 0)


def is_link(path: Path) -> bool:
    """Say whether it is a symbolic link, or a junction to a folder."""
    with contextlib.suppress(OSError):
        info = path.lstat()
        return stat.S_ISLNK(info.st_mode) or (stat.S_ISDIR(info.st_mode) and not is_folder(info))
    return False


# ---------------- folders of this tool, and leftovers of killed runs


def leftovers(parent: Path, name: str | None = None) -> list[Path]:
    """Return the temporary folders of killed runs in `parent`, for one path or all."""
    return [
        path for path in list_abandoned(parent, *FOLDERS, name=name) if path.is_dir() and not is_link(path)
    ]


@contextlib.contextmanager
def unfinished_folder(
    path: Path, error: type[TorchbuildError], doing: str = UNPACKING, *, private: bool = False
) -> Iterator[Path]:
    """Create the hidden folder in which `path` is filled; remove those of killed runs before, and it after.

    Args:
        path, doing: as for `temporary_name`.
        private: for this user alone.
    """
    folder = temporary_name(path, doing)
    for old in leftovers(path.parent, path.name):
        discard(old)
    with translate_errors(error, folder):
        folder.mkdir(mode=0o700 if private else 0o777, parents=True)
    try:
        yield folder
    finally:
        discard(folder)


def remove_tree(folder: Path) -> int:
    """Remove a folder with its content; return the bytes of its files. Links are removed, not followed.

    Raises:
        OSError: something in it cannot be removed.
    """
    patience = Patience()
    size = _empty(folder, patience, len(str(folder)) + _DEEP, folder)
    while too_deep := sorted(folder.glob(f".*.{_LIFTED}")):
        for each in too_deep:
            size += _empty(each, patience, len(str(folder)) + _DEEP, folder)
            patience.rmdir(each)
    patience.rmdir(folder)
    return size


def _empty(folder: Path, patience: Patience, longest: int, top: Path) -> int:
    size = 0
    with os.scandir(folder) as entries:
        listed = list(entries)
    for entry in listed:
        path = Path(entry.path)
        info = entry.stat(follow_symlinks=False)
        if not is_folder(info):
            patience.unlink(path)
            size += info.st_size
        elif len(entry.path) > longest:
            patience.replace(path, top / f".{os.urandom(4).hex()}.{_LIFTED}")
        elif folder != top or not fnmatch.fnmatchcase(entry.name, f".*.{_LIFTED}"):
            size += _empty(path, patience, longest, top)
            patience.rmdir(path)
    return size


def discard(folder: Path) -> None:
    """Remove a folder after a failure; ignore errors, so that the original one is reported."""
    if os.path.lexists(folder):
        with contextlib.suppress(OSError):
            remove_tree(folder)


def size_of(folder: Path) -> int:
    """Return the bytes of all files in a folder, without following links."""
    size = 0
    todo = [folder]
    while todo:
        with os.scandir(todo.pop()) as entries:
            for entry in entries:
                if len(os.fsencode(entry.path)) < _LONGEST:
                    info = entry.stat(follow_symlinks=False)
                    if is_folder(info):
                        todo.append(Path(entry.path))
                    else:
                        size += info.st_size
    return size


def rename_and_remove(folder: Path) -> int:
    """Rename, then remove a folder, so that a kill leaves nothing that looks complete.

    Raises:
        OSError: it cannot be renamed or removed.
    """
    away = temporary_name(folder, REMOVING)
    replace(folder, away)
    return remove_tree(away)
