"""Find the build program that CMake has found for a build tree, if it may be started."""

from __future__ import annotations

import contextlib
import re
import shutil
from pathlib import Path
from typing import Final

from torchbuild_tasks.system import venv
from torchbuild_tasks.system.reading import read_bytes

_MAKE_PROGRAM: Final = re.compile(r"(?m)^CMAKE_MAKE_PROGRAM:[A-Z]+=(.+?)\r?$")
# What a build starts by the path that CMake wrote down: Ninja, and CMake itself by Ninja.
_STARTED: Final = re.compile(r"(?m)^CMAKE_(?:MAKE_PROGRAM|COMMAND):[A-Z]+=(.+?)\r?$")


def build_program(build_dir: Path, name: str, path: str | None = None) -> str:
    """Return the program that the tree was configured with, else the one on `path`, else ""."""
    return program_of_tree(build_dir, name) or shutil.which(name, path=path) or ""


def program_of_tree(build_dir: Path, name: str) -> str:
    """Return the program that the tree was configured with, "" if there is none that may be started.

    CMake's cache may have come with the checkout: a program there that it names must be in a venv of ours.
    """
    match = _MAKE_PROGRAM.search(_cache(build_dir))
    if match and Path(match[1]).is_file() and _may_be_run(build_dir, Path(match[1]), name):
        return match[1]
    return ""


def lost_program(build_dir: Path) -> str:
    """Return a program that the tree starts by its path and that is gone; "" if all are there."""
    named = (match[1] for match in _STARTED.finditer(_cache(build_dir)))
    return next((path for path in named if Path(path).is_absolute() and not Path(path).exists()), "")


def _cache(build_dir: Path) -> str:
    with contextlib.suppress(OSError):
        return read_bytes(build_dir / "CMakeCache.txt").decode("utf-8", "replace")
    return ""


def _may_be_run(build_dir: Path, program: Path, name: str) -> bool:
    if not program.is_absolute() or not program.name.startswith(name):
        return False
    around = [folder for folder in build_dir.resolve().parents if (folder / "version.txt").is_file()]
    root = around[-1] if around else build_dir.resolve().parent
    inside = program.resolve().is_relative_to(root) or program.is_relative_to(root)
    return not inside or venv.is_ours(str(program))
