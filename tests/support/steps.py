"""Counts the steps of a regular expression on a text, as a plain backtracking matcher takes them.

Python's own does the same in another order and says nothing of it; a count is the same on every
machine, however busy, which a time is not.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Sequence
from re import _constants as c  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, Final

sys.setrecursionlimit(max(sys.getrecursionlimit(), 20_000))

TEXT: Final = "TEXT"  # several letters one after the other, which are compared at once and counted singly


def steps(pattern: str, text: str) -> int:
    """How many steps a search takes until it has found the pattern, or that it is not there."""
    matcher = _Matcher(text)
    nodes = _parsed(pattern)
    first = nodes[0][1][0] if nodes and nodes[0][0] is TEXT else ""
    start = 0
    while start <= len(text):
        if first and (
            gap := _next(text, first, start) - start
        ):  # nine of ten starts end at their first letter
            matcher.steps += 2 * gap
            start += gap
        if matcher.run(nodes, start, lambda end: True):
            break
        start += 1
    return matcher.steps


def _next(text: str, letter: str, start: int) -> int:
    found = text.find(letter, start)
    return found if found >= 0 else len(text)


@functools.cache
def _parsed(pattern: str) -> tuple[Any, ...]:
    """The pattern as plain tuples, which are read several times as fast as what the parser makes."""
    return _plain(parser.parse(pattern))


def _plain(nodes: Any) -> tuple[Any, ...]:
    plain: list[Any] = []
    for op, value in nodes:
        if op in (c.MAX_REPEAT, c.MIN_REPEAT):
            value = (*value[:2], _plain(value[2]))
        elif op is c.SUBPATTERN:  # a matcher only notes where it begins and ends
            plain += _plain(value[3])
            continue
        elif op is c.BRANCH:
            value = tuple(map(_plain, value[1]))
        elif op in (c.ASSERT, c.ASSERT_NOT):
            value = (value[0], _plain(value[1]), value[1].getwidth()[0])
        elif op is c.IN:
            value = _Letters(value)
        if op is c.LITERAL and plain and plain[-1][0] is TEXT:
            plain[-1] = (TEXT, plain[-1][1] + chr(value))
        elif op is c.LITERAL and len(nodes) > 1:
            plain.append((TEXT, chr(value)))
        else:
            plain.append((op, value))
    return tuple(plain)


class _Matcher:
    def __init__(self, text: str) -> None:
        self._text = text
        self.steps = 0

    def run(self, nodes: Sequence[Any], at: int, done: Callable[[int], bool]) -> bool:
        """Match these nodes from `at` on, then continue with `done`."""
        self.steps += 1
        if not nodes:
            return done(at)
        (op, value), rest = nodes[0], nodes[1:]
        if op is TEXT:
            return self._same(value, at) and self.run(rest, at + len(value), done)
        if op in (c.MAX_REPEAT, c.MIN_REPEAT):
            return self._repeat(op, value, rest, at, done)
        if op is c.BRANCH:
            return any(self.run((*branch, *rest), at, done) for branch in value)
        if op in (c.ASSERT, c.ASSERT_NOT):
            return self._look(op, value, at) and self.run(rest, at, done)
        if op is c.AT:
            return self._at(value, at) and self.run(rest, at, done)
        return at < len(self._text) and self._one(op, value, at) and self.run(rest, at + 1, done)

    def _repeat(self, op: Any, value: Any, rest: Sequence[Any], at: int, done: Callable[[int], bool]) -> bool:
        least, most, items = value
        if len(items) == 1 and items[0][0] in (c.LITERAL, c.NOT_LITERAL, c.IN, c.ANY):
            count = self._count(items[0], at, min(int(most), len(self._text) - at))
            ends = range(at + int(least), at + count + 1)
            return self._try(rest, ends if op is c.MIN_REPEAT else ends[::-1], done)
        assert int(most) == 1, "no group repeats"
        ways = [(*items, *rest), rest] if op is c.MAX_REPEAT else [rest, (*items, *rest)]
        return any(self.run(way, at, done) for way in ways)

    def _count(self, item: Any, at: int, most: int) -> int:
        """How many letters from `at` on a repeated item takes: two steps each, and one for the next."""
        kind, what = item
        letters = self._text[at : at + most]
        if kind is c.ANY:
            count = letters.find("\n") % (most + 1)  # of -1 that is all
        elif kind is c.IN:
            count = next((number for number, letter in enumerate(letters) if not what[letter]), most)
        else:
            wanted = kind is c.LITERAL
            differ = (n for n, letter in enumerate(letters) if (letter == chr(what)) is not wanted)
            count = next(differ, most)
        self.steps += 2 * count + (count < most)
        return count

    def _try(self, rest: Sequence[Any], ends: range, done: Callable[[int], bool]) -> bool:
        """Go on with `rest` from each of these places; one without its first letter is only counted."""
        text = self._text
        first = rest[0][1][0] if rest and rest[0][0] is TEXT else ""
        if first and ends and first not in text[min(ends) : max(ends) + 1]:
            self.steps += 2 * len(ends) - (max(ends) >= len(text))
            return False
        for end in ends:
            if first and text[end : end + 1] != first:
                self.steps += 1 + (end < len(text))
            elif self.run(rest, end, done):
                return True
        return False

    def _same(self, wanted: str, at: int) -> bool:
        """Compare letter by letter: two steps each, but one at the end of the text."""
        same = 0
        for mine, other in zip(wanted, self._text[at : at + len(wanted)], strict=False):
            if mine != other:
                break
            same += 1
        whole = same == len(wanted)
        self.steps += 2 * same - 1 if whole else 2 * same + (at + same < len(self._text))  # one is counted
        return whole

    def _look(self, op: Any, value: Any, at: int) -> bool:
        direction, inner, width = value
        if direction < 0:
            found = at >= width and self.run(inner, at - width, lambda end: end == at)
        else:
            found = self.run(inner, at, lambda end: True)
        return bool(found == (op is c.ASSERT))

    def _at(self, value: Any, at: int) -> bool:
        if value is c.AT_BEGINNING:
            return at == 0
        if value is c.AT_END:
            return at == len(self._text)
        around = [0 <= place < len(self._text) and _is_word(self._text[place]) for place in (at - 1, at)]
        return bool((around[0] != around[1]) == (value is c.AT_BOUNDARY))

    def _one(self, op: Any, value: Any, at: int) -> bool:
        self.steps += 1
        if at >= len(self._text):
            return False
        letter = self._text[at]
        if op is c.LITERAL:
            return bool(ord(letter) == value)
        if op is c.NOT_LITERAL:
            return bool(ord(letter) != value)
        if op is c.ANY:
            return letter != "\n"
        assert op is c.IN, op
        return bool(value[letter])


class _Letters(dict[str, bool]):
    """Cache whether a set of letters contains a letter."""

    def __init__(self, items: Any) -> None:
        super().__init__()
        self._items = [item for item in items if item[0] is not c.NEGATE]
        self._negated = len(self._items) < len(items)

    def __missing__(self, letter: str) -> bool:
        self[letter] = any(_in(item, letter) for item in self._items) is not self._negated
        return self[letter]


def _in(item: Any, letter: str) -> bool:
    op, value = item
    if op is c.LITERAL:
        return bool(ord(letter) == value)
    if op is c.RANGE:
        return bool(value[0] <= ord(letter) <= value[1])
    kinds = {c.CATEGORY_DIGIT: r"\d", c.CATEGORY_SPACE: r"\s", c.CATEGORY_WORD: r"\w"}
    kinds |= {c.CATEGORY_NOT_SPACE: r"\S", c.CATEGORY_NOT_DIGIT: r"\D", c.CATEGORY_NOT_WORD: r"\W"}
    return re.match(kinds[value], letter) is not None


def _is_word(letter: str) -> bool:
    return letter.isalnum() or letter == "_"
