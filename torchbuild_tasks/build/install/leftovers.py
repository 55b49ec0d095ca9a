"""Keep a list of the files that installs wrote, to find those that a later install no longer writes.

CMake's install lists what it copies and removes nothing: a library or header of another version stays.
`.torchbuild/installed.json` holds every path that was listed since what was left out was last removed; it
outlives the build tree, and a killed build loses none of it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from torchbuild_tasks.build.install.rules import read_manifest
from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.system.files import STATE_DIR, state_dir, write_json
from torchbuild_tasks.system.reading import read_json

INSTALLED: Final = "installed.json"


def note_installed(root: Path, build_dir: Path) -> None:
    """Add what the last install listed, before a build: the next install writes that list again.

    Raises:
        UsageError: the checkout cannot be written.
    """
    known = _read(root)
    both = known | _read_listed(root, build_dir)
    if both != known:
        _write(root, both)


def find_left_out(root: Path, build_dir: Path) -> tuple[str, ...]:
    """Return existing files that only earlier installs listed, not the last one, relative to the checkout.

    Empty if the last install wrote nothing into the checkout, because a wheel is built elsewhere. Folders
    into which the last install wrote nothing are left out: a wheel laid over the checkout lists more
    files, which Ninja or setup.py may have written again, or found up to date.
    """
    now = _read_listed(root, build_dir)
    tops = {_top_of(path) for path in now} - {""}
    return tuple(
        sorted(path for path in _read(root) - now if _top_of(path) in tops and os.path.lexists(root / path))
    )


def _top_of(path: str) -> str:
    """Return the second-level folder of a path, as `torch/lib`; "" for a file of `torch` itself."""
    return "/".join(path.split("/")[:2]) if path.count("/") > 1 else ""


def forget_left_out(root: Path, build_dir: Path) -> None:
    """Reset the list to the last install's, after the other files were removed.

    Raises:
        UsageError: the checkout cannot be written.
    """
    now = _read_listed(root, build_dir)
    if now and now != _read(root):
        _write(root, now)


def in_checkout(root: Path, paths: Iterable[str]) -> Iterator[str]:
    """Yield those of these absolute paths that are in the checkout, relative to it, with `/`."""
    above = os.path.normcase(f"{root}{os.sep}")
    for path in paths:
        normal = os.path.normpath(path)  # CMake and Ninja write / on Windows, too
        if os.path.normcase(normal).startswith(above):
            yield normal[len(above) :].replace(os.sep, "/")


def _read_listed(root: Path, build_dir: Path) -> frozenset[str]:
    return frozenset(in_checkout(root, read_manifest(build_dir)))


def _read(root: Path) -> frozenset[str]:
    with contextlib.suppress(OSError, ValueError, TypeError, LookupError):
        return frozenset(read_json(root / STATE_DIR / INSTALLED)["paths"])
    return frozenset()


def _write(root: Path, paths: frozenset[str]) -> None:
    write_json(state_dir(root) / INSTALLED, {"paths": sorted(paths)}, error=UsageError)
