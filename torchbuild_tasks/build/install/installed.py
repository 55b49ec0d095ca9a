"""What lies where an editable install reads from, and what it was made from, as file times and names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

# Size in bytes and time of modification in ns.
Stamp = tuple[int, int]


class Folder(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One folder of sources: when entries came or went (ns), its files that count, its folders."""

    changed: int
    names: tuple[str, ...]
    folders: tuple[str, ...]


class Placed(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One look at it. Paths are absolute, or relative to the checkout with `/`.

    `installed` is what CMake put in place and `sources` what its install rules copy from;
    `made` is what the Python front end left, `carried` (path to digest of the content) what it
    copies on; `folders` are those whose files CMake lists.
    """

    installed: Mapping[str, Stamp] = msgspec.field(default_factory=dict)
    sources: Mapping[str, Stamp] = msgspec.field(default_factory=dict)
    made: Mapping[str, Stamp] = msgspec.field(default_factory=dict)
    carried: Mapping[str, str] = msgspec.field(default_factory=dict)
    folders: Mapping[str, Folder] = msgspec.field(default_factory=dict)


# ---------------- what a build has to do beyond Ninja's own work, from two looks at what lies in place


SOURCES: Final = (
    *(".c", ".cc", ".cpp", ".cxx", ".cu", ".cuh", ".h", ".hpp", ".mm", ".metal", ".s", ".S"),
    *(".in", ".proto", ".glsl", ".yaml"),
)
MODULES: Final = (".py", ".pyd", ".so")


class Due(msgspec.Struct, frozen=True, kw_only=True):
    """What is due and why; "" where nothing is."""

    front_end: str = ""
    cmake: str = ""
    install: str = ""


def due(before: Placed, now: Placed, *, lists_modules: bool) -> Due:
    """What a change of files since the last install asks for, before Ninja runs.

    Args:
        before: how the last complete install left it.
        now: how it is.
        lists_modules: the editable install holds a list of the modules (scikit-build-core's does).
    """
    gone = _gone(before.folders, now.folders, (".py",)) if lists_modules else ()
    sources = [*_gone(before.folders, now.folders, SOURCES), *_gone(now.folders, before.folders, SOURCES)]
    return Due(
        front_end=_unlike(before.made, now.made, "the front end left it")
        or (f"{gone[0]} is gone, and the editable install lists it" if gone else ""),
        cmake=f"{sources[0]} is new or gone, and CMake may list it" if sources else "",
        install=_unlike(before.installed, now.installed, "it was installed")
        or _unlike(before.sources, now.sources, "it was when it was installed"),
    )


def left_over(before: Placed, after: Placed, *, lists_modules: bool) -> str:
    """Why the front end is needed once Ninja and the install are through; "" when it is not."""
    carried = [path for path, digest in after.carried.items() if before.carried.get(path) != digest]
    if carried:
        return f"the front end copies {carried[0]}, which is another now"
    if not lists_modules:
        return ""
    gone = sorted(set(before.installed) - set(after.installed))
    new = [path for path in after.installed if path not in before.installed and path.endswith(MODULES)]
    if gone:
        return f"{gone[0]} is installed no longer, and only the front end removes it"
    return f"{new[0]} is a new module, and the editable install lists them" if new else ""


def _unlike(before: Mapping[str, object], now: Mapping[str, object], how: str) -> str:
    for path, stamp in before.items():
        if path not in now:
            return f"{path} is gone"
        if now[path] != stamp:
            return f"{path} is not as {how}"
    return next((f"{path} is new" for path in now if path not in before), "")


def _gone(
    before: Mapping[str, Folder], now: Mapping[str, Folder], suffixes: Sequence[str]
) -> tuple[str, ...]:
    """The files of these kinds that the first look has and the second has not."""
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
