"""Snapshot the files of an editable install, and save that after each complete install.

What is installed is compared with what was there after the last complete install, so that a library which
was removed or replaced comes back, too. The comparison is in due.py.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from torchbuild_tasks.build.install.due import Folder, Snapshot, Stamp
from torchbuild_tasks.build.install.rules import Rule, read_manifest, read_rules
from torchbuild_tasks.errors import BuildFailed
from torchbuild_tasks.facts.tree import INSTALL_FILE
from torchbuild_tasks.system.files import unlink, write_json
from torchbuild_tasks.system.reading import hash_file, read_value
from torchbuild_tasks.system.remove import list_entries

SNAPSHOT_FILE: Final = "torchbuild-placed.json"
SCHEMA: Final = 1


class Places(msgspec.Struct, frozen=True, kw_only=True):
    """The places to look at: the checkout, the build tree, and patterns relative to the checkout.

    `generated` are files that the Python front end writes, `copied` those it copies, `sources` folders whose
    files CMake lists. `is_source` judges the name of a file, `is_output` a path: whether a build wrote it.
    """

    root: Path
    build_dir: Path
    generated: tuple[str, ...]
    copied: tuple[str, ...]
    sources: tuple[str, ...]
    is_source: Callable[[str], bool]
    is_output: Callable[[str], bool]


def take(places: Places, before: Snapshot | None = None) -> Snapshot:
    """Take a snapshot; folders unchanged since `before` are not read again.

    Raises:
        OSError: the install scripts of the build tree cannot be read.
    """
    known = before.folders if before else {}
    return Snapshot(
        installed=stamps(read_manifest(places.build_dir)),
        sources=dict(_sources(read_rules(places.build_dir))),
        generated=stamps(_find_files(places, places.generated)),
        copied={path: hash_file(Path(path))[:16] for path in _find_files(places, places.copied)},
        folders=dict(_folders(places, known)),
    )


def _find_files(places: Places, patterns: Iterable[str]) -> Iterator[str]:
    for pattern in patterns:
        start, _, rest = pattern.partition("/")
        folder, name = (places.build_dir, rest) if start == "build" else (places.root, pattern)
        yield from sorted(str(path) for path in folder.glob(name))


def stamps(paths: Iterable[str]) -> dict[str, Stamp]:
    """Return size and time (ns) of each of these files that is there."""
    found: dict[str, Stamp] = {}
    for path in paths:
        try:  # thousands of them at every build: contextlib.suppress would take as long as the question
            info = os.stat(path)  # noqa: PTH116
        except OSError:
            continue
        found[path] = (info.st_size, info.st_mtime_ns)
    return found


def _sources(rules: Iterable[Rule]) -> Iterator[tuple[str, Stamp]]:
    for rule in rules:
        wanted = _join_patterns(rule.wanted)
        excluded = _join_patterns(rule.excluded)
        for source in rule.sources:
            try:
                info = os.stat(source)  # noqa: PTH116
            except OSError:
                continue  # OPTIONAL, or CMake reports it
            if not stat.S_ISDIR(info.st_mode):
                yield source, (info.st_size, info.st_mtime_ns)
            else:
                yield from _inside(source.removesuffix("/.").rstrip("/"), wanted, excluded)


def _join_patterns(patterns: tuple[str, ...]) -> re.Pattern[str] | None:
    """Compile CMake's regular expressions, which are nearly Python's; on an error None, which matches all."""
    try:
        return re.compile("|".join(f"(?:{pattern})" for pattern in patterns)) if patterns else None
    except re.error:
        return None


def _inside(
    folder: str, wanted: re.Pattern[str] | None, excluded: re.Pattern[str] | None
) -> Iterator[tuple[str, Stamp]]:
    todo = [folder]
    while todo:
        for entry in list_entries(todo.pop()):
            path = entry.path.replace("\\", "/")
            if excluded and excluded.search(path):
                continue
            if entry.is_dir(follow_symlinks=False):
                todo.append(entry.path)
            elif wanted is None or wanted.search(path):
                with contextlib.suppress(OSError):
                    info = os.stat(entry.path)  # noqa: PTH116 - an entry of Windows knows old times
                    yield path, (info.st_size, info.st_mtime_ns)


def _folders(places: Places, known: Mapping[str, Folder]) -> Iterator[tuple[str, Folder]]:
    todo = list(places.sources)
    while todo:
        path = todo.pop()
        place = f"{places.root}{os.sep}{path}"
        try:
            changed = os.stat(place).st_mtime_ns  # noqa: PTH116
        except OSError:
            continue
        folder = known.get(path)
        if folder is None or folder.changed != changed:
            folder = _folder(places, path, place, changed)
        yield path, folder
        todo += (f"{path}/{name}" for name in folder.folders)


def _folder(places: Places, path: str, place: str, changed: int) -> Folder:
    names = []
    folders = []
    for entry in list_entries(place):
        name = entry.name
        if entry.is_dir(follow_symlinks=False):
            if name != "__pycache__" and not places.is_output(f"{path}/{name}/x"):
                folders.append(name)
        elif places.is_source(name) and not places.is_output(f"{path}/{name}"):
            names.append(name)
    return Folder(changed, tuple(sorted(names)), tuple(sorted(folders)))


def read(build_dir: Path) -> Snapshot | None:
    """Return the snapshot after the last complete install; None when there is none that can be read."""
    return read_value(Snapshot, build_dir / SNAPSHOT_FILE)


def write(build_dir: Path, snapshot: Snapshot, inputs: Mapping[str, str]) -> None:
    """Save the snapshot of a complete install and the inputs of its build.

    Raises:
        BuildFailed: it cannot be written.
    """
    write_json(build_dir / SNAPSHOT_FILE, snapshot, error=BuildFailed, private=True)
    record = {"schema": SCHEMA, "inputs": inputs}
    write_json(build_dir / INSTALL_FILE, record, error=BuildFailed, private=True)


def forget(build_dir: Path) -> None:
    """Delete the snapshot before the front end runs, since it changes the install."""
    for name in (INSTALL_FILE, SNAPSHOT_FILE):
        with contextlib.suppress(OSError):
            unlink(build_dir / name, missing_ok=True)
