"""Decide which steps a build needs in addition to Ninja, from two snapshots of an editable install.

A snapshot is of the files that the editable install reads, and of what they were made from, as file times
and names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

# Size in bytes and time of modification in ns.
Stamp = tuple[int, int]


class Folder(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One folder of sources: its time of modification (ns), its relevant files, its folders."""

    changed: int
    names: tuple[str, ...]
    folders: tuple[str, ...]


class Snapshot(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An editable install at one moment. Paths are absolute, or relative to the checkout with `/`.

    `installed` is what CMake installed and `sources` what its install rules copy from;
    `generated` is what the Python front end wrote, `copied` (path to digest of the content) what it
    copies; `folders` are those whose files CMake lists.
    """

    installed: Mapping[str, Stamp] = msgspec.field(default_factory=dict)
    sources: Mapping[str, Stamp] = msgspec.field(default_factory=dict)
    generated: Mapping[str, Stamp] = msgspec.field(default_factory=dict)
    copied: Mapping[str, str] = msgspec.field(default_factory=dict)
    folders: Mapping[str, Folder] = msgspec.field(default_factory=dict)


SOURCES: Final = (
    *(".c", ".cc", ".cpp", ".cxx", ".cu", ".cuh", ".h", ".hpp", ".mm", ".metal", ".s", ".S"),
    *(".in", ".proto", ".glsl", ".yaml"),
)
MODULES: Final = (".py", ".pyd", ".so")


class Due(msgspec.Struct, frozen=True, kw_only=True):
    """The reason for each step that is needed; "" for a step that is not."""

    front_end: str = ""
    cmake: str = ""
    install: str = ""


def find_due(before: Snapshot, now: Snapshot, *, lists_modules: bool) -> Due:
    """Return the steps that changed files require since the last install, before Ninja runs.

    Args:
        before: the snapshot after the last complete install.
        now: the present snapshot.
        lists_modules: the editable install holds a list of the modules (scikit-build-core's does).
    """
    removed = _find_removed(before.folders, now.folders, (".py",)) if lists_modules else ()
    sources = [
        *_find_removed(before.folders, now.folders, SOURCES),
        *_find_removed(now.folders, before.folders, SOURCES),
    ]
    return Due(
        front_end=_unlike(before.generated, now.generated, "the front end left it")
        or (f"{removed[0]} is gone, and the editable install lists it" if removed else ""),
        cmake=f"{sources[0]} is new or gone, and CMake may list it" if sources else "",
        install=_unlike(before.installed, now.installed, "it was installed")
        or _unlike(before.sources, now.sources, "it was when it was installed"),
    )


def why_front_end(before: Snapshot, after: Snapshot, *, lists_modules: bool) -> str:
    """Return why the front end must run after Ninja and the install; "" if it need not."""
    copied = [path for path, digest in after.copied.items() if before.copied.get(path) != digest]
    if copied:
        return f"the front end copies {copied[0]}, which is another now"
    if not lists_modules:
        return ""
    removed = sorted(set(before.installed) - set(after.installed))
    new = [path for path in after.installed if path not in before.installed and path.endswith(MODULES)]
    if removed:
        return f"{removed[0]} is installed no longer, and only the front end removes it"
    return f"{new[0]} is a new module, and the editable install lists them" if new else ""


def _unlike(before: Mapping[str, object], now: Mapping[str, object], how: str) -> str:
    for path, stamp in before.items():
        if path not in now:
            return f"{path} is gone"
        if now[path] != stamp:
            return f"{path} is not as {how}"
    return next((f"{path} is new" for path in now if path not in before), "")


def _find_removed(
    before: Mapping[str, Folder], now: Mapping[str, Folder], suffixes: Sequence[str]
) -> tuple[str, ...]:
    """Return the files of these kinds that the first snapshot has and the second has not."""
    missing: list[str] = []
    for folder, had in before.items():
        has = now.get(folder)
        if has is not None and has.names == had.names:
            continue
        names = set(has.names) if has else set()
        missing += [
            f"{folder}/{name}" for name in had.names if name not in names and name.endswith(tuple(suffixes))
        ]
    return tuple(missing)
