"""Remembers what installs put into a checkout, so that what a later one leaves out is known.

CMake's install lists what it puts in place and removes nothing: a library or header of another version
stays. `.torchbuild/installed.json` holds every path that was listed since the last settling; it outlives
the build tree, and a killed build loses none of it.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.system.files import STATE_DIR, state_dir, write_atomic

SCRIPT: Final = "cmake_install.cmake"
MANIFEST: Final = "install_manifest.txt"

_INSTALL: Final = "file(INSTALL DESTINATION "
_INCLUDE: Final = re.compile(r'^\s*include\("([^"]+/cmake_install\.cmake)"\)', re.MULTILINE)
_TOKEN: Final = re.compile(r'"((?:[^"\\]|\\.)*)"|(\))|([A-Z_]+)')


class Rule(msgspec.Struct, frozen=True):
    """One rule: its sources; of folders the files whose path `wanted` finds and `excluded` does not.

    Both are the regular expressions of CMake; no `wanted` means all files.
    """

    destination: str
    sources: tuple[str, ...]
    wanted: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()


def read_rules(build_dir: Path) -> list[Rule]:
    """The rules of every script that an install of the build tree runs.

    Raises:
        OSError: a script is missing, so that it cannot be known what is installed.
    """
    rules: list[Rule] = []
    todo = [build_dir / SCRIPT]
    while todo:
        text = todo.pop().read_text("utf-8", errors="surrogateescape")
        todo += (Path(name) for name in _INCLUDE.findall(text))
        rules += _rules(text)
    return rules


def _rules(text: str) -> Iterator[Rule]:
    start = text.find(_INSTALL)
    while start >= 0:
        end = start + len(_INSTALL)
        words: list[tuple[str, str]] = []  # a keyword, or nothing and a text
        for token in _TOKEN.finditer(text, end):
            end = token.end()
            if token[2]:
                break
            words.append((token[3] or "", _unescaped(token[1] or "")))
        yield _rule(words)
        start = text.find(_INSTALL, end)


def _rule(words: list[tuple[str, str]]) -> Rule:
    """Of `"lib" TYPE X FILES "a" "b" FILES_MATCHING REGEX "r" REGEX "s" EXCLUDE`."""
    sources: list[str] = []
    patterns: list[str] = []
    excluded: list[str] = []
    section = ""
    for keyword, text in words[1:]:
        if keyword:
            if keyword == "EXCLUDE" and patterns:
                excluded.append(patterns.pop())
            section = keyword
        elif section == "FILES":
            sources.append(text)
        elif section == "REGEX":
            patterns.append(text)
    return Rule(
        destination=words[0][1] if words else "",
        sources=tuple(sources),
        wanted=tuple(patterns) if any(keyword == "FILES_MATCHING" for keyword, _ in words) else (),
        excluded=tuple(excluded),
    )


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text) if "\\" in text else text


def read_manifest(build_dir: Path) -> list[str]:
    """The files that the last install put in place; empty when there was none."""
    try:
        text = (build_dir / MANIFEST).read_text("utf-8", errors="surrogateescape")
    except OSError:
        return []
    return text.splitlines()


# ----------------


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
