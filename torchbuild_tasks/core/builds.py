"""Named builds: the tables [builds.NAME] of torchbuild.toml, with what they take from one another.

A table may hold every key that the file itself may hold for a build, a [builds.NAME.set] of its own, and
three more: `extends` (another build, whose values count where this one is silent), `ref` (what its
worktree checks out) and `folder` (where that worktree is).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from torchbuild_tasks.core.words import did_you_mean
from torchbuild_tasks.errors import UsageError

OWN: Final = ("extends", "ref", "folder")

# A name becomes a part of a folder's name, on Windows too.
_NAME: Final = re.compile(r"[A-Za-z0-9](?:[\w.-]{0,38}[\w-])?")
_DEVICES: Final = re.compile(r"(?i:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?")
_OPPOSITE: Final = {"cpu": "cuda", "cuda": "cpu"}


class NamedBuild(msgspec.Struct, frozen=True, kw_only=True):
    """One [builds.NAME] with everything that it takes from others.

    `origins` says of each field, and of each variable as `set.NAME`, which build's table has it.
    `ref` and `folder` are None where no table says them; `line` is that of the table.
    """

    name: str
    line: int | str
    parents: tuple[str, ...] = ()
    values: Mapping[str, Any] = msgspec.field(default_factory=dict)
    variables: Mapping[str, str] = msgspec.field(default_factory=dict)
    origins: Mapping[str, str] = msgspec.field(default_factory=dict)
    ref: str | None = None
    folder: str | None = None


class Tables(msgspec.Struct, frozen=True):
    """The tables as they stand in the file: `check` reads one without our three keys."""

    path: str
    lines: Mapping[str, int]
    tables: Mapping[str, Mapping[str, object]]
    check: Callable[[str, Mapping[str, object]], tuple[Mapping[str, Any], Mapping[str, str]]]

    def place(self, key: str) -> str:
        """File and line of a key, for messages."""
        return f"{self.path}, line {self.lines.get(key, '?')}"


def read_builds(file: Tables) -> Mapping[str, NamedBuild]:
    """Every build, its parents' values below its own.

    Raises:
        UsageError: a name that cannot be a folder's, an unknown parent, a circle, or a wrong key or value.
    """
    for name, table in file.tables.items():
        key = f"builds.{name}"
        if not _NAME.fullmatch(name) or _DEVICES.fullmatch(name):
            raise UsageError(
                f"{file.place(key)}: {name!r} cannot name a build",
                next_step="Use letters, digits, - and _, at most 40; it becomes part of a folder's name.",
            )
        if not isinstance(table, dict):
            raise UsageError(f"{file.place(key)}: {key} must be a table: [{key}]")
        for own in OWN:
            if not isinstance(table.get(own, ""), str) or table.get(own) == "":
                raise UsageError(f"{file.place(f'{key}.{own}')}: {key}.{own} must be text in quotes")
    return {name: _build(file, name) for name in file.tables}


def _build(file: Tables, name: str) -> NamedBuild:
    line = _line_of_descent(file, name)
    values: dict[str, Any] = {}
    variables: dict[str, str] = {}
    origins: dict[str, str] = {}
    own: dict[str, str] = {}
    for ancestor in reversed(line):
        table = file.tables[ancestor]
        own |= {key: str(table[key]) for key in OWN if key in table}
        rest = {key: value for key, value in table.items() if key not in OWN}
        said, settings = file.check(f"builds.{ancestor}", rest)
        for key in said:
            if values.pop(_OPPOSITE.get(key, ""), None):
                origins.pop(_OPPOSITE[key])
        values |= said
        variables |= settings
        origins |= dict.fromkeys((*said, *(f"set.{key}" for key in settings)), ancestor)
    return NamedBuild(
        name=name,
        line=file.lines.get(f"builds.{name}", "?"),
        parents=line[1:],
        values=values,
        variables=variables,
        origins=origins,
        ref=own.get("ref"),
        folder=own.get("folder") if "folder" in file.tables[name] else None,
    )


def _line_of_descent(file: Tables, name: str) -> tuple[str, ...]:
    """The build, its parent, that one's parent …"""
    line = [name]
    while "extends" in file.tables[line[-1]]:
        key = f"builds.{line[-1]}.extends"
        parent = str(file.tables[line[-1]]["extends"])
        if parent not in file.tables:
            hint = did_you_mean(parent, file.tables)
            raise UsageError(
                f"{file.place(key)}: builds.{line[-1]} extends {parent!r}, and there is no such build{hint}",
                looked=(f"builds: {', '.join(file.tables)}",),
            )
        if parent in line:
            circle = (*line[line.index(parent) :], parent)
            raise UsageError(
                f"{file.place(key)}: builds extend one another in a circle: {' -> '.join(circle)}",
                looked=tuple(
                    f"{file.place(f'builds.{each}.extends')}: {each} extends {file.tables[each]['extends']}"
                    for each in circle[:-1]
                ),
                next_step="Take `extends` out of one of them.",
            )
        line.append(parent)
    return tuple(line)


def pick(builds: Mapping[str, NamedBuild], name: str, path: str | None) -> NamedBuild:
    """The build of that name.

    Raises:
        UsageError: there is none (names the nearest), or no settings file at all.
    """
    if name in builds:
        return builds[name]
    hint = did_you_mean(name, builds)
    looked = (
        (f"{path}: {', '.join(builds) or 'it has no [builds.NAME]'}",) if path else ("no torchbuild.toml",)
    )
    raise UsageError(
        f"There is no build {name!r}{hint}",
        looked=looked,
        next_step=f"Write [builds.{name}] into torchbuild.toml, or name its file with --config.",
    )
