"""Paths as text, of any system: CMake writes forward slashes on Windows, where other programs do not."""

from __future__ import annotations

import posixpath


def plain_path(path: str) -> str:
    """Return a path for comparing: with forward slashes, and none at its end."""
    return path.replace("\\", "/").rstrip("/")


def path_key(path: str) -> str:
    """Return what every spelling of one path has in common: `..`, doubled slashes, a drive's capitals."""
    plain = plain_path(path)
    key = posixpath.normpath(plain) if plain else plain
    return key.lower() if key[1:2] == ":" else key


def names_same(path: str, other: str | None) -> bool:
    """Say whether two paths are one: CMake writes / on Windows, too."""
    return bool(other) and path_key(path) == path_key(f"{other}")


def file_name(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2]


def is_inside(path: str, folder: str) -> bool:
    """Say whether a path is a folder's, or below it."""
    return f"{path_key(path)}/".startswith(f"{path_key(folder)}/")
