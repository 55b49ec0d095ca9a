"""Check a cache's folder before hours of compiling depend on it, and record its settings.

The memory is a file outside of it: sccache takes every file in its folder for an entry to evict.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.system.files import write_json
from torchbuild_tasks.system.reading import read_json

# Bytes: with less space a cache would only evict, and the build itself needs it.
LEAST: Final = 256 << 20


class Folder(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a folder: `created` by us just now; `problem` is why it cannot be used.

    `read_only`: what is in it can be used, and nothing be added.
    """

    path: Path
    created: bool = False
    read_only: bool = False
    problem: str = ""


def look_into(path: Path, least: int = LEAST) -> Folder:
    """Create the folder if it is missing, and test that it can be written.

    Args:
        path: the cache's folder.
        least: bytes that must be free on its disk.
    """
    try:
        there = path.is_dir()  # raises before Python 3.14, if a folder above it is closed to us
        path.mkdir(parents=True, exist_ok=True)
        filled = any(path.iterdir())
    except OSError as error:
        return Folder(path=path, problem=f"{path}: {error.strerror or error}")
    try:
        _write(path)
        free = shutil.disk_usage(path).free
    except OSError as error:
        problem = f"{path}: {error.strerror or error}"
        return Folder(path=path, read_only=filled, problem=problem)
    if free < least:
        problem = f"{path}: only {free >> 20} MiB are free on its disk"
        return Folder(path=path, created=not there, read_only=filled, problem=problem)
    return Folder(path=path, created=not there)


def _write(folder: Path) -> None:
    """Write a block: on a full disk an empty file can still be created."""
    probe = folder / f".torchbuild-probe.{os.getpid()}"
    try:
        probe.write_bytes(b"\0" * 4096)
    finally:
        with contextlib.suppress(OSError):
            probe.unlink()


class Memory:
    """The record of a folder in a JSON file; if it cannot be read or written, only a warning is lost."""

    def __init__(self, path: Path | str | None) -> None:
        self._path = Path(path) if path else None
        self._seen: dict[str, list[dict[str, str]]] = {}
        self._made: list[str] = []
        with contextlib.suppress(OSError, ValueError, TypeError, AttributeError, RecursionError):
            data = read_json(self._path) if self._path else {}
            self._seen = {str(k): [_texts(each) for each in v] for k, v in data.get("seen", {}).items()}
            self._made = [str(folder) for folder in data.get("made", [])]

    def list_settings(self, folder: Path) -> Sequence[Mapping[str, str]]:
        """Return the combinations of settings of builds with this folder, the newest last."""
        return self._seen.get(str(folder), [])

    def is_ours(self, folder: Path) -> bool:
        """Say whether a build of ours created the folder, so that it may be emptied."""
        return str(folder) in self._made

    def keep(self, folder: Path, seen: Sequence[Mapping[str, str]], *, created: bool) -> None:
        """Write the record."""
        self._seen[str(folder)] = [dict(each) for each in seen]
        if created and str(folder) not in self._made:
            self._made.append(str(folder))
        self._write()

    def forget(self, folder: Path) -> None:
        """Reset the record after the folder was emptied."""
        self._seen.pop(str(folder), None)
        self._write()

    def _write(self) -> None:
        if self._path is None:
            return
        with contextlib.suppress(OSError, UsageError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_json(self._path, {"made": self._made, "seen": self._seen}, error=UsageError)


def _texts(item: Mapping[str, object]) -> dict[str, str]:
    return {str(name): str(value) for name, value in item.items()}
