"""The rows about failures: what a log says, what that means, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec


class FailureRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A failure that is known by what it says.

    `patterns` are regular expressions over one line, or over a whole paragraph of CMake or of
    an exception. `cause` says what that means; of the sentences of `fix` (and of `command`, one of
    ours that does it) the first is told whose names are all known: `{1}` is the pattern's first
    group, the others are listed in docs/diagnose.md. A `warning` fails no build. Of several rows
    a `root` is told first, and a `consequence` only where nothing else is known. `near` are
    lines that look alike and must not match. `confirmed` is false where nobody could check
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


class PackageRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What each package manager calls a thing; `*` in the name stands for a version ("g++-*").

    `options` are further words for a manager.
    """

    name: str
    names: Mapping[str, str] = msgspec.field(default_factory=dict)
    options: Mapping[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
