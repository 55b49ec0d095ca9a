"""What a toolkit on Linux has besides the files of its parts: links, stubs, the right to run programs."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

from torchbuild_tasks.effects.toolkits.stubs import add_stubs

_SHARED: Final = re.compile(r"(lib.+\.so)((?:\.\d+)+)")
_LIBRARIES: Final = ("lib", "nvvm/lib64")
_PROGRAMS: Final = ("bin", "nvvm/bin")


def complete(folder: Path, note: Callable[[str], None]) -> None:
    """Make `lib64`, the names that a linker looks for (`libX.so`), stubs, and programs that can be run.

    Raises:
        OSError: something cannot be written.
    """
    if (folder / "lib").is_dir() and not (folder / "lib64").exists():
        (folder / "lib64").symlink_to("lib", target_is_directory=True)
    for name in _LIBRARIES:
        _name_plainly(folder / name)
    for name in _PROGRAMS:
        _make_executable(folder / name)
    add_stubs(folder, note)


def _name_plainly(folder: Path) -> None:
    """A link `libX.so` to `libX.so.13`; of several, to the one with the shortest version."""
    if not folder.is_dir():
        return
    for path in sorted(folder.iterdir(), key=lambda path: (path.name.count("."), path.name)):
        match = _SHARED.fullmatch(path.name)
        if match and not (plain := folder / match[1]).exists():
            plain.symlink_to(path.name)


def _make_executable(folder: Path) -> None:
    """Programs have no suffix; `nvcc.profile` beside them has."""
    if not folder.is_dir():
        return
    for path in folder.iterdir():
        if path.suffix or path.is_symlink() or not path.is_file():
            continue
        mode = path.stat().st_mode
        if mode & 0o111 == 0:
            # A copy: the file is the store's, too, and stays there as it was unpacked.
            copy = path.with_name(f"{path.name}.copy")
            shutil.copyfile(path, copy)
            copy.chmod((mode & 0o777) | ((mode & 0o444) >> 2))
            copy.replace(path)
