"""Paths as text, of any system: CMake writes forward slashes on Windows, where other programs do not."""

from __future__ import annotations


def plain_path(path: str) -> str:
    """Return a path for comparing: with forward slashes, and none at its end."""
    return path.replace("\\", "/").rstrip("/")


def file_name(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2]


def is_inside(path: str, folder: str) -> bool:
    """Say whether a path is a folder's, or below it."""
    return f"{plain_path(path)}/".startswith(f"{plain_path(folder)}/")
