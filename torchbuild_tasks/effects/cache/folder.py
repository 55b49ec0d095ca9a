"""The folder of a cache: whether it can be written, before hours of compiling depend on it."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path
from typing import Final

import msgspec

# With less than this a cache would only evict, and the build needs the space itself.
LEAST: Final = 256 << 20


class Folder(msgspec.Struct, frozen=True, kw_only=True):
    """A folder as it was found: `made` by us just now, `filled` with anything; `problem` is why it is no use.

    `read_only` says that what is there can be used and nothing be added.
    """

    path: Path
    made: bool = False
    filled: bool = False
    read_only: bool = False
    problem: str = ""


def look_into(path: Path, least: int = LEAST) -> Folder:
    """Make the folder if it is not there, and write a byte into it.

    Args:
        path: the cache's folder.
        least: bytes that must be free on its disk.
    """
    there = path.is_dir()
    try:
        path.mkdir(parents=True, exist_ok=True)
        filled = any(path.iterdir())
    except OSError as error:
        return Folder(path=path, problem=f"{path}: {error.strerror or error}")
    try:
        _write(path)
        free = shutil.disk_usage(path).free
    except OSError as error:
        problem = f"{path}: {error.strerror or error}"
        return Folder(path=path, filled=filled, read_only=filled, problem=problem)
    if free < least:
        problem = f"{path}: only {free >> 20} MiB are free on its disk"
        return Folder(path=path, made=not there, filled=filled, read_only=filled, problem=problem)
    return Folder(path=path, made=not there, filled=filled)


def _write(folder: Path) -> None:
    """A whole block: a full disk still takes an empty file."""
    probe = folder / f".torchbuild-probe.{os.getpid()}"
    try:
        probe.write_bytes(b"\0" * 4096)
    finally:
        with contextlib.suppress(OSError):
            probe.unlink()
