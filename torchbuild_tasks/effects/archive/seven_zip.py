"""An installed 7-Zip program for 7z archives: quicker than py7zr, and trusted with nothing.

What it lists must be what py7zr reads from the headers, and afterwards the folder must
hold just that; in any doubt the caller starts again with py7zr.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from torchbuild_tasks.effects import process
from torchbuild_tasks.effects.archive.filling import Filling
from torchbuild_tasks.effects.archive.members import Tree, parts_of
from torchbuild_tasks.effects.helpers.marker import MARKER
from torchbuild_tasks.effects.walk import is_folder

PROGRAMS: Final = ("7zz", "7z", "7za")
_LIST_SECONDS: Final = 120.0
_PERCENT: Final = re.compile(rb"(\d+)%")


def find_program() -> str | None:
    """A 7-Zip program on PATH, or where its installer for Windows puts it without telling PATH."""
    found = next(filter(None, map(shutil.which, PROGRAMS)), None)
    programs = os.environ.get("PROGRAMFILES")  # of Windows; its names know no case
    return found or (shutil.which("7z", path=str(Path(programs) / "7-Zip")) if programs else None)


def unpack_with(program: str, archive: Path, filling: Filling) -> bool:
    """Unpack what `filling` has been announced; False when the result is not certain to be just that.

    An archive with links is left to py7zr. Raises Interrupted on Ctrl-C.
    """
    tree = filling.tree
    if tree.links or not _lists_the_same(program, archive, tree):
        return False
    progress = _Progress(filling)
    rc = process.stream(
        (program, "x", "-y", "-bso0", "-bsp1", "-sccUTF-8", f"-o{filling.folder}", "--", str(archive)),
        env=None,
        cwd=None,
        log=progress,
        on_block=lambda block: None,
    )
    if rc != 0 or not _is_just(filling.folder, tree):
        return False
    filling.found()
    return True


class _Progress:
    """Reads the percentages that 7-Zip prints, of which none ends a line."""

    def __init__(self, filling: Filling) -> None:
        self._filling = filling

    def write(self, data: bytes, /) -> None:
        """Take a piece of the output."""
        if shares := _PERCENT.findall(data):
            self._filling.done = self._filling.tree.size * min(int(shares[-1]), 100) // 100
            self._filling.tell()


def _lists_the_same(program: str, archive: Path, tree: Tree) -> bool:
    argv = (program, "l", "-slt", "-sccUTF-8", "-bd", "--", str(archive))
    listed = process.capture(argv, timeout=_LIST_SECONDS)
    if listed.rc != 0:
        return False
    files: dict[str, int] = {}
    folders: set[str] = set()
    try:
        for item in _items(listed.stdout.decode().splitlines()):
            path = "/".join(parts_of(item["Path"]))
            if item.get("Folder") == "+" or "D" in item["Attributes"].partition(" ")[0]:
                folders.add(path)
            else:
                files[path] = int(item["Size"] or 0)
    except (ValueError, KeyError):
        return False
    return files == tree.files and folders - {""} <= tree.folders


def _items(lines: Iterable[str]) -> Iterator[dict[str, str]]:
    """The members of a `-slt` listing: lines "Key = value" below a rule, an empty line after each."""
    below, item = False, dict[str, str]()
    for line in (*lines, ""):
        if not below:
            below = line.startswith("-----")
        elif line:
            key, _, value = line.partition(" = ")
            item[key.removesuffix(" =")] = value
        elif item:
            yield item
            item = {}


def _is_just(folder: Path, tree: Tree) -> bool:
    """Whether a folder holds what was announced, in size and kind, and nothing else."""
    files: dict[str, int] = {}
    folders: set[str] = set()
    todo = [""]
    while todo:
        below = todo.pop()
        with os.scandir(folder / below) as entries:
            for entry in entries:
                info, path = entry.stat(follow_symlinks=False), below + entry.name
                if is_folder(info):
                    folders.add(path)
                    todo.append(f"{path}/")
                elif entry.is_file(follow_symlinks=False):
                    files[path] = info.st_size
                else:
                    return False
    files.pop(MARKER, None)  # ours, and written anew at the end
    return files == tree.files and folders == tree.folders
