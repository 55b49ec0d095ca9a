"""Read CMake's install scripts and manifest: the files that an install copies, and those it copied last.

CMake writes cmake_install.cmake into every folder of a build tree, and `install` writes install_manifest.txt
at its top. The patterns are for the scripts as CMake 3.31.10 writes them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final

import msgspec

from torchbuild_tasks.system.reading import read_bytes

SCRIPT: Final = "cmake_install.cmake"
MANIFEST: Final = "install_manifest.txt"

_INCLUDE: Final = re.compile(r'include\("([^"]+/cmake_install\.cmake)"\)')
_QUOTED: Final = r'"[^"\\]*(?:\\.[^"\\]*)*"'
_STATEMENT: Final = re.compile(rf"file\(INSTALL DESTINATION ((?:[^\")]+|{_QUOTED})*)\)", re.DOTALL)
_WORD: Final = re.compile(rf"{_QUOTED}|[A-Z_]+", re.DOTALL)
_ON_WINDOWS: Final = re.compile(r"[A-Za-z]:\\|\\\\")
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)


class Rule(msgspec.Struct, frozen=True):
    """One rule: its sources; of folders the files whose path `wanted` finds and `excluded` does not.

    Both are the regular expressions of CMake; no `wanted` means all files.
    """

    destination: str
    sources: tuple[str, ...]
    wanted: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()


def read_rules(build_dir: Path) -> list[Rule]:
    """Return the rules of every script that an install of the build tree runs.

    Raises:
        OSError: a script is missing, so that it cannot be known what is installed.
    """
    statements = (each for text in _scripts(build_dir) for each in _STATEMENT.findall(text))
    return [_rule(_WORD.findall(each)) for each in statements]


def _scripts(build_dir: Path) -> Iterator[str]:
    todo = [str(build_dir / SCRIPT)]
    seen = set(todo)
    while todo:
        text = _text(Path(todo.pop()))
        more = [name for name in dict.fromkeys(_included(text)) if name not in seen]
        seen.update(more)  # one that includes itself has no end
        todo += more
        yield text


def _text(path: Path) -> str:
    return read_bytes(path).decode("utf-8", "surrogateescape")


def _included(text: str) -> Iterator[str]:
    for found in _INCLUDE.finditer(text):
        if not text[text.rfind("\n", 0, found.start()) + 1 : found.start()].strip():  # no comment
            yield found[1]


def _rule(words: list[str]) -> Rule:
    """Read the words of `"lib" TYPE X FILES "a" "b" FILES_MATCHING REGEX "r" REGEX "s" EXCLUDE`."""
    sources: list[str] = []
    patterns: list[str] = []
    excluded: list[str] = []
    section = ""
    for word in words[1:]:
        if not word.startswith('"'):
            if word == "EXCLUDE" and patterns:
                excluded.append(patterns.pop())
            section = word
        elif section == "FILES":
            sources.append(_unquote(word))
        elif section == "REGEX":
            patterns.append(_unquote(word))
    return Rule(
        destination=_unquote(words[0]) if words else "",
        sources=tuple(sources),
        wanted=tuple(patterns) if "FILES_MATCHING" in words else (),
        excluded=tuple(excluded),
    )


def _unquote(word: str) -> str:
    inner = word[1:-1]
    return _ESCAPED.sub(r"\1", inner) if "\\" in inner else inner


def rules_of(build_dir: Path, files: Collection[str]) -> str:
    """Return a script that installs these files of the build tree alone: CMake's blocks for them.

    A block stands at the margin from `if(` to `endif()`: the copy of a file, or what changes its RPATH then.

    Raises:
        OSError: a script is missing.
    """
    names = [f'/{name.rpartition("/")[2]}"' for name in files]
    text = "\n".join(_scripts(build_dir)).replace("\r\n", "\n")
    blocks = re.findall(r"(?ms)^if\(.*?^endif\(\)$", text)
    wanted = (each for each in blocks if any(name in each for name in names))
    return "\n".join(dict.fromkeys(wanted)) + "\n"


def read_manifest(build_dir: Path) -> list[str]:
    """Return the files that the last install wrote; empty when there was none.

    On Windows they begin as that install was told its prefix: `C:\\pt` by scikit-build-core (`cmake --install
    --prefix`), `C:/pt` by `ninja install`; here all have `/`.
    """
    try:
        text = _text(build_dir / MANIFEST)
    except OSError:
        return []
    return [line.replace("\\", "/") if _ON_WINDOWS.match(line) else line for line in text.splitlines()]
