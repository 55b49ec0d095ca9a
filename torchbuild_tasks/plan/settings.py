"""Check torchbuild.toml: the names of the flags, [set] with build variables, rows of the user's own.

A file may also name builds: [builds.NAME] has the same keys, inherits the rest from the build that
it `extends`, and overrides what the file says for all. Every error names file, line and key.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Mapping
from typing import Any, Final, TypeVar

import msgspec
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from torchbuild_tasks.catalog.diagnosis import FailureRow
from torchbuild_tasks.catalog.match import parse_requirement
from torchbuild_tasks.catalog.rows import HelperRow
from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.options import BuildRequest, choices_of, flag_name
from torchbuild_tasks.text.words import did_you_mean
from torchbuild_tasks.values import from_json, replace, toml_value

R = TypeVar("R", bound=msgspec.Struct)

# Keys that are not flags: build variables, and rows laid over ours.
TABLES: Final = ("set", "helper", "failure", "builds", "mirrors")
# Keys that only a named build has.
OWN: Final = ("extends", "ref", "folder")

# A name becomes a part of a folder's name, on Windows too.
_NAME: Final = re.compile(r"[A-Za-z0-9](?:[\w.-]{0,38}[\w-])?")
_DEVICES: Final = re.compile(r"(?i:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?")
_NAMES: Final = "Use letters, digits, - and _, at most 40; it becomes part of a folder's name."
_CAPITALS: Final = re.compile("[A-Z][A-Z0-9_]+")
_IN_FILE: Final = tuple(each for each in dataclasses.fields(BuildRequest) if each.metadata["in_file"])
_FLAGS: Final = {flag_name(each.name)[2:]: each.name for each in _IN_FILE}
_VARIABLE: Final = re.compile(r"[^\W\d]\w*")
_SIZE: Final = re.compile(r"([0-9]+)([KMGT]?)(?:I?B)?")
_UNITS: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}  # bytes
_NUL: Final = "it has a NUL, which no program is given"
_OPPOSITE: Final = {"cpu": "cuda", "cuda": "cpu"}
_KINDS: Final[Mapping[type, str]] = {bool: "true or false", int: "a whole number", str: "text in quotes"}


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


class Withheld(msgspec.Struct, frozen=True, kw_only=True):
    """A key of an untrusted file, and what it would do if the file were trusted.

    `value` is what a key of a flag says that holds for every build.
    """

    key: str
    why: str
    value: str = ""


class Stale(msgspec.Struct, frozen=True, kw_only=True):
    """A setting whose folder or program is not there, and what to do."""

    what: str
    fix: str


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a settings file; empty when there is none.

    `build` is the one of `builds` whose values lie over the others; as long as its worktree is not there,
    `seen_from` is the checkout that is looked at instead. `withheld` has, by the place that is to be trusted,
    what was found and does not count until it is trusted (`plan/trust.py`). `places` has the
    file of each field, and of each variable as `set.NAME`, that is not in `path`: the user-wide one. `stale`
    has the fields that name what is not there; they are in `values` no more (`plan/places.py`).
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
    withheld: Mapping[str, tuple[Withheld, ...]] = msgspec.field(default_factory=dict)
    places: Mapping[str, str] = msgspec.field(default_factory=dict)
    stale: Mapping[str, Stale] = msgspec.field(default_factory=dict)

    def over(self, below: Settings) -> Settings:
        """Return these settings laid over those of another file, which `places` then names.

        Its named builds do not count: their worktrees are next to the file.
        """
        values = {
            name: value
            for name, value in below.values.items()
            if not self.values.get(_OPPOSITE.get(name, ""))
        }
        named = {name: str(below.path) for name in values.keys() - self.values.keys()}
        named |= {f"set.{name}": str(below.path) for name in below.variables.keys() - self.variables.keys()}
        return replace(
            self,
            values={**values, **self.values},
            variables={**below.variables, **self.variables},
            helpers=(*self.helpers, *below.helpers),
            failures=(*self.failures, *below.failures),
            mirrors=tuple({**dict(below.mirrors), **dict(self.mirrors)}.items()),
            places=named,
        )

    def without(self, names: Collection[str]) -> Settings:
        """Return these settings without some fields, which the user has negated."""
        values = {name: value for name, value in self.values.items() if name not in names}
        return replace(self, values=values)

    def of(self, build: NamedBuild) -> Settings:
        """Return the same file for one of its builds, whose values override those for all.

        Of the two devices the file may name one and the build the other.
        """
        values = {
            name: value
            for name, value in self.values.items()
            if not build.values.get(_OPPOSITE.get(name, ""))
        }
        return replace(
            self,
            values={**values, **build.values},
            variables={**self.variables, **build.variables},
            build=build,
        )

    def place(self, name: str) -> str:
        """Return where a field, or a variable as `set.NAME`, is written."""
        owner = self.build.origins.get(name) if self.build else None
        return f"[builds.{owner}] in {self.path}" if owner else self.places.get(name, str(self.path))

    def rank(self, name: str) -> int:
        """Return the rank of a field, or of a variable as `set.NAME`: a build, the file, the wide one."""
        if self.build and name in self.build.origins:
            return 0
        return 2 if name in self.places else 1


def flag_or_setting(request: BuildRequest, settings: Settings, name: str) -> Any:
    """Return what the flag of a field says, else the settings file; None where neither says anything."""
    return getattr(request, name) or settings.values.get(name)


class _File(msgspec.Struct, frozen=True):
    """A settings file for messages: its path, and the line (from 1) of each dotted key."""

    path: str
    lines: Mapping[str, int]

    def line(self, key: str) -> int | str:
        return self.lines.get(key, "?")

    def place(self, key: str) -> str:
        return f"{self.path}, line {self.line(key)}"

    def wrong(self, key: str, value: object, why: str, fix: str = "") -> UsageError:
        text = f"{self.place(key)}: {key} = {_show_value(value)} cannot be read: {why}"
        return UsageError(text, next_step=fix)

    def unknown(self, key: str, known: tuple[str, ...], value: object = None) -> UsageError:
        above, _, name = key.rpartition(".")
        text = f"{self.place(key)}: unknown key {key!r}"
        if _is_variable(name, value):
            table = f"{above}.set" if above else "set"
            what = "are build variables and belong"
            what = what if isinstance(value, dict) else "is a build variable and belongs"
            named = ", ".join(value) if isinstance(value, dict) else name
            lines = value if isinstance(value, dict) else {name: value}
            sample = "; ".join(f"{each} = {toml_value(lines[each])}" for each in lines)
            return UsageError(
                f"{text}: {named} {what} under [{table}]",
                next_step=f"Write below a line [{table}], behind the keys of no table: {sample}",
            )
        if isinstance(value, dict) and value and all(_as_flag(each) for each in value):
            where = "at the beginning of the file, above the first [table]"
            return UsageError(f"{text}; its keys stand under no table", next_step=f"Move them {where}.")
        return UsageError(f"{text}{did_you_mean(name, known)}", looked=(f"keys: {', '.join(known)}",))

    def misplaced(self, key: str) -> UsageError:
        """Return the error about a key of ours below the line of a table that is not for it."""
        above, _, name = key.rpartition(".")
        build = re.match(r"builds\.[^.]+(?=\.set$)", above)
        where = f"into [{build[0]}]" if build else "above the first [table] of the file"
        return UsageError(
            f"{self.place(key)}: {name} is a key of its own, and it stands under [{above}], since in TOML "
            "a key belongs to the last [table] before it",
            next_step=f"Move the line {where}.",
        )


def _as_flag(key: str) -> str | None:
    """Return the field of a request that a key of the file is; None for any other name."""
    return _FLAGS.get(key.replace("_", "-"))


def _is_variable(name: str, value: object) -> bool:
    """Say whether a key is written like a build variable, or is a table of such."""
    if isinstance(value, dict):
        return bool(value) and all(_is_variable(each, one) for each, one in value.items())
    return _CAPITALS.fullmatch(name) is not None and isinstance(value, (str, int))


def _show_value(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}..."


def check_settings(path: str, data: Mapping[str, object], lines: Mapping[str, int]) -> Settings:
    """Check every key and value of a settings file.

    Args:
        path: the file, for messages.
        data: the decoded TOML.
        lines: line number (from 1) of each dotted key.

    Raises:
        UsageError: a key is unknown or a value is of the wrong kind; names file, line and key.
    """
    file = _File(path, lines)
    values, variables = _values(file, data)
    return Settings(
        path=path,
        values=values,
        variables=variables,
        builds=_builds(file, data.get("builds", {})),
        helpers=_rows(file, data, "helper", HelperRow),
        failures=_failures(file, data),
        mirrors=_mirrors(file, data.get("mirrors", {})),
    )


def check_value(name: str, value: object, source: str = "") -> None:
    """Check one flag's value against its declaration.

    Args:
        name: the field.
        value: what was given.
        source: how it was given, if not by its flag: the name of a variable.

    Raises:
        UsageError: not one of the choices (names the nearest), or a job count below 1.
    """
    flag = next(f for f in dataclasses.fields(BuildRequest) if f.name == name)
    source = source or flag_name(name)
    choices = choices_of(flag) if value is not None else ()
    if choices and value not in choices:
        hint = did_you_mean(str(value), choices)
        raise UsageError(
            f"{source} cannot be {value!r}{hint}", next_step=f"Choose one of: {', '.join(choices)}."
        )
    if name == "jobs" and isinstance(value, int) and value < 1:
        raise UsageError(
            f"{source} cannot be {value}: a build needs at least one job",
            next_step=f"Leave {source} out to let the plan choose from cores and free memory.",
        )


def split_assignment(text: str) -> tuple[str, str]:
    """Read KEY=VALUE.

    Raises:
        UsageError: there is no =, or KEY cannot be the name of a variable.
    """
    name, equals, value = text.partition("=")
    if not equals or not _VARIABLE.fullmatch(name):
        plain = text.removeprefix("-D")
        known = equals and _VARIABLE.fullmatch(plain.partition("=")[0])
        raise UsageError(
            f"--set {text!r} is not KEY=VALUE",
            next_step=f"Write for example: --set {plain if known else 'USE_DISTRIBUTED=0'}",
        )
    return name, value


def read_size(text: str, flag: str) -> int:
    """Return the bytes of "20G", "500M", "1T" or a plain number; 0 for an empty text.

    Raises:
        UsageError: it is not a size.
    """
    match = _SIZE.fullmatch(text.upper())
    if text and (match is None or not int(match[1])):
        raise UsageError(f"{flag} cannot be {text!r}", next_step=f"Write for example: {flag} 20G")
    return int(match[1]) * _UNITS[match[2]] if match else 0


def _can_name(name: str) -> bool:
    """Say whether a name can be a build's: it becomes a part of a folder's name."""
    return _NAME.fullmatch(name) is not None and _DEVICES.fullmatch(name) is None


def pick(builds: Mapping[str, NamedBuild], name: str, path: str | None) -> NamedBuild:
    """Return the build of that name.

    Raises:
        UsageError: there is none (names the nearest), or no settings file at all.
    """
    if name in builds:
        return builds[name]
    if not _can_name(name):
        listed = (f"builds: {', '.join(builds)}",) if builds else ()
        raise UsageError(f"{name!r} cannot name a build", looked=listed, next_step=_NAMES)
    hint = did_you_mean(name, builds)
    looked = (
        (f"{path}: {', '.join(builds) or 'it has no [builds.NAME]'}",) if path else ("no torchbuild.toml",)
    )
    raise UsageError(
        f"There is no build {name!r}{hint}",
        looked=looked,
        next_step=f"Write [builds.{name}] into torchbuild.toml, or name its file with --config.",
    )


# ---------------- keys and values, of the file or of one named build


def _values(
    file: _File, data: Mapping[str, object], above: str = ""
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the fields and variables of the file, or of the table `above`, which has no tables but [set]."""
    known = {flag_name(f.name)[2:]: f for f in _IN_FILE}
    tables = ("set", *OWN) if above else TABLES
    values: dict[str, Any] = {}
    for key, value in data.items():
        if key in tables:
            continue
        flag = known.get(key.replace("_", "-"))
        if flag is None:
            raise file.unknown(above + key, (*known, *tables), value)
        values[flag.name] = _check_value(file, above + key, value, flag)
    return values, _variables(file, data.get("set", {}), above)


