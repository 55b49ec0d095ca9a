"""Remembers what installs put into a checkout, so that what a later one leaves out is known.

CMake's install lists what it puts in place and removes nothing: a library or header of another version
stays. `.torchbuild/installed.json` holds every path that was listed since the last settling; it outlives
the build tree, and a killed build loses none of it.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from torchbuild_tasks.effects.install_rules import read_manifest
from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.system.files import STATE_DIR, state_dir, write_atomic

INSTALLED: Final = "installed.json"


def note(root: Path, build_dir: Path) -> None:
    """Before a build: add what the last install listed, for the next one writes that list anew.

    Raises:
        UsageError: the checkout cannot be written.
    """
    known = _read(root)
    both = known | _listed(root, build_dir)
    if both != known:
        _write(root, both)


def left_out(root: Path, build_dir: Path) -> tuple[str, ...]:
    """What earlier installs listed, the last one did not, and is still there, relative to the checkout.

    Nothing when the last install put nothing into the checkout: a wheel is made elsewhere.
    """
    now = _listed(root, build_dir)
    if not now:
        return ()
    return tuple(sorted(path for path in _read(root) - now if os.path.lexists(root / path)))


def settle(root: Path, build_dir: Path) -> None:
    """After the rest was removed: the last install's list alone is remembered.

    Raises:
        UsageError: the checkout cannot be written.
    """
    now = _listed(root, build_dir)
    if now and now != _read(root):
        _write(root, now)


def in_checkout(root: Path, paths: Iterable[str]) -> Iterator[str]:
    """Those of these absolute paths that lie in the checkout, relative to it, with `/`."""
    above = os.path.normcase(f"{root}{os.sep}")
    for path in paths:
        normal = os.path.normpath(path)  # CMake and Ninja write / on Windows, too
        if os.path.normcase(normal).startswith(above):
            yield normal[len(above) :].replace(os.sep, "/")


def _listed(root: Path, build_dir: Path) -> frozenset[str]:
    return frozenset(in_checkout(root, read_manifest(build_dir)))


def _read(root: Path) -> frozenset[str]:
    with contextlib.suppress(OSError, ValueError, TypeError, LookupError):
        return frozenset(json.loads((root / STATE_DIR / INSTALLED).read_bytes())["paths"])
    return frozenset()


def _write(root: Path, paths: frozenset[str]) -> None:
    data = json.dumps({"paths": sorted(paths)}).encode()
    write_atomic(state_dir(root) / INSTALLED, data, error=UsageError)
