"""Names on Windows; `names.Names` describes each function."""

from __future__ import annotations

import ntpath
import re
from collections.abc import Mapping
from pathlib import Path

WINDOWS = True

# Of PATHEXT, what a process can start without a shell's help; .bat and .cmd go to cmd.exe.
STARTABLE = (".com", ".exe", ".bat", ".cmd")

# \\?\C:\x and \\?\UNC\server\share, which no cmd and no CMake takes
# (learn.microsoft.com/windows/win32/fileio/naming-a-file, Win32 File Namespaces).
_EXTENDED = re.compile(r"[\\/]{2}[?.][\\/](?:(UNC)[\\/]|(?=[A-Z]:))", re.IGNORECASE)
_WORD = re.compile(r'(?:"[^"]*(?:"|$)|[^\s"])+')


base = ntpath.basename
parent = ntpath.dirname


def normal(path: str) -> str:
    return ntpath.normpath(_EXTENDED.sub(lambda found: "\\\\" if found[1] else "", path, count=1))


def join(folder: str, *parts: str) -> str:
    return ntpath.join(folder, *parts).replace("/", "\\")


def stem(path: str) -> str:
    name, kind = ntpath.splitext(ntpath.basename(path).lower())
    return name if kind in STARTABLE else name + kind


def drive(path: str) -> str:
    letter = ntpath.splitdrive(path)[0]
    return letter + "\\" if len(letter) == 2 else ""


def is_absolute(path: str) -> bool:
    letter, rest = ntpath.splitdrive(path)
    return bool(letter) and rest.startswith(("\\", "/"))


def is_path(word: str) -> bool:
    return "\\" in word or "/" in word or ntpath.splitdrive(word)[0] != ""


def key(path: str) -> str:
    return normal(path).lower()


def split_path(value: str) -> list[str]:
    # Quotes around an entry are allowed in PATH, and installers write them.
    return [entry for quoted in value.split(";") if (entry := quoted.strip().strip('"'))]


def split_words(value: str) -> tuple[str, ...]:
    # A backslash separates folders and quotes nothing.
    return tuple(word.replace('"', "") for word in _WORD.findall(value))


def lookup(environ: Mapping[str, str], name: str) -> str | None:
    if name in environ:
        return environ[name]
    wanted = name.upper()
    return next((value for key, value in environ.items() if key.upper() == wanted), None)


def home(environ: Mapping[str, str]) -> str | None:
    return lookup(environ, "USERPROFILE")


def program_files(path: str, environ: Mapping[str, str]) -> tuple[str, ...]:
    if path.lower().endswith(STARTABLE):
        return (path,)
    kinds = (lookup(environ, "PATHEXT") or ";".join(STARTABLE)).lower().split(";")
    return tuple(path + kind for kind in kinds if kind in STARTABLE)


def is_program(file: Path) -> bool:
    return file.suffix.lower() in STARTABLE


def file_of(root: Path, path: str) -> Path:
    """Return one folder for each drive, called by its letter."""
    letter, rest = ntpath.splitdrive(path)
    parts = [part for part in rest.replace("/", "\\").split("\\") if part]
    return root.joinpath(letter.rstrip(":").strip("\\").upper() or "C", *parts)


def path_of(root: Path, file: Path) -> str:
    letter, *parts = file.relative_to(root).parts or ("C",)
    return f"{letter}:\\" + "\\".join(parts)
