"""Rows for reading logs: failures, kinds of errors, components."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec


class FailureRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A known failure, recognised by its messages.

    `patterns` are regular expressions over one line, or over a paragraph of CMake or of
    an exception. `cause` explains it; of the sentences of `fix` (and of `command`, a command of
    ours) the first is printed whose names are all known: `{1}` is the pattern's first
    group, the others are listed in docs/diagnose.md. A `warning` fails no build. Of several rows
    a `root` is printed first, and a `consequence` only where there is no other. `near` are
    similar lines that must not match. `confirmed` is false where the row could not be checked.
    A row without patterns is a symptom that is in no log.
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
    """The forms that errors of a kind have in the messages of a program."""

    kind: str
    program: str
    patterns: tuple[str, ...]
    std: str = ""


class MessageRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A message of a program as a template of printf, and its translations."""

    english: str
    translations: tuple[str, ...]


class ComponentRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A component that builds use, and how to get it. The columns are explained in data/components.toml."""

    name: str
    headers: tuple[str, ...] = ()
    libs: tuple[str, ...] = ()
    symbols: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    submodule: str = ""
    pip: str = ""
    pip_headers: bool = False
    names: Mapping[str, str] = msgspec.field(default_factory=dict)
    link: str = ""
    link_windows: str = ""
    wheel: str = ""
    toolkit: str = ""
    aside: str = ""
    include: str = ""
    runtime: str = ""
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


class StdNameRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Names of the C++ library and their header. The columns are explained in data/std_names.toml."""

    header: str
    since: int
    names: str
    of_c: bool = False


class TorchNameRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A module, name or header of torch, the first and the last series that has it ("" for no such limit).

    `header` is the one for CUDA that declares a name of C++ from 1.13 on.
    """

    name: str
    first: str
    last: str
    header: str = ""


class SignRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What stands in an error and decides between fixes; data/signs.toml has the columns."""

    name: str
    pattern: str


class FetcherRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a program that fetches is told of a proxy, a login ...; data/fetchers.toml has the columns."""

    name: str
    marks: tuple[str, ...]
    proxy: str
    trust: str
    patience: str
    login: str
    cache: str


class PremiseRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a typed command needs, and what speaks against it; data/premises.toml has the columns."""

    typed: str
    against: tuple[str, ...]
    instead: str = ""
    also: str = ""


class SystemWordRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a word of a fix is typed on another system; data/system_words.toml has the columns."""

    unix: str
    windows: str = ""
    mac: str = ""


class OwnWordRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Words of a fix that only some systems know; data/system_words.toml has the columns."""

    words: str
    of: tuple[str, ...]
