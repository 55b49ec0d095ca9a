"""Removes folders of ours, never through a link, and what killed runs have left."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path
from typing import Final

from torchbuild_tasks.effects.files import Patience, replace
from torchbuild_tasks.effects.walk import is_folder

UNPACKING: Final = "unpacking"
REMOVING: Final = "removing"
_LEFTOVER: Final = re.compile(rf"\.(?P<id>.+)\.(?P<pid>\d{{1,9}})\.(?:{UNPACKING}|{REMOVING})")


def hidden(folder: Path, doing: str) -> Path:
    """The name beside `folder` of what this process is making, or taking away."""
    return folder.with_name(f".{folder.name}.{os.getpid()}.{doing}")


def leftovers(parent: Path, name: str | None = None) -> list[Path]:
    """Folders with such names whose process is over, or is this one; of one folder, or of all."""
    import psutil

    found = []
    with contextlib.suppress(OSError):
        for path in parent.iterdir():
            match = _LEFTOVER.fullmatch(path.name)
            if match and name in (None, match["id"]) and is_folder(path.lstat()):
                pid = int(match["pid"])
                if pid == os.getpid() or not psutil.pid_exists(pid):
                    found.append(path)
    return found


def owner_of(leftover: Path) -> str:
    """The name of the folder that a leftover was to become, or was."""
    match = _LEFTOVER.fullmatch(leftover.name)
    return match["id"] if match else ""


def remove_tree(folder: Path, patience: Patience | None = None) -> int:
    """Remove a folder and all in it; returns the bytes of its files. A link is removed, never followed.

    Raises:
        OSError: something in it cannot be removed.
    """
    patience, size = patience or Patience(), 0
    with os.scandir(folder) as entries:
        listed = list(entries)
    for entry in listed:
        info = entry.stat(follow_symlinks=False)
        if is_folder(info):
            size += remove_tree(Path(entry.path), patience)
        else:
            patience.unlink(Path(entry.path))
            size += info.st_size
    patience.rmdir(folder)
    return size


def discard(folder: Path) -> None:
    """Remove what a failure left, as far as that goes: the error under way is the one to tell."""
    if os.path.lexists(folder):
        with contextlib.suppress(OSError):
            remove_tree(folder)


def size_of(folder: Path) -> int:
    """The bytes of all files in a folder, without following links."""
    size = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            info = entry.stat(follow_symlinks=False)
            size += size_of(Path(entry.path)) if is_folder(info) else info.st_size
    return size


def take_away(folder: Path) -> int:
    """Remove a folder so that a kill on the way leaves nothing that looks whole: rename it first.

    Raises:
        OSError: it cannot be renamed or removed.
    """
    away = hidden(folder, REMOVING)
    replace(folder, away)
    return remove_tree(away)
