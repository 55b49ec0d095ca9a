"""torchbuild.toml, checked: the same names as the flags, and a [set] table of variables."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import msgspec

from torchbuild_tasks.catalog import FailureRow, HelperRow
from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.options import BuildRequest, flag_name
from torchbuild_tasks.text.words import did_you_mean
from torchbuild_tasks.values import from_json, replace

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


# ----------------


R = TypeVar("R")

# Keys that are no flags: build variables, and rows laid over ours.
TABLES = ("set", "helper", "failure", "builds", "mirrors")


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What a settings file says; empty when there is none.

    `build` is the one of `builds` whose values lie over the others; as long as its worktree is not there,
    `seen_from` is the checkout that is looked at instead.
    """

    path: str | None = None
    values: Mapping[str, Any] = msgspec.field(default_factory=dict)
    variables: Mapping[str, str] = msgspec.field(default_factory=dict)
    helpers: tuple[HelperRow, ...] = ()
    failures: tuple[FailureRow, ...] = ()
    mirrors: tuple[tuple[str, str], ...] = ()
    builds: Mapping[str, NamedBuild] = msgspec.field(default_factory=dict)
    build: NamedBuild | None = None
    seen_from: str = ""

    def of(self, build: NamedBuild) -> Settings:
        """The same file seen by one of its builds, whose values lie over those for all."""
        values = {name: value for name, value in self.values.items() if name not in _hidden(build)}
        return replace(
            self,
            values={**values, **build.values},
            variables={**self.variables, **build.variables},
            build=build,
        )

    def place(self, name: str) -> str:
        """Where a field, or a variable as `set.NAME`, is said."""
        owner = self.build.origins.get(name) if self.build else None
        return f"[builds.{owner}] in {self.path}" if owner else str(self.path)


def _hidden(build: NamedBuild) -> tuple[str, ...]:
    """Of the two devices the file may name one and the build the other."""
    return tuple(other for one, other in (("cpu", "cuda"), ("cuda", "cpu")) if build.values.get(one))


def check_settings(path: str, data: Mapping[str, object], lines: Mapping[str, int]) -> Settings:
    """Check every key and value of a settings file.

    Args:
        path: the file, for messages.
        data: the decoded TOML.
        lines: line number (from 1) of each dotted key.

    Raises:
        UsageError: a key is unknown or a value is of the wrong kind; names file, line and key.
    """
    values, variables = _values(path, lines, data)
    return Settings(
        path=path,
        values=values,
        variables=variables,
        builds=_builds(path, lines, data.get("builds", {})),
        helpers=_rows(path, lines, data, "helper", HelperRow),
        failures=_failures(path, lines, data),
        mirrors=_mirrors(path, lines, data.get("mirrors", {})),
    )


def _values(
    path: str, lines: Mapping[str, int], data: Mapping[str, object], above: str = ""
) -> tuple[dict[str, Any], dict[str, str]]:
    """Fields and variables of the file, or of the table `above`, which has no tables but [set]."""
    known = {flag_name(f.name)[2:]: f for f in dataclasses.fields(BuildRequest) if f.metadata["in_file"]}
    tables = ("set", *OWN) if above else TABLES
    values: dict[str, Any] = {}
    for key, value in data.items():
        if key in tables:
            continue
        flag = known.get(key.replace("_", "-"))
        if flag is None:
            raise _unknown(path, lines, above + key, (*known, *tables))
        values[flag.name] = _checked(path, lines, above + key, value, flag)
    return values, _variables(path, lines, data.get("set", {}), above)


def _builds(path: str, lines: Mapping[str, int], tables: object) -> Mapping[str, NamedBuild]:
    if not isinstance(tables, dict):
        raise _wrong(path, lines, "builds", tables, "it must be tables: [builds.NAME]")
    return read_builds(
        Tables(path, lines, tables, lambda above, data: _values(path, lines, data, f"{above}."))
    )


def _checked(path: str, lines: Mapping[str, int], key: str, value: object, flag: Any) -> object:
    if isinstance(flag.default, bool):
        wanted: tuple[type, ...] = (bool,)
    elif flag.name == "jobs":
        wanted = (int,)
    elif flag.default == ():
        return _words(path, lines, key, value)
    else:
        wanted = (str,)
    if not isinstance(value, wanted) or (wanted == (int,) and isinstance(value, bool)):
        raise _wrong(path, lines, key, value, f"it must be {_KINDS[wanted[0]]}")
    try:
        check_value(flag.name, value)
    except UsageError as error:
        raise _wrong(path, lines, key, value, error.what) from None
    return value


_KINDS = {bool: "true or false", int: "a whole number", str: "text in quotes"}


