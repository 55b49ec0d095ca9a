"""Compile the rows of failures, and look up lines of a log in them.

A pattern must be safe and quick: it holds plain text that is searched for first, and none of ours can
hang. One of the user's gets a time, by `regex`: `re` cannot be stopped.
"""

from __future__ import annotations

import functools
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from torchbuild_tasks.catalog.diagnosis import FailureRow
from torchbuild_tasks.catalog.match import applies, parse_version
from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.model import Facts

if TYPE_CHECKING:
    import regex

SHORTEST: Final = 4  # characters of literal text that a pattern must have
UNBOUNDED: Final = 4  # the most * and + in one alternative
LONGEST: Final = 2000  # characters of a pattern
PATIENCE: Final = 2.0  # seconds that a pattern of the user's may take for one text
_TOKEN: Final = re.compile(
    r"(?P<class>\[\^?\]?(?:\\.|[^\]\\])*\])|(?P<escape>\\(?:x[\da-fA-F]{2}|u[\da-fA-F]{4}|.))"
    r"|(?P<quantifier>(?:[*+?]|\{\d*,?\d*\})\??)|(?P<open>\((?:\?(?:P<\w+>|<?[=!:]))?)|(?P<close>\))|(?P<or>\|)|(?P<any>[.^$])"
    r"|(?P<plain>[^\\\[\]()*+?{}|.^$]+(?![*+?{])|.)",
    re.DOTALL,
)

FLAGS: Final = re.compile(r"\(\?[a-zA-Z]*[ix][a-zA-Z]*(?:-[a-zA-Z]+)?[:)]")


