"""Named builds as values: what is known of one, how to enter it, what a removal takes, how two differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec


class Last(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the last build in a folder ended, by its manifest; `python` is where torch went."""

    result: str
    finished: str
    torch: str
    python: str


class Shown(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A named build, where it is and how far.

    `values` are its fields, and its variables as `set.NAME`, each with the table that says it.
    """

    name: str
    folder: str
    state: str
    active: bool
    ref: str = ""
    parents: tuple[str, ...] = ()
    last: Last | None = None
    values: Mapping[str, tuple[Any, str]] | None = None


class Away(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a removal takes away: the folder, its bytes, and what is left behind elsewhere."""

    name: str
    folder: str
    size: int
    left: tuple[str, ...] = ()
    removed: bool = False


class Entering(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The lines that enter a build, by shell, and the shells for which no env file was written yet."""

    name: str
    folder: str
    lines: Mapping[str, str]
    missing: tuple[str, ...]


class Difference(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One choice, variable or command of two plans that differs; `reasons` are those of the two values."""

    name: str
    values: tuple[str, str]
    reasons: tuple[str, str] = ("", "")


Answer = tuple[Shown, ...] | tuple[Difference, ...] | Entering | Away
