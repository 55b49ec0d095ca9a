"""The rows by which logs are read: failures, kinds of errors, and what messages are about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec


class FailureRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A known failure, recognised by its messages.

    `patterns` are regular expressions over one line, or over a whole paragraph of CMake or of
    an exception. `cause` says what that means; of the sentences of `fix` (and of `command`, one of
    ours that does it) the first is told whose names are all known: `{1}` is the pattern's first
    group, the others are listed in docs/diagnose.md. A `warning` fails no build. Of several rows
    a `root` is told first, and a `consequence` only where nothing else is known. `near` are
    lines that look alike and must not match. `confirmed` is false where it was impossible to check
    the row. A row without patterns is a symptom that no log says.
    """

    id: str
    phase: Literal["checkout", "python", "configure", "compile", "link", "install", "import", "runtime"]
    cause: str
    source: str
    fix: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    samples: tuple[str, ...] = ()
    near: tuple[str, ...] = ()
    os: str = ""
    era: str = ""
    torch: str = ""
    severity: Literal["error", "warning"] = "error"
    rank: Literal["root", "cause", "consequence"] = "cause"
    command: tuple[str, ...] = ()
    mistaken_for: str = ""
    confirmed: bool = True


class KindRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A kind of errors. The columns are explained in data/kinds.toml."""

    id: str
    cause: tuple[str, ...]
    fix: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    level: Literal["cause", "general", "consequence"] = "cause"
    look: Literal["", "header", "library", "symbol", "module", "package", "tool", "path"] = ""


class ShapeRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a program words a kind of errors."""

    kind: str
    program: str
    patterns: tuple[str, ...]


class MessageRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A message of a program, as a template of printf, and what it is in other languages."""

    program: str
    english: str
    said: tuple[str, ...]


class ComponentRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part that builds take, and what brings it. The columns are explained in data/components.toml."""

    name: str
    headers: tuple[str, ...] = ()
    libs: tuple[str, ...] = ()
    symbols: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    submodule: str = ""
    pip: str = ""
    names: Mapping[str, str] = msgspec.field(default_factory=dict)
    link: str = ""
    link_windows: str = ""
    wheel: str = ""
    include: str = ""
    like: str = ""
    systems: tuple[str, ...] = ()
    fix: tuple[str, ...] = ()


class GoneRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Names of a Python package that came or went with a release; data/gone.toml has the columns."""

    part: str
    names: tuple[str, ...]
    has: str
    take: str
    source: str


class StandsForRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which version of what (`numpy`, `gcc`) a name of an interface came with."""

    text: str
    name: str
    version: str


class CompilerOptionRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of a compiler, and the release that they came with; data/options.toml has the columns."""

    programs: tuple[str, ...]
    options: tuple[str, ...]
    since: str
    source: str
    earlier: str = ""


class DeclaredRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A header of the C++ library, and names that it declares."""

    header: str
    names: tuple[str, ...]


class TorchNameRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A module, name or header of torch, the first and the last series that has it ("" for no such limit)."""

    name: str
    first: str
    last: str