def anchors(pattern: str) -> tuple[str, ...]:
    """Return the texts of which a line that matches holds one.

    Raises:
        ValueError: the pattern is none, could hang, or an alternative has too little plain text.
    """
    if len(pattern) > LONGEST:
        raise ValueError(f"it has {len(pattern)} letters, and may have {LONGEST}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # about syntax that will change its meaning
            re.compile(pattern)
        texts = _texts_of(pattern)
    except (re.error, OverflowError, RecursionError, Warning) as error:
        raise ValueError(f"it is not a regular expression: {error}") from None
    if reason := _hazard(pattern):
        raise ValueError(reason)
    if not texts:
        raise ValueError(f"each alternative needs {SHORTEST} letters of plain text that must be there")
    return texts


class LazyPattern:
    """A pattern that is compiled when a text holds its plain text: most of them no log needs.

    `texts` are those of which every text that matches holds one; empty where there is no telling.
    """

    def __init__(self, pattern: str) -> None:
        self.pattern: Final = pattern
        self.texts: Final = () if FLAGS.search(pattern) else _texts_of(pattern)

    def search(self, text: str) -> re.Match[str] | regex.Match[str] | None:
        """Return the first match, if any."""
        for each in self.texts:
            if each in text:
                return self._search(text)
        return None if self.texts else self._search(text)

    def _search(self, text: str) -> re.Match[str] | regex.Match[str] | None:
        return _compiled(self.pattern).search(text)


class TextIndex:
    """Finds which of many entries a text may match, by four letters of each plain text of an entry.

    Looking for the texts of two thousand patterns one after the other was a third of reading a log.

    Args:
        entries: of each the texts of which one has to be there; without any it is always found.
    """

    def __init__(self, entries: Iterable[Sequence[str]]) -> None:
        texts = list(entries)
        often = Counter(part for entry in texts for text in entry for part in _parts(text))
        self._always = [number for number, entry in enumerate(texts) if not entry]
        self._numbers: dict[str, set[int]] = {}
        for number, entry in enumerate(texts):
            for text in entry:  # what few others have is in few lines
                self._numbers.setdefault(min(_parts(text), key=often.__getitem__), set()).add(number)

    def find(self, text: str) -> list[int]:
        """Return the numbers of the entries to be tried, in their order."""
        found = set(self._always)
        for part in _parts(text):
            if part in self._numbers:
                found |= self._numbers[part]
        return sorted(found)


def _parts(text: str) -> Iterator[str]:
    return (text[start : start + SHORTEST] for start in range(len(text) - SHORTEST + 1))


@functools.cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _tokens(pattern: str) -> Iterator[tuple[str, str]]:
    for match in _TOKEN.finditer(pattern):
        yield str(match.lastgroup), match[0]


def _hazard(pattern: str) -> str:
    """Return why a pattern could take exponential time; empty if it cannot."""
    if match := FLAGS.search(pattern):
        return f"with {match[0]} its plain text could not be looked for: it ignores case, or has comments"
    before = ""
    unbounded = 0
    depth = 0
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


def _texts_of(pattern: str) -> tuple[str, ...]:
    """Return texts of which every match holds one, each of `SHORTEST` letters; none where that is unknown."""
    return _needed(list(_tokens(pattern)), 0)[0]


def _needed(tokens: Sequence[tuple[str, str]], at: int) -> tuple[tuple[str, ...], int]:
    """Return texts of which every match holds one, of groups as well, and where the group that starts ends.

    Of what stands one after the other in an alternative that with the longest texts is taken.
    """
    every: list[tuple[str, ...]] = []
    best: tuple[str, ...] = ()
    run = ""
    while at < len(tokens) and tokens[at][0] != "close":
        kind, text = tokens[at]
        inner: tuple[str, ...] = ()
        at += 1
        if kind == "open":
            inner, at = _needed_of_group(tokens, at, text)
        is_text = kind == "plain" or (kind == "escape" and not text[1].isalnum())
        quantifier = tokens[at][1] if at < len(tokens) and tokens[at][0] == "quantifier" else ""
        at += bool(quantifier)
        if is_text and quantifier[:1] in ("", "+"):
            run += text.removeprefix("\\")
        elif quantifier[:1] in ("", "+"):
            best = max(best, inner, key=_least)
        if not is_text or quantifier:
            best, run = max(best, (run,), key=_least), ""
        if kind == "or":
            every, best = [*every, best], ()
    every.append(max(best, (run,), key=_least))
    known = all(_least(texts) >= SHORTEST for texts in every)
    return tuple(text for texts in every for text in texts) if known else (), at + 1


def _needed_of_group(tokens: Sequence[tuple[str, str]], at: int, start: str) -> tuple[tuple[str, ...], int]:
    """Return the same of a group behind its start; nothing of what may not follow, of `(?m)`, of `(?P=x)`."""
    special = start == "(" and tokens[at][0] == "quantifier"
    texts, end = _needed(tokens, at + special)
    return () if special or start.endswith("!") else texts, end


def _least(texts: tuple[str, ...]) -> int:
    """Return the length of the shortest of these texts."""
    return min(map(len, texts), default=0)


# ---------------- looking lines up


class UserFailureRow(FailureRow, frozen=True, kw_only=True):
    """A row of the user's, with the file and line of its patterns."""

    place: str


class Hit(msgspec.Struct, frozen=True):
    """A row that a text matches, and the values of its groups ("" for an unmatched one)."""

    row: FailureRow
    groups: tuple[str, ...]


class FailureBook:
    """All rows with patterns, the user's first.

    Raises:
        ValueError: a pattern cannot be used; names the row and the reason.
    """

    def __init__(self, rows: Iterable[FailureRow]) -> None:
        self.rows: Final = tuple(rows)
        self._known = [(_pattern_of(row, pattern), row) for row in self.rows for pattern in row.patterns]
        self.anchors: Final = frozenset(anchor for pattern, _ in self._known for anchor in pattern.texts)

    @functools.cached_property
    def _index(self) -> TextIndex:
        return TextIndex(pattern.texts for pattern, _ in self._known)

    def look_up(self, text: str) -> list[Hit]:
        """Return the rows that this text matches, each once, in order; white space counts as one blank.

        Raises:
            UsageError: a pattern of the user's takes too long; names its file and line.
        """
        text = " ".join(text.split())
        hits: dict[str, Hit] = {}
        for pattern, row in map(self._known.__getitem__, self._index.find(text)):
            if row.id not in hits and (match := pattern.search(text)):
                hits[row.id] = Hit(row, tuple(group or "" for group in match.groups()))
        return list(hits.values())


def _pattern_of(row: FailureRow, pattern: str) -> LazyPattern:
    if not isinstance(row, UserFailureRow):  # a test has tried all of ours
        return LazyPattern(pattern)
    try:
        anchors(pattern)
        return _TimedPattern(row, pattern)
    except ValueError as error:
        raise ValueError(f"failure {row.id}, pattern {pattern!r}: {error}") from None


class _TimedPattern(LazyPattern):
    """A pattern of the user's, which gets a time."""

    def __init__(self, row: UserFailureRow, pattern: str) -> None:
        import regex  # few have rows of their own

        super().__init__(pattern)
        self._row = row
        try:
            self._timed = regex.compile(pattern)
        except (regex.error, OverflowError, RecursionError) as error:
            raise ValueError(str(error)) from None

    def _search(self, text: str) -> regex.Match[str] | None:
        try:
            return self._timed.search(text, timeout=PATIENCE)
        except TimeoutError:
            raise UsageError(
                f"{self._row.place}: failure {self._row.id}: its pattern {self.pattern!r} takes more than "
                f"{PATIENCE:g} s for one line of {len(text)} letters.",
                next_step="Make it match less: leave out what comes before the error; "
                r"[^']* stops at a quote, .* does not.",
            ) from None


def fitting_rows(rows: Iterable[FailureRow], facts: Facts) -> tuple[FailureRow, ...]:
    """Return the rows that apply to a build of this tree on this machine."""
    tree = facts.tree
    version = parse_version(facts.tree.version)
    return tuple(
        row
        for row in rows
        if row.os in ("", facts.host.os) and row.era in ("", tree.era) and applies(row.torch, version)
    )
