"""Names on Linux; `names.Names` describes each function."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Mapping
from pathlib import Path

from torchbuild_tasks.text.words import flag_words

WINDOWS = False

join = posixpath.join
normal = posixpath.normpath
parent = posixpath.dirname
is_absolute = posixpath.isabs
split_words = flag_words


def base(path: str) -> str:
    return path.rpartition("/")[2]


stem = base


def drive(path: str) -> str:
    return ""


def is_path(word: str) -> bool:
    return "/" in word


def key(path: str) -> str:
    return path


def split_path(value: str) -> list[str]:
    return [entry for entry in value.split(":") if entry]


def lookup(environ: Mapping[str, str], name: str) -> str | None:
    return environ.get(name)


def home(environ: Mapping[str, str]) -> str | None:
    return environ.get("HOME")


def program_files(path: str, environ: Mapping[str, str]) -> tuple[str, ...]:
    return (path,)


def is_program(file: Path) -> bool:
    return os.access(file, os.X_OK)


def file_of(root: Path, path: str) -> Path:
    return root / path.lstrip("/")


def path_of(root: Path, file: Path) -> str:
    return "/" + file.relative_to(root).as_posix().removeprefix(".")
