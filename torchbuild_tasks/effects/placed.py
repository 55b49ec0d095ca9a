"""Looks at what an editable install reads from and was made from; keeps the last look in the build tree."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from torchbuild_tasks.effects.install_rules import Rule, read_manifest, read_rules
from torchbuild_tasks.errors import BuildFailed
from torchbuild_tasks.model.placed import Folder, Placed, Stamp
from torchbuild_tasks.system.files import unlink, write_atomic

INSTALL_FILE: Final = "torchbuild-install.json"
PLACED_FILE: Final = "torchbuild-placed.json"
SCHEMA: Final = 1


class Where(msgspec.Struct, frozen=True, kw_only=True):
    """Where to look: the checkout, the build tree, and patterns relative to the checkout.

    `counts` says of a file's name whether it is a source; `ignored` of a path whether a build made it.
    """

    root: Path
    build_dir: Path
    makes: tuple[str, ...]
    carries: tuple[str, ...]
    holds: tuple[str, ...]
    counts: Callable[[str], bool]
    ignored: Callable[[str], bool]


def look(where: Where, before: Placed | None = None) -> Placed:
    """One look; folders that are as they were `before` are not read again.

    Raises:
        OSError: the install scripts of the build tree cannot be read.
    """
    known = before.folders if before else {}
    return Placed(
        installed=_stamps(read_manifest(where.build_dir)),
        sources=dict(_sources(read_rules(where.build_dir))),
        made=_stamps(_found(where, where.makes)),
        carried={path: _digest(Path(path)) for path in _found(where, where.carries)},
        folders=dict(_folders(where, known)),
    )


def _found(where: Where, patterns: Iterable[str]) -> Iterator[str]:
    for pattern in patterns:
        start, _, rest = pattern.partition("/")
        folder, name = (where.build_dir, rest) if start == "build" else (where.root, pattern)
        yield from sorted(str(path) for path in folder.glob(name))


def _stamps(paths: Iterable[str]) -> dict[str, Stamp]:
    found: dict[str, Stamp] = {}
    for path in paths:
        with contextlib.suppress(OSError):
            info = os.stat(path)  # noqa: PTH116 - thousands of them at every build
            found[path] = (info.st_size, info.st_mtime_ns)
    return found


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def _sources(rules: Iterable[Rule]) -> Iterator[tuple[str, Stamp]]:
    for rule in rules:
        wanted, excluded = _either(rule.wanted), _either(rule.excluded)
        for source in rule.sources:
            try:
                info = os.stat(source)  # noqa: PTH116
            except OSError:
                continue  # OPTIONAL, or CMake says so itself
            if not stat.S_ISDIR(info.st_mode):
                yield source, (info.st_size, info.st_mtime_ns)
            else:
                yield from _inside(source.removesuffix("/.").rstrip("/"), wanted, excluded)


def _either(patterns: tuple[str, ...]) -> re.Pattern[str] | None:
    """CMake's regular expressions are nearly Python's; what is not is taken for everything."""
    try:
        return re.compile("|".join(f"(?:{pattern})" for pattern in patterns)) if patterns else None
    except re.error:
        return None


def _inside(
    folder: str, wanted: re.Pattern[str] | None, excluded: re.Pattern[str] | None
) -> Iterator[tuple[str, Stamp]]:
    todo = [folder]
    while todo:
        for entry in _entries(todo.pop()):
            path = entry.path.replace("\\", "/")
            if excluded and excluded.search(path):
                continue
            if entry.is_dir(follow_symlinks=False):
                todo.append(entry.path)
            elif wanted is None or wanted.search(path):
                with contextlib.suppress(OSError):
                    info = os.stat(entry.path)  # noqa: PTH116 - an entry of Windows knows old times
                    yield path, (info.st_size, info.st_mtime_ns)


def _entries(folder: str) -> list[os.DirEntry[str]]:
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        return list(entries)
    return []


def _folders(where: Where, known: Mapping[str, Folder]) -> Iterator[tuple[str, Folder]]:
    todo = list(where.holds)
    while todo:
        path = todo.pop()
        place = f"{where.root}{os.sep}{path}"
        try:
            changed = os.stat(place).st_mtime_ns  # noqa: PTH116
        except OSError:
            continue
        folder = known.get(path)
        if folder is None or folder.changed != changed:
            folder = _folder(where, path, place, changed)
        yield path, folder
        todo += (f"{path}/{name}" for name in folder.folders)


def _folder(where: Where, path: str, place: str, changed: int) -> Folder:
    names, folders = [], []
    for entry in _entries(place):
        name = entry.name
        if entry.is_dir(follow_symlinks=False):
            if name != "__pycache__" and not where.ignored(f"{path}/{name}/x"):
                folders.append(name)
        elif where.counts(name) and not where.ignored(f"{path}/{name}"):
            names.append(name)
    return Folder(changed, tuple(sorted(names)), tuple(sorted(folders)))


# ---------------------------------------------------------------- the last look


def read(build_dir: Path) -> Placed | None:
    """The look after the last complete install; None when there is none that can be read."""
    try:
        data = json.loads((build_dir / PLACED_FILE).read_bytes())
        if data["schema"] != SCHEMA:
            return None
        return Placed(
            **{part: _tuples(data[part]) for part in ("installed", "sources", "made")},
            carried=data["carried"],
            folders={
                path: Folder(changed, tuple(names), tuple(folders))
                for path, (changed, names, folders) in data["folders"].items()
            },
        )
    except (OSError, ValueError, TypeError, LookupError, AttributeError):
        return None


def _tuples(stamps: Mapping[str, list[int]]) -> dict[str, Stamp]:
    return {path: (size, changed) for path, (size, changed) in stamps.items()}


def write(build_dir: Path, placed: Placed, inputs: Mapping[str, str]) -> None:
    """Remember a complete install and the inputs that it was made from.

    Raises:
        BuildFailed: it cannot be written.
    """
    folders = {path: (each.changed, each.names, each.folders) for path, each in placed.folders.items()}
    data = {**_shallow(placed), "folders": folders, "schema": SCHEMA}
    write_atomic(build_dir / PLACED_FILE, json.dumps(data).encode(), error=BuildFailed)
    inputs_file = json.dumps({"schema": SCHEMA, "inputs": dict(inputs)}).encode()
    write_atomic(build_dir / INSTALL_FILE, inputs_file, error=BuildFailed)


def _shallow(placed: Placed) -> dict[str, object]:
    return {name: getattr(placed, name) for name in ("installed", "sources", "made", "carried")}


def forget(build_dir: Path) -> None:
    """Before the front end runs: what was in place is no longer known."""
    for name in (INSTALL_FILE, PLACED_FILE):
        with contextlib.suppress(OSError):
            unlink(build_dir / name, missing_ok=True)
