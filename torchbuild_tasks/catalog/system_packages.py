"""Rows of the packages of a system: what they are called, which library they have, what installs them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec


class InstallerRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The command that installs `{package}` on distributions whose name begins with one of these.

    Whoever is made from one of `like` (identifiers of os-release) does so, too. `names` are packages (as in
    packages.toml) that it calls otherwise. `gcc` are majors of GCC that it has a package of ("" for unknown),
    `more` commands that bring others. `before` leads to where its archive has moved. `repositories` are the
    commands that turn on those of its repositories that are off.
    """

    distributions: tuple[str, ...]
    command: str
    like: tuple[str, ...] = ()
    names: Mapping[str, str] = msgspec.field(default_factory=dict)
    gcc: str = ""
    more: Mapping[str, str] = msgspec.field(default_factory=dict)
    before: str = ""
    repositories: Mapping[str, str] = msgspec.field(default_factory=dict)


class PackageRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The name of a package in each package manager, with `options` for it; `*` is a version ("g++-*").

    `repository` is the one that has it where an installer's row says how to turn that one on.
    """

    name: str
    repository: str = ""
    names: Mapping[str, str] = msgspec.field(default_factory=dict)
    options: Mapping[str, tuple[str, ...]] = msgspec.field(default_factory=dict)


class LibraryRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Libraries by the names of their files (patterns, in small letters for Windows).

    `what` says what it is, `packages` what it is called by package manager. Two of one `family` in one
    process are one too many. `fix` says what else is to be known.
    """

    files: tuple[str, ...]
    what: str
    source: str
    packages: Mapping[str, str] = msgspec.field(default_factory=dict)
    family: str = ""
    fix: str = ""


class ManagerRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The commands of a package manager: `install` precedes the names, `refresh` runs before it.

    One that is `single` takes one package a call; only `root` may call some.
    """

    name: str
    install: tuple[str, ...]
    refresh: tuple[str, ...] = ()
    single: bool = False
    root: bool = False


class WantRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A package that `bootstrap` installs if all `tools` are missing, or the `part` of Python or Windows."""

    package: str
    kind: Literal["needed", "faster"]
    because: str
    tools: tuple[str, ...] = ()
    part: Literal["", "python", "python headers", "python venv", "msvc"] = ""
    os: str = ""
