"""Find the files that a build names: in Ninja's graph, log and dependencies, in CMake's scripts and lists.

Users keep notes and experiments in a build folder, also while a build runs there. A file that the build
wrote is named in one of these texts; a file that is named in none may be the user's, and is not claimed.
"""

from __future__ import annotations

import contextlib
import os
import re
import struct
import sys
from collections.abc import Iterable, Iterator, Set
from pathlib import Path
from typing import Final

from torchbuild_tasks.build.install.rules import read_rules
from torchbuild_tasks.system.reading import read_bytes

_QUOTED: Final = re.compile(rb'"([^"\n]*)"')
_TEMPLATE: Final = re.compile(rb"\.(?:in|cmakein|template|tmpl)$")
# Suffixes of files that linkers and compilers write next to an output of the same name.
_BESIDE: Final = frozenset((".pdb", ".ilk", ".exp", ".lib", ".manifest", ".dwo", ".gcno", ".gcda", ".d"))
_MOST: Final = 1 << 30  # bytes; .ninja_deps of PyTorch has some ten millions
_BLANK: Final = b"\x00"  # replaces an escaped blank until the words are split


def find_named(root: Path, build_dir: Path, wanted: Set[str]) -> frozenset[str]:
    """Return those of `wanted` (relative to the checkout) that a file of the build names."""
    words = {word for text in _texts(build_dir) for word in text}
    templates = {
        _TEMPLATE.sub(b"", word).rpartition(b"/")[2] for word in words if _TEMPLATE.search(word) is not None
    }
    named = {path for path in wanted if not words.isdisjoint(_spell_path(root, build_dir, path))}
    stems = {path.rpartition(".")[0] for path in named}
    for path in wanted:
        stem, _, suffix = path.rpartition(".")
        configured = _normalise(os.fsencode(path.rpartition("/")[2])) in templates
        if configured or (stem in stems and f".{suffix}" in _BESIDE):
            named.add(path)
    return frozenset(named | find_copies(root, build_dir, wanted - named))


def find_copies(root: Path, build_dir: Path, wanted: Set[str]) -> set[str]:
    """Return the copies of an interrupted install, which would have listed them only at its end.

    A copy has the name, the size and the time (in seconds) of a source of an install rule.
    """
    own = {root / path for path in wanted}  # which may be in a folder whose other files a rule copies
    sources: set[tuple[str, int, int]] = set()
    with contextlib.suppress(OSError):
        for rule in read_rules(build_dir) if wanted else ():
            for source in map(Path, rule.sources):
                files = source.rglob("*") if _is_within(source, root, build_dir) else (source,)
                sources |= {key for file in files if file not in own and (key := _sameness(file))}
    return {path for path in wanted if _sameness(root / path) in sources}


def _is_within(source: Path, *folders: Path) -> bool:
    """Say whether a folder is in the checkout or its build: a rule that copies `/` is ignored."""
    plain = Path(os.path.normpath(source))
    return any(plain.is_relative_to(folder) for folder in folders) and plain.is_dir()


def _sameness(file: Path) -> tuple[str, int, int] | None:
    with contextlib.suppress(OSError):
        info = file.lstat()
        return (file.name, info.st_size, int(info.st_mtime))
    return None


def _spell_path(root: Path, build_dir: Path, path: str) -> set[bytes]:
    """Return the ways to write a path: absolute, relative to the build folder, or to the checkout."""
    absolute = root / path
    with contextlib.suppress(ValueError):  # on Windows: another drive
        return {
            _normalise(os.fsencode(form)) for form in (absolute, os.path.relpath(absolute, build_dir), path)
        }
    return {_normalise(os.fsencode(absolute))}


def _normalise(word: bytes) -> bytes:
    """Return a path in the form for comparisons: with `/`, blanks replaced, on Windows in lower case."""
    if sys.platform == "win32":
        word = word.replace(b"\\", b"/").lower()
    return word.replace(b" ", _BLANK)


def _texts(build_dir: Path) -> Iterator[Iterable[bytes]]:
    """Yield the words of each text; none of one that cannot be read."""
    for name, read in (
        ("build.ninja", _graph),
        (".ninja_log", _log),
        (".ninja_deps", _headers),
        ("install_manifest.txt", _lines),
    ):
        yield [_normalise(word) for word in read(_content(build_dir / name))]
    for script in _scripts(build_dir):
        yield [_normalise(word) for text in _QUOTED.findall(_content(script)) for word in text.split(b";")]


def _content(path: Path) -> bytes:
    with contextlib.suppress(OSError):
        return read_bytes(path, most=_MOST)
    return b""


def _scripts(build_dir: Path) -> Iterator[Path]:
    """Yield CMake's install scripts and its answers to file API queries."""
    for folder, folders, names in os.walk(build_dir):
        folders[:] = [name for name in folders if name not in ("CMakeFiles", ".git")]
        yield from (
            Path(folder, name)
            for name in names
            if name == "cmake_install.cmake" or (name.endswith(".json") and folder.endswith("reply"))
        )


def _graph(text: bytes) -> Iterable[bytes]:
    """Return the words of build.ninja. For its escapes see https://ninja-build.org/manual.html#_lexical_syntax."""
    text = text.replace(b"$\r\n", b" ").replace(b"$\n", b" ").replace(b"$ ", _BLANK)
    return (word.rstrip(b":") for word in text.replace(b"$:", b":").replace(b"$$", b"$").split())


def _log(text: bytes) -> Iterable[bytes]:
    """Return the outputs in Ninja's log, the fourth column."""
    return (line.split(b"\t")[3] for line in text.splitlines() if line.count(b"\t") >= 4)


def _headers(data: bytes) -> Iterator[bytes]:
    """Yield the paths in .ninja_deps: records of a size, a name padded with zeros to 4 bytes, a checksum.

    Source: src/deps_log.cc of Ninja 1.12; the highest bit of a size marks a record that names nothing new.
    """
    at = data.find(b"\n") + 5
    while 4 < at + 4 <= len(data):
        (size,) = struct.unpack_from("<I", data, at)
        at += 4
        if not size >> 31:
            yield data[at : at + size - 4].rstrip(b"\0")
        at += size & 0x7FFFFFFF


def _lines(text: bytes) -> Iterable[bytes]:
    """Return the lines of an install's list; CMake keeps `/./` in a path of a rule."""
    # As text: bytes that are not UTF-8 are an error of normpath on Windows.
    lines = (line.decode("utf-8", "surrogateescape") for line in text.splitlines() if line)
    return (os.path.normpath(line).encode("utf-8", "surrogateescape") for line in lines)
