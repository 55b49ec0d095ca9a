"""Lays the files of several parts into one folder: as hard links, for gigabytes need not be there twice."""

from __future__ import annotations

import filecmp
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from torchbuild_tasks.errors import ArchiveRefused, DownloadFailed
from torchbuild_tasks.system.archive.members import RESERVED
from torchbuild_tasks.system.files import told_as
from torchbuild_tasks.system.remove import is_folder

# What the packing of a wheel left behind, and is no part of a toolkit.
_SKIPPED: Final = frozenset(("__init__.py", "__pycache__", ".metadata", RESERVED))
LICENSES: Final = "licenses"


class Merged:
    """A toolkit's folder while it is filled.

    Args:
        folder: an empty folder on the file system of the parts, or the files are copied.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._from: dict[Path, Path] = {}

    def add(self, part: Path, inside: str) -> None:
        """Lay the content of one folder of a part into the toolkit.

        Raises:
            ArchiveRefused: another part has brought one of its files, with another content.
            DownloadFailed: the part is not there, or the folder cannot be written.
        """
        root = part / inside
        if not root.is_dir():
            raise DownloadFailed(
                f"A part of the CUDA toolkit is not there: {part.name}.",
                looked=(f"{root}: no such folder",),
                next_step="Run the same command again: it fetches what is missing.",
            )
        for path in _files(root):
            relative = path.relative_to(root)
            if len(relative.parts) == 1 and relative.name.lower().startswith("license"):
                relative = Path(LICENSES, part.name, relative.name)  # every part has one, each its own
            self._lay(part, path, relative)

    def _lay(self, part: Path, path: Path, relative: Path) -> None:
        place = self.folder / relative
        with told_as(DownloadFailed, place):
            if os.path.lexists(place):
                if not _same(path, place):
                    raise _both(relative, self._from.get(relative, self.folder), part)
                return
            place.parent.mkdir(parents=True, exist_ok=True)
            _link(path, place)
        self._from[relative] = part


def _files(folder: Path) -> Iterator[Path]:
    """All files and links below a folder, in an order that is always the same."""
    for path in sorted(folder.iterdir()):
        if path.name in _SKIPPED:
            continue
        if is_folder(path.lstat()):
            yield from _files(path)
        else:
            yield path


def _same(one: Path, other: Path) -> bool:
    if one.is_symlink() or other.is_symlink():
        return one.is_symlink() and other.is_symlink() and one.readlink() == other.readlink()
    return other.is_file() and filecmp.cmp(one, other, shallow=False)


def _link(path: Path, place: Path) -> None:
    if path.is_symlink():
        place.symlink_to(path.readlink())
        return
    try:
        os.link(path, place)
    except OSError:  # another file system, or one that has no hard links
        shutil.copy2(path, place)


def _both(relative: Path, one: Path, other: Path) -> ArchiveRefused:
    return ArchiveRefused(
        f"Two parts of the CUDA toolkit bring {relative.as_posix()}, and not the same.",
        looked=(f"one is of {one.name}", f"the other is of {other.name}"),
        next_step="Nothing was put together. These parts do not belong to one release: compare their "
        "versions with what NVIDIA publishes together.",
    )