def _check_value(file: _File, key: str, value: object, flag: Any) -> object:
    if flag.default == ():
        return _words(file, key, value)
    wanted = bool if isinstance(flag.default, bool) else int if flag.name == "jobs" else str
    if type(value) is not wanted:  # a bool is an int, too
        raise file.wrong(key, value, f"it must be {_KINDS[wanted]}")
    if isinstance(value, str) and ("\0" in value or not value.strip()):
        raise file.wrong(key, value, _NUL if value.strip() else "it is empty")
    try:
        check_value(flag.name, value)
    except UsageError as error:
        raise file.wrong(key, value, error.what, error.next_step) from None
    return value


def _words(file: _File, key: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        sample = toml_value([value if isinstance(value, str) else "NAME"])
        raise file.wrong(key, value, f"it must be a list of texts: {sample}")
    if any("\0" in word for word in value):
        raise file.wrong(key, value, _NUL)
    return tuple(value)


def _variables(file: _File, table: object, above: str) -> dict[str, str]:
    if not isinstance(table, dict):
        raise file.wrong(f"{above}set", table, f"it must be a table: [{above}set]")
    variables = {}
    for name, value in table.items():
        key = f"{above}set.{name}"
        if _as_flag(name):
            raise file.misplaced(key)
        if not isinstance(value, (str, int)):
            raise file.wrong(key, value, "it must be text in quotes, a whole number, or true or false")
        variables[name] = str(int(value) if isinstance(value, bool) else value)
        if not _VARIABLE.fullmatch(name):
            raise file.wrong(key, value, "it cannot be a variable's name")
        if "\0" in variables[name]:
            raise file.wrong(key, value, _NUL)
    return variables


def _mirrors(file: _File, table: object) -> tuple[tuple[str, str], ...]:
    """Return beginnings of git addresses and what stands there instead, as git's insteadOf reads them."""
    if not isinstance(table, dict):
        raise file.wrong("mirrors", table, "it must be a table: [mirrors]")
    for old, new in table.items():
        key = f"mirrors.{old}"
        if _as_flag(old):
            raise file.misplaced(key)
        if not isinstance(new, str) or not new or not old:
            raise file.wrong(key, new, "it must be the beginning of an address, in quotes")
        if "=" in new:
            raise file.wrong(key, new, "git -c cannot carry an address with =")
    return tuple(table.items())


def _rows(file: _File, data: Mapping[str, object], table: str, kind: type[R]) -> tuple[R, ...]:
    """Return the user's own rows of a table; they stand before ours, so they win where both fit."""
    items = data.get(table, [])
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise file.wrong(table, items, f"it must be tables: [[{table}]]")
    rows = []
    for number, item in enumerate(items):
        place = f"{table}.{number}"
        for key in item.keys() - {each.name for each in msgspec.structs.fields(kind)}:
            if _as_flag(key):
                raise file.misplaced(f"{place}.{key}")
        try:
            rows.append(from_json(kind, item, place))
        except UsageError as error:
            key = re.split(r"[\s:\[]", error.what)[0]  # the row, or the column that is wrong
            line = file.lines.get(key, file.line(place))
            raise UsageError(f"{file.path}, line {line}: {error.what}", looked=error.looked) from None
        for column, fits, what in _COLUMNS:
            value = item.get(column)
            for word in value if isinstance(value, list) else [value] if value else []:
                if not fits(word):
                    raise file.wrong(f"{place}.{column}", word, f"it must be {what}")
    return tuple(rows)


def _specifier(text: str) -> bool:
    try:
        return bool(SpecifierSet(text)) or not text
    except InvalidSpecifier:
        return False


# What a column of the user's own rows must be, apart from its type: name, test of a text, description.
_COLUMNS: Final = (
    ("torch", _specifier, 'versions as Python writes them: ">=2.9,<2.11"'),
    ("requires", parse_requirement, 'a requirement as pip writes it: "mkl==2025.1"'),
    ("sha256", re.compile("(?:[0-9a-f]{64})?").fullmatch, "64 hexadecimal digits in lower case"),
)


def _failures(file: _File, data: Mapping[str, object]) -> tuple[FailureRow, ...]:
    read = _rows(file, data, "failure", FailureRow)
    if not read:
        return ()
    from torchbuild_tasks.catalog.failures import FailureBook, UserFailureRow  # few have rows of their own

    rows = []
    for number, row in enumerate(read):
        key = f"failure.{number}.patterns"
        rows.append(UserFailureRow(**msgspec.structs.asdict(row), place=file.place(key)))
        try:
            FailureBook(rows[-1:])
        except ValueError as error:
            raise file.wrong(key, row.patterns, str(error)) from None
    return tuple(rows)


# ---------------- named builds


def _builds(file: _File, tables: object) -> Mapping[str, NamedBuild]:
    """Return every named build, its parents' values below its own.

    Raises:
        UsageError: a name that cannot be a folder's, an unknown parent, a circle, or a wrong key or value.
    """
    if not isinstance(tables, dict):
        raise file.wrong("builds", tables, "it must be tables: [builds.NAME]")
    for name, table in tables.items():
        key = f"builds.{name}"
        if not isinstance(table, dict) and _as_flag(name):
            raise file.misplaced(key)
        if not _can_name(name):
            raise UsageError(f"{file.place(key)}: {name!r} cannot name a build", next_step=_NAMES)
        if not isinstance(table, dict):
            raise UsageError(f"{file.place(key)}: {key} must be a table: [{key}]")
        for own in OWN:
            if not isinstance(table.get(own, ""), str) or table.get(own) == "":
                raise UsageError(f"{file.place(f'{key}.{own}')}: {key}.{own} must be text in quotes")
    return {name: _build(file, tables, name) for name in tables}


def _build(file: _File, tables: Mapping[str, Mapping[str, object]], name: str) -> NamedBuild:
    line = _line_of_descent(file, tables, name)
    values: dict[str, Any] = {}
    variables: dict[str, str] = {}
    origins: dict[str, str] = {}
    own: dict[str, str] = {}
    for ancestor in reversed(line):
        table = tables[ancestor]
        own |= {key: str(table[key]) for key in OWN if key in table}
        fields, settings = _values(file, table, f"builds.{ancestor}.")
        for key in fields:
            if values.pop(_OPPOSITE.get(key, ""), None):
                origins.pop(_OPPOSITE[key])
        values |= fields
        variables |= settings
        origins |= dict.fromkeys((*fields, *(f"set.{key}" for key in settings)), ancestor)
    return NamedBuild(
        name=name,
        line=file.line(f"builds.{name}"),
        parents=line[1:],
        values=values,
        variables=variables,
        origins=origins,
        ref=own.get("ref"),
        folder=own.get("folder") if "folder" in tables[name] else None,
    )


def _line_of_descent(file: _File, tables: Mapping[str, Mapping[str, object]], name: str) -> tuple[str, ...]:
    """Return the build, its parent, that one's parent …"""
    line = [name]
    while "extends" in tables[line[-1]]:
        key = f"builds.{line[-1]}.extends"
        parent = str(tables[line[-1]]["extends"])
        if parent not in tables:
            hint = did_you_mean(parent, tables)
            raise UsageError(
                f"{file.place(key)}: builds.{line[-1]} extends {parent!r}, and there is no such build{hint}",
                looked=(f"builds: {', '.join(tables)}",),
            )
        if parent in line:
            circle = (*line[line.index(parent) :], parent)
            raise UsageError(
                f"{file.place(key)}: builds extend one another in a circle: {' -> '.join(circle)}",
                looked=tuple(
                    f"{file.place(f'builds.{each}.extends')}: {each} extends {tables[each]['extends']}"
                    for each in circle[:-1]
                ),
                next_step="Take `extends` out of one of them.",
            )
        line.append(parent)
    return tuple(line)