def check_value(name: str, value: object) -> None:
    """Check one flag's value against its declaration.

    Raises:
        UsageError: not one of the choices (names the nearest), or a job count below 1.
    """
    flag = next(f for f in dataclasses.fields(BuildRequest) if f.name == name)
    choices = flag.metadata["choices"]
    if choices and value is not None and value not in choices:
        hint = did_you_mean(str(value), choices)
        raise UsageError(
            f"{flag_name(name)} cannot be {value!r}{hint}", next_step=f"Choose one of: {', '.join(choices)}."
        )
    if name == "jobs" and isinstance(value, int) and value < 1:
        raise UsageError(
            f"--jobs cannot be {value}: a build needs at least one job",
            next_step="Leave --jobs out to let the plan choose from cores and free memory.",
        )


def split_assignment(text: str) -> tuple[str, str]:
    """Read KEY=VALUE.

    Raises:
        UsageError: there is no =, or KEY cannot be the name of a variable.
    """
    name, equals, value = text.partition("=")
    if not equals or not name or not name.replace("_", "a").isalnum() or name[0].isdigit():
        raise UsageError(
            f"--set {text!r} is not KEY=VALUE", next_step="Write for example: --set USE_DISTRIBUTED=0"
        )
    return name, value


def _variables(path: str, lines: Mapping[str, int], table: object, above: str = "") -> dict[str, str]:
    if not isinstance(table, dict):
        raise _wrong(path, lines, f"{above}set", table, f"it must be a table: [{above}set]")
    variables = {}
    for name, value in table.items():
        if not isinstance(value, (str, int)):
            raise _wrong(path, lines, f"{above}set.{name}", value, "it must be text or a number")
        variables[name] = str(int(value) if isinstance(value, bool) else value)
        try:
            split_assignment(f"{name}=")
        except UsageError:
            raise _wrong(path, lines, f"{above}set.{name}", value, "it cannot be a variable's name") from None
    return variables


def _mirrors(path: str, lines: Mapping[str, int], table: object) -> tuple[tuple[str, str], ...]:
    """Beginnings of git addresses and what stands there instead, as git's insteadOf reads them."""
    if not isinstance(table, dict):
        raise _wrong(path, lines, "mirrors", table, "it must be a table: [mirrors]")
    for old, new in table.items():
        if not isinstance(new, str) or not new or not old:
            raise _wrong(
                path, lines, f"mirrors.{old}", new, "it must be the beginning of an address, in quotes"
            )
        if "=" in new:
            raise _wrong(path, lines, f"mirrors.{old}", new, "git -c cannot carry an address with =")
    return tuple(table.items())


def _words(path: str, lines: Mapping[str, int], key: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise _wrong(path, lines, key, value, 'it must be a list of texts: ["mkl"]')
    return tuple(value)


def _rows(
    path: str, lines: Mapping[str, int], data: Mapping[str, object], table: str, kind: type[R]
) -> tuple[R, ...]:
    """Rows of the user's own; they stand before ours, so they win where both fit."""
    items = data.get(table, [])
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise _wrong(path, lines, table, items, f"it must be tables: [[{table}]]")
    rows = []
    for number, item in enumerate(items):
        place = f"{table}.{number}"
        try:
            rows.append(from_json(kind, item, place))
        except UsageError as error:
            key = re.split(r"[\s:\[]", error.what)[0]  # the row, or the column that is wrong
            line = lines.get(key, lines.get(place, "?"))
            raise UsageError(f"{path}, line {line}: {error.what}", looked=error.looked) from None
    return tuple(rows)


def _failures(path: str, lines: Mapping[str, int], data: Mapping[str, object]) -> tuple[FailureRow, ...]:
    from torchbuild_tasks.catalog.failures import FailureBook  # few have rows of their own

    rows = _rows(path, lines, data, "failure", FailureRow)
    for number, row in enumerate(rows):
        try:
            FailureBook((row,))
        except ValueError as error:
            raise _wrong(path, lines, f"failure.{number}.patterns", row.patterns, str(error)) from None
    return rows


def _unknown(path: str, lines: Mapping[str, int], key: str, known: tuple[str, ...]) -> UsageError:
    hint = did_you_mean(key.rpartition(".")[2], known)
    return UsageError(
        f"{path}, line {lines.get(key, '?')}: unknown key {key!r}{hint}",
        looked=(f"keys: {', '.join(known)}",),
    )


def _wrong(path: str, lines: Mapping[str, int], key: str, value: object, why: str) -> UsageError:
    return UsageError(f"{path}, line {lines.get(key, '?')}: {key} = {value!r} cannot be read: {why}")
