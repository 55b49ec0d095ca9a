"""The rows about libraries: what a file is, and which package brings it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


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
