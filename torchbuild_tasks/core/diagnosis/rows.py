"""The rows of failures, ready to be held against lines."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import msgspec

from torchbuild_tasks.catalog import FailureRow
from torchbuild_tasks.core.diagnosis.patterns import anchors
from torchbuild_tasks.core.rows import applies, parse_version
from torchbuild_tasks.model import Facts


class Hit(msgspec.Struct, frozen=True):
    """A row that a text matches, and what its groups hold ("" for one that took no part)."""

    row: FailureRow
    groups: tuple[str, ...]


class FailureBook:
    """All rows that have patterns, the user's own first.

    Raises:
        ValueError: a pattern cannot be used; names the row and the reason.
    """

    def __init__(self, rows: Iterable[FailureRow]) -> None:
        self.rows: Final = tuple(rows)
        self._known = [
            (_anchors(row, pattern), re.compile(pattern), row)
            for row in self.rows
            for pattern in row.patterns
        ]
        self.anchors: Final = frozenset(anchor for texts, _, _ in self._known for anchor in texts)

    def look_up(self, text: str) -> list[Hit]:
        """The rows that this text matches, each once, in their order; white space counts as one blank."""
        text = " ".join(text.split())
        hits: dict[str, Hit] = {}
        for texts, pattern, row in self._known:
            if row.id not in hits and any(each in text for each in texts) and (match := pattern.search(text)):
                hits[row.id] = Hit(row, tuple(group or "" for group in match.groups()))
        return list(hits.values())


def _anchors(row: FailureRow, pattern: str) -> tuple[str, ...]:
    try:
        return anchors(pattern)
    except ValueError as error:
        raise ValueError(f"failure {row.id}, pattern {pattern!r}: {error}") from None


def fitting(rows: Iterable[FailureRow], facts: Facts) -> tuple[FailureRow, ...]:
    """The rows that a build of this tree on this machine can meet."""
    tree, version = facts.tree, parse_version(facts.tree.version)
    return tuple(
        row
        for row in rows
        if row.os in ("", facts.host.os) and row.era in ("", tree.era) and applies(row.torch, version)
    )
