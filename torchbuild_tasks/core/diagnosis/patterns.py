"""What a row's regular expression needs: plain text to look for first, and no way to hang.

A pattern is only tried on a line that holds its plain text, so that hundreds of them cost little.
One that could take more than a moment on some line is refused when it is read, also a user's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

SHORTEST: Final = 4  # letters of plain text that a pattern must hold
UNBOUNDED: Final = 4  # how many * and + one alternative may hold
_TOKEN: Final = re.compile(
    r"(?P<class>\[\^?\]?(?:\\.|[^\]\\])*\])|(?P<escape>\\.)|(?P<quantifier>(?:[*+?]|\{\d*,?\d*\})\??)"
    r"|(?P<open>\((?:\?(?:P<\w+>|<?[=!:]))?)|(?P<close>\))|(?P<or>\|)|(?P<any>[.^$])|(?P<plain>.)",
    re.DOTALL,
)


def anchors(pattern: str) -> tuple[str, ...]:
    """The longest plain text of every alternative: a line with none of them cannot match.

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
    """Why a pattern might run for ever, or for very long; empty when it cannot."""
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
    """The runs of plain text outside of groups, for each alternative of the whole pattern."""
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
