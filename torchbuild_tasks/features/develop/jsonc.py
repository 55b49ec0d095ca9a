"""Add entries to lists in JSON with comments, as VS Code uses it, and keep all other bytes.

`read` gives every value with its place in the text; `with_entries` puts entries in by these places.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from torchbuild_tasks.values import parse_json

_BLANK: Final = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_SCALAR: Final = re.compile(r'"(?:[^"\\\n]|\\.)*"|true|false|null|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?')
# A comment after an item, on the same line.
_BEHIND: Final = re.compile(r"[ \t]*(?://[^\r\n]*|/\*[^\r\n]*?\*/[ \t]*)(?=\r?\n)")
DEEPEST: Final = 100


class NotEditable(Exception):
    """The text is not JSON with comments, or editing would lose something; the message is the reason."""


class Value(msgspec.Struct, frozen=True, kw_only=True):
    """A value and its place, `text[start:end]`. `comma` says whether one follows its last item.

    `members` are those of an object, `items` those of a list, in their order.
    """

    start: int
    end: int
    value: Any
    members: tuple[tuple[str, Value], ...] = ()
    items: tuple[Value, ...] = ()
    comma: bool = False


@dataclass(kw_only=True)
class _Reader:
    text: str
    at: int = 0
    depth: int = 0

    def whole(self) -> Value:
        value = self.read()
        self.skip()
        if self.at < len(self.text):
            raise self.wrong("something follows the end")
        return value

    def skip(self) -> str:
        """Skip blanks and comments, and return the next character."""
        match = _BLANK.match(self.text, self.at)
        self.at = match.end() if match else self.at
        return self.text[self.at : self.at + 1]

    def wrong(self, what: str) -> NotEditable:
        return NotEditable(f"line {self.text.count(chr(10), 0, self.at) + 1}: {what}")

    def read(self) -> Value:
        opening = self.skip()
        if opening in ("{", "["):
            if self.depth >= DEEPEST:
                raise self.wrong("it is nested too deep")
            self.depth += 1
            value = self.several(opening)
            self.depth -= 1
            return value
        return self.scalar()

    def scalar(self) -> Value:
        match = _SCALAR.match(self.text, self.at)
        if not match:
            raise self.wrong("this is not JSON")
        try:
            value = parse_json(match[0])
        except ValueError as error:
            raise self.wrong(str(error)) from None
        self.at = match.end()
        return Value(start=match.start(), end=match.end(), value=value)

    def several(self, opening: str) -> Value:
        start = self.at
        closing = "}" if opening == "{" else "]"
        members: list[tuple[str, Value]] = []
        items: list[Value] = []
        self.at += 1
        comma = False
        while self.skip() != closing:
            if (members or items) and not comma:
                raise self.wrong(f"a comma or {closing} is missing")
            if opening == "{":
                members.append(self.member())
            else:
                items.append(self.read())
            comma = self.skip() == ","
            self.at += comma
        self.at += 1
        value: Any = [item.value for item in items]
        if opening == "{":
            value = {name: each.value for name, each in members}
        return Value(
            start=start,
            end=self.at,
            value=value,
            members=tuple(members),
            items=tuple(items),
            comma=comma,
        )

    def member(self) -> tuple[str, Value]:
        name = self.scalar()
        if not isinstance(name.value, str):
            raise self.wrong("a name in quotes is missing")
        if self.skip() != ":":
            raise self.wrong("a colon is missing")
        self.at += 1
        return name.value, self.read()


def read(text: str) -> Value:
    """Parse a text.

    Raises:
        NotEditable: it is not JSON with comments.
    """
    return _Reader(text=text, at=int(text.startswith("\ufeff"))).whole()


def with_entries(text: str, lists: Mapping[str, tuple[str, Sequence[Mapping[str, Any]]]]) -> str:
    """Return the text with these entries in its lists, and everything else unchanged.

    Args:
        lists: for each list of the object by its name: the key that names its entries, and the entries. One
            of a name that is there is replaced, unless it is equal; others are added at the end.

    Raises:
        NotEditable: it cannot be read, or a list is not a list or there twice.
    """
    before = read(text)
    for name, (key, entries) in lists.items():
        for entry in entries:
            text = _with_entry(text, name, key, entry)
    ours = {name: {entry[key] for entry in entries} for name, (key, entries) in lists.items()}
    if _others(before, lists, ours) != _others(read(text), lists, ours):
        raise NotEditable("an entry of yours would not stay as it is")
    return text


def _others(
    root: Value, lists: Mapping[str, tuple[str, Any]], ours: Mapping[str, set[Any]]
) -> list[tuple[str, Any]]:
    """Return the text's content without our entries and lists of only these."""
    others: list[tuple[str, Any]] = []
    for name, value in root.members:
        if name not in lists:
            others.append((name, value.value))
            continue
        rest = [each for each in value.value if _get_member(each, lists[name][0]) not in ours[name]]
        others += [(name, rest)] if rest else []
    return others


def _with_entry(text: str, name: str, key: str, entry: Mapping[str, Any]) -> str:
    root = read(text)
    if not isinstance(root.value, dict):
        raise NotEditable("it holds no object")
    members = [value for member, value in root.members if member == name]
    if len(members) > 1 or (members and not isinstance(members[0].value, list)):
        raise NotEditable(f"{name} is not a list, or is there twice")
    newline = "\r\n" if "\r\n" in text else "\n"
    if not members:
        places = tuple(value for _, value in root.members)
        indent = _indent(text, root, places, "    ")
        body = json.dumps(name) + ": " + _dump([entry], indent, newline)
        return _append_item(text, root, places, indent, newline, body)
    own = [item for item in members[0].items if _get_member(item.value, key) == entry[key]]
    if len(own) > 1:
        raise NotEditable(f"{entry[key]} is there twice")
    indent = _indent(text, members[0], members[0].items, _line_indent(text, members[0].start) + "    ")
    body = _dump(entry, indent, newline)
    if not own:
        return _append_item(text, members[0], members[0].items, indent, newline, body)
    if own[0].value == dict(entry):
        return text
    return text[: own[0].start] + body + text[own[0].end :]


def _get_member(value: object, key: str) -> object:
    return value.get(key) if isinstance(value, dict) else None


def _append_item(
    text: str, holder: Value, places: Sequence[Value], indent: str, newline: str, body: str
) -> str:
    """Append an item to a list; a comment after the last item stays with that."""
    if not places:
        at = holder.start + 1
        rest = text[at : holder.end - 1]
        closing = "" if "\n" in rest else newline + _line_indent(text, holder.start)
        return f"{text[:at]}{newline}{indent}{body}{closing}{text[at:]}"
    last = places[-1].end
    if holder.comma:
        match = _BLANK.match(text, last)
        last = (match.end() if match else last) + 1
    end = last + len(behind[0]) if (behind := _BEHIND.match(text, last)) else last
    before = text[:last] + ("" if holder.comma else ",")
    comma = "," if holder.comma else ""
    return f"{before}{text[last:end]}{newline}{indent}{body}{comma}{text[end:]}"


def _indent(text: str, holder: Value, places: Sequence[Value], otherwise: str) -> str:
    """Return the indentation of the items of a list or object."""
    for place in places:
        if text.count("\n", holder.start, place.start):
            return _line_indent(text, place.start)
    return otherwise


def _line_indent(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _dump(value: object, indent: str, newline: str) -> str:
    return json.dumps(value, indent=4, ensure_ascii=False).replace("\n", newline + indent)
