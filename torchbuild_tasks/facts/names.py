"""Paths, PATH and command lines as one system writes them: the interface of two modules without a class.

`names_posix` and `names_windows` hold the same functions. They are pure text, so that a test
on Linux can look at a Windows machine, and the other way round.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol


class Names(Protocol):
    """The functions of such a module. Paths are strings, as the machine writes them."""

    @property
    def WINDOWS(self) -> bool:
        """True for names of Windows."""

    def join(self, folder: str, *parts: str) -> str:
        """Return the path of `parts` (which may use /) below `folder`."""

    def normal(self, path: str) -> str:
        """Return the same path without `.`, `..` and doubled separators."""

    def base(self, path: str) -> str:
        """Return the last part of a path."""

    def stem(self, path: str) -> str:
        """Return the name of a program: g++ for /usr/bin/g++, cl for C:\\x\\CL.EXE."""

    def parent(self, path: str) -> str:
        """Return the folder that holds `path`; the top is its own parent."""

    def drive(self, path: str) -> str:
        """Return the top folder of the drive that a path names by its letter; empty where there is none."""

    def is_absolute(self, path: str) -> bool:
        """Say whether a path does not depend on the current folder."""

    def is_path(self, word: str) -> bool:
        """Say whether a word is a path rather than a command to look up on PATH."""

    def key(self, path: str) -> str:
        """Return a key that is equal for all spellings of one path."""

    def split_path(self, value: str) -> list[str]:
        """Return the entries of a variable such as PATH; empty ones are left out."""

    def split_words(self, value: str) -> tuple[str, ...]:
        """Return a command line as words, as the system's shell splits it."""

    def lookup(self, environ: Mapping[str, str], name: str) -> str | None:
        """Return the value of a variable."""

    def home(self, environ: Mapping[str, str]) -> str | None:
        """Return the user's folder."""

    def program_files(self, path: str, environ: Mapping[str, str]) -> tuple[str, ...]:
        """Return the possible files of a program called `path`, best first."""

    def is_program(self, file: Path) -> bool:
        """Say whether this user may start an existing file."""

    def file_of(self, root: Path, path: str) -> Path:
        """Return the file for `path` below a folder that replaces the root of the machine."""

    def path_of(self, root: Path, file: Path) -> str:
        """Return the path on the machine of a file below that folder: the reverse of `file_of`."""


def native_names() -> Names:
    """Return the names of the system that this process runs on."""
    if os.name == "nt":
        from torchbuild_tasks.facts import names_windows

        return names_windows
    from torchbuild_tasks.facts import names_posix

    return names_posix
