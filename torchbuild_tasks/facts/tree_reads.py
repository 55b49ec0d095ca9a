"""Find the switches (with conditions) and variables that the build of this checkout reads.

CMake's own files and the Python that starts them are read as text; nothing is run. The whole of 2.6.0 takes
about 30 ms, because no pattern begins with an alternative or a word boundary: `re` searches quickly only for
literal text. Submodules are read only if a requested name is found nowhere else.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterable, Iterator
from typing import Final

from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.facts.submodules import THIRD_PARTY
from torchbuild_tasks.model import Switch, TreeReads

# Folders whose CMake modules are all read; further CMakeLists.txt are found by add_subdirectory.
MODULES: Final = "cmake"
PYTHON: Final = ("", "tools", "tools/setup_helpers", "pytorch_build_backend")

# Prefixes that both front ends pass on to CMake, so CMake's files decide whether a name is read.
FORWARDED: Final = ("USE_", "BUILD_")
_SETTING: Final = re.compile(r"\w*[A-Z0-9]{2,}\w*")

_COMMENT: Final = re.compile(r"(?m)#\[\[.*?\]\]|#[^\n]*", re.DOTALL)
_PYTHON_COMMENT: Final = re.compile(r"(?m)^\s*#.*$")
_WORD: Final = re.compile(r'"((?:[^"\\]|\\.)*)"|([^\s"()]+)', re.DOTALL)
_NAME: Final = re.compile(r"[A-Za-z_]\w{2,}")
# option(NAME "help" value): https://cmake.org/cmake/help/latest/command/option.html, and
# cmake_dependent_option(NAME "help" value "conditions" otherwise): …/latest/module/CMakeDependentOption.html.
# `cmake_` of the second begins a word.
_OPTION: Final = re.compile(
    r"(?:option|OPTION)(?:(?<!\w.{6})|(?<=\bcmake_dependent_.{6})|(?<=\bCMAKE_DEPENDENT_.{6}))"
    r"\s*\(\s*(\w+)((?:\s|[^()\"]|\"(?:[^\"\\]|\\.)*\"|\([^()]*\))*)\)",
    re.DOTALL,
)
_DEPENDENT: Final = "cmake_dependent_"
_READ: Final = re.compile(r"\{(\w+)\}")  # ${NAME}, $ENV{NAME}, DEFINED ENV{NAME}
_FROM_ENVIRONMENT: Final = re.compile(r"ENV(?:\{|\s+)(\w+)")
_CONDITIONS: Final = tuple(
    re.compile(
        rf"{word}(?:(?<!\w..)|(?<=\b{other}..))\s*\(([^()]*(?:\([^()]*(?:\([^()]*\)[^()]*)*\)[^()]*)*)\)"
    )
    for word, other in (("if", "else"), ("IF", "ELSE"))
)
_CACHE: Final = re.compile(r"CACHE\b(?<!\w.{5})")
_SET: Final = re.compile(r"\b(?:set|SET)\s*\(\s*(\w+)\b[^()]*\Z")
_LONGEST_SET: Final = 4000  # characters before its CACHE
_FOLDER: Final = re.compile(r"(?:add_subdirectory|ADD_SUBDIRECTORY)\s*\(\s*\"?([^\s\")]+)")
_VARIABLE_AT_FRONT: Final = re.compile(r"^\$\{(\w+)\}/?")
_LISTED: Final = re.compile(r"CACHE\s+(\w+)\s+PROPERTY\s+STRINGS\b")
_REFUSED: Final = re.compile(
    r'FATAL_ERROR\s+"(?i:Unknown|Unrecogni[sz]ed|Invalid|Unsupported) [^"$]*"?\s*\$\{(\w+)\}'
)
# The second half of a comparison, because few words of a file are operators.
_EQUAL: Final = re.compile(r'STREQUAL(?<!\w.{8})\s+"?(\w+)')
_LEFT: Final = re.compile(r"\w*\Z")
_QUOTED: Final = re.compile(r"[\"']([A-Za-z_]\w{2,})[\"']")
_FLAG: Final = re.compile(r"check_(?:negative_)?env_flag\(\s*[\"'](\w+)[\"']")


def look_at_reads(probe: Probe, root: str, asked: Iterable[str] = ()) -> TreeReads | None:
    """Return the switches and variables of this checkout; None if its CMake files have no option().

    Args:
        asked: names that are set; submodules are searched for those that nothing else reads.
    """
    files = dict(_cmake_files(probe, root))
    if not files:
        return None
    files |= dict(_modules(probe, root, MODULES))
    python = dict(_python_files(probe, root))
    direct = {name for text in python.values() for name in _QUOTED.findall(_PYTHON_COMMENT.sub("", text))}
    names: set[str] = set()
    switches: dict[str, Switch] = {}
    for path, text in files.items():
        options = _find_options(text)
        names |= _names(text, options)
        switches |= {switch.name: switch for switch in _switches(path, text, options)}
        direct |= set(_FROM_ENVIRONMENT.findall(text))
    unknown = {each for each in asked if each.startswith(FORWARDED) and each not in names | direct}
    if unknown:
        names |= unknown & _submodule_names(probe, root, unknown)
    flags = {name for text in python.values() for name in _FLAG.findall(text)}
    if not switches:  # not the files of a build
        return None
    return TreeReads(
        names=tuple(sorted(name for name in names if name.startswith(FORWARDED))),
        direct=tuple(sorted(filter(_SETTING.fullmatch, direct))),
        switches=tuple(switches[name] for name in sorted(switches)),
        flags=tuple(sorted(flags)),
        values=_values(files.values()),
    )


def _read(probe: Probe, root: str, path: str) -> str | None:
    text = probe.read(probe.join(root, path))
    if text is None or "#" not in text:
        return text
    # Keep the number of lines, for the places of options.
    return _COMMENT.sub(lambda found: "\n" * found[0].count("\n"), text)


def _cmake_files(probe: Probe, root: str) -> Iterator[tuple[str, str]]:
    """Yield the CMakeLists.txt of a folder and its subfolders, as paths below the root."""
    todo = ["CMakeLists.txt"]
    seen = set[str]()
    while todo:
        path = todo.pop()
        if path in seen or (text := _read(probe, root, path)) is None:
            continue
        seen.add(path)
        yield path, text
        own = path.rpartition("/")[0]
        for folder in _FOLDER.findall(text):
            below = _VARIABLE_AT_FRONT.match(folder)
            inside = folder[below.end() :] if below else posixpath.join(own, folder)
            normal = posixpath.normpath(inside)
            if normal != "." and "$" not in normal and not normal.startswith(("..", "/", THIRD_PARTY)):
                todo.append(f"{normal}/CMakeLists.txt")


def _modules(probe: Probe, root: str, folder: str, depth: int = 3) -> Iterator[tuple[str, str]]:
    for name in probe.children(probe.join(root, folder)):
        path = f"{folder}/{name}"
        if name.endswith((".cmake", ".cmake.in")) or name == "CMakeLists.txt":
            if (text := _read(probe, root, path)) is not None:
                yield path, text
        elif "." not in name and depth:
            yield from _modules(probe, root, path, depth - 1)


def _python_files(probe: Probe, root: str) -> Iterator[tuple[str, str]]:
    for folder in PYTHON:
        place = probe.join(root, folder) if folder else root
        for name in probe.children(place):
            if name.endswith(".py") or (not folder and name == "pyproject.toml"):
                yield f"{folder}/{name}", probe.read(probe.join(place, name)) or ""


def _find_options(text: str) -> list[re.Match[str]]:
    return list(_OPTION.finditer(text)) if "option" in text or "OPTION" in text else []


def _names(text: str, options: Iterable[re.Match[str]]) -> set[str]:
    """Return the variables that CMake code reads, without those that it only sets."""
    found = set(_READ.findall(text))
    for conditions in _CONDITIONS:
        for condition in conditions.findall(text):
            found |= set(_NAME.findall(condition))
    return found | set(_cached(text)) | {option[1] for option in options}


def _cached(text: str) -> Iterator[str]:
    for found in _CACHE.finditer(text):
        start = text.rfind("(", max(0, found.start() - _LONGEST_SET), found.start())
        if start > 0 and (match := _SET.search(text, max(0, start - 20), found.start())):
            yield match[1]


def _submodule_names(probe: Probe, root: str, unknown: Collection[str]) -> set[str]:
    """Return the variables that submodules read, from the files that contain one of the unknown names."""
    found: set[str] = set()
    top = probe.join(root, THIRD_PARTY)
    for name in probe.children(top):
        folder = probe.join(top, name)
        for path, text in (*_cmake_files(probe, folder), *_modules(probe, folder, MODULES)):
            if path and any(each in text for each in unknown):
                found |= _names(text, _find_options(text))
    return found


def _switches(path: str, text: str, options: Iterable[re.Match[str]]) -> Iterator[Switch]:
    for found in options:
        name, rest = found.groups()
        start = found.start()
        words = [quoted or plain for quoted, plain in _WORD.findall(rest)]
        place = f"{path}:{text.count(chr(10), 0, start) + 1}"
        if text[max(0, start - len(_DEPENDENT)) : start].lower() != _DEPENDENT:
            yield Switch(name=name, default=words[1] if len(words) > 1 else "OFF", place=place)
        elif len(words) >= 4:  # help, value, condition (perhaps several words), value where it does not hold
            before = text[max(0, start - 200) : start - len(_DEPENDENT)].rstrip()
            free = before.endswith(f"if(NOT DEFINED {name})")  # once set, its value is kept
            needs = "" if free else " ".join(words[2:-1])
            yield Switch(name=name, default=words[1], needs=needs, place=place)


def _values(texts: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the values that a variable with several choices is compared with.

    It has one where CMake is told so (BLAS, `PROPERTY STRINGS`), or stops at any other (ATEN_THREADING).
    """
    whole = "\n".join(texts)
    found: dict[str, set[str]] = {name: set() for name in (*_LISTED.findall(whole), *_REFUSED.findall(whole))}
    for equal in _EQUAL.finditer(whole) if found else ():
        before = whole[max(0, equal.start() - 100) : equal.start()]
        word = "".join(before.split()[-1:]).removesuffix('"').removesuffix("}")
        left = _LEFT.search(word)
        if left and left[0] in found and before[-1:].isspace():
            found[left[0]].add(equal[1])
    return {name: tuple(sorted(values)) for name, values in found.items() if values}
