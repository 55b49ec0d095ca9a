"""torchbuild.toml, checked: the same names as the flags, and a [set] table of variables."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from torchbuild_tasks.catalog import FailureRow, HelperRow
from torchbuild_tasks.core.builds import OWN, NamedBuild, Tables, read_builds
from torchbuild_tasks.core.words import did_you_mean
from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.request import BuildRequest, flag_name
from torchbuild_tasks.values import from_json, replace

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
    from torchbuild_tasks.core.diagnosis.rows import FailureBook  # few have rows of their own

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
