"""The rows of failures, compiled, so that lines of a log can be looked up in them.

A pattern must be safe and quick: it cannot hang, and holds plain text that is searched for first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from torchbuild_tasks.catalog import FailureRow
from torchbuild_tasks.catalog.match import applies, parse_version
from torchbuild_tasks.model import Facts

SHORTEST: Final = 4  # letters of plain text that a pattern must hold
UNBOUNDED: Final = 4  # how many * and + one alternative may hold
_TOKEN: Final = re.compile(
    r"(?P<class>\[\^?\]?(?:\\.|[^\]\\])*\])|(?P<escape>\\.)|(?P<quantifier>(?:[*+?]|\{\d*,?\d*\})\??)"
    r"|(?P<open>\((?:\?(?:P<\w+>|<?[=!:]))?)|(?P<close>\))|(?P<or>\|)|(?P<any>[.^$])|(?P<plain>.)",
    re.DOTALL,
)


def anchors(pattern: str) -> tuple[str, ...]:
    """Return the longest plain text of every alternative: a line with none of them cannot match.

    Raises:
        ValueError: the pattern is none, could hang, or an alternative has too little plain text.
    """
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"it is no regular expression: {error}") from None
    if reason := _hazard(pattern):
        raise ValueError(reason)
    found = tuple(max(runs, key=len, default="") for runs in _alternatives(pattern))
    if any(len(text) < SHORTEST for text in found):
        raise ValueError(f"each alternative needs {SHORTEST} letters of plain text, outside of brackets")
    return found


def _tokens(pattern: str) -> Iterator[tuple[str, str]]:
    for match in _TOKEN.finditer(pattern):
        yield str(match.lastgroup), match[0]


def _hazard(pattern: str) -> str:
    """Say why a pattern might run for ever, or for very long; empty when it cannot."""
    if "(?i)" in pattern:
        return "it ignores case, and its plain text could not be looked for"
    before, unbounded, depth = "", 0, 0
    for kind, text in _tokens(pattern):
        if kind == "quantifier":
            if before == "close" and not text.startswith("?"):
                return "a group with a quantifier behind it can take for ever"
            unbounded += text[0] in "*+" or text.rstrip("?").endswith(",}")
        depth += (kind == "open") - (kind == "close")
        if kind == "or" and depth == 0:
            unbounded = 0
        if unbounded > UNBOUNDED:
            return f"more than {UNBOUNDED} of * and + can take very long"
        before = kind
    return ""


def _alternatives(pattern: str) -> list[list[str]]:
    """Return the runs of plain text outside of groups, for each alternative of the whole pattern."""
    every: list[list[str]] = [[""]]
    depth = 0
    for kind, text in _tokens(pattern):
        runs = every[-1]
        depth += (kind == "open") - (kind == "close")
        if depth:
            runs.append("")
        elif kind == "or":
            every.append([""])
        elif kind == "plain" or (kind == "escape" and not text[1].isalnum()):
            runs[-1] += text[-1]
        elif kind == "quantifier":
            if text[0] in "*?{":  # perhaps none at all
                runs[-1] = runs[-1][:-1]
            runs.append("")
        else:
            runs.append("")
    return every


# ---------------- looking lines up


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
        """Return the rows that this text matches, each once, in their order; white space is one blank."""
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


def fitting_rows(rows: Iterable[FailureRow], facts: Facts) -> tuple[FailureRow, ...]:
    """Return the rows that a build of this tree on this machine can meet."""
    tree, version = facts.tree, parse_version(facts.tree.version)
    return tuple(
        row
        for row in rows
        if row.os in ("", facts.host.os) and row.era in ("", tree.era) and applies(row.torch, version)
    )
