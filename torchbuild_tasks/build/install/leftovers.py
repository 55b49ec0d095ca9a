"""Remember what installs put into a checkout, so that what a later one leaves out is known.

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
    """Return what earlier installs listed, the last one did not, and still exists, relative to the checkout.

    Nothing when the last install put nothing into the checkout: a wheel is made elsewhere. Nothing either of
    folders into which that install puts nothing: a wheel that was laid over the checkout lists more, and
    what Ninja or setup.py writes there again, or finds as it should be, is this build's.
    """
    now = _read_listed(root, build_dir)
    tops = {_top(path) for path in now} - {""}
    return tuple(
        sorted(path for path in _read(root) - now if _top(path) in tops and os.path.lexists(root / path))
    )


def _top(path: str) -> str:
    """Return `torch/lib` of what lies below it; "" of what lies in `torch` itself."""
    return "/".join(path.split("/")[:2]) if path.count("/") > 1 else ""


def forget_left_out(root: Path, build_dir: Path) -> None:
    """Remember the last install's list alone, after the rest was removed.

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
