"""Text with marks for styles, before the width and the colours of the screen are known.

Functions that write text for people return unwrapped lines, with marks for errors, details and important
parts. The front lays them out for the screen: wrapped between words, with or without colours. The marks are
noncharacters (Unicode 16, 23.7), which valid text does not contain; text that does gets a colour.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Final, Literal

from torchbuild_tasks.text.visible import visible

Style = Literal["error", "warning", "good", "strong", "dim", "changed"]

# Select Graphic Rendition, ECMA-48 8.3.117.
_CODES: Final = {"error": "1;31", "warning": "33", "good": "32", "strong": "1", "dim": "2", "changed": "1;36"}
_OPEN: Final = {style: chr(0xFDD0 + number) for number, style in enumerate(_CODES)}
_END: Final = "\ufdef"
_STYLE_OF: Final = {mark: style for style, mark in _OPEN.items()}
_MARKS: Final = re.compile("[\ufdd0-\ufdef]")
_WORDS: Final = re.compile(r" +|[^ ]+")
# A command's words: blanks in quotes do not separate.
_COMMAND: Final = re.compile(r" +|(?:'[^']*'|\"[^\"]*\"|[^ ])+")
_GAP: Final = re.compile(r"(?<=\S) {2,}(?=\S)")
_LEAST: Final = 20  # least cells for the last column


def styled(style: Style, text: str) -> str:
    """Return a text with marks for a style."""
    return f"{_OPEN[style]}{text}{_END}" if text else ""


def plain(text: str) -> str:
    """Return a text without its marks."""
    return _MARKS.sub("", text)


def wrap_text(text: str, *, width: int | None = None, colours: bool = False) -> str:
    """Return a text wrapped to a width, with its marks turned into colours or removed.

    Args:
        text: complete lines; control characters are escaped.
        width: cells of a line; None for lines as long as they are.
        colours: whether the marks become colours.
    """
    lines = visible(text).split("\n")
    return "\n".join(_colour(part, colours) for line in lines for part in _wrap(line, width))


def cells(text: str) -> int:
    """Return the cells of a terminal that a text takes (Unicode's annex 11); marks take none."""
    text = plain(text)
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(each) else 2 if unicodedata.east_asian_width(each) in "WF" else 1
        for each in text
    )


def _colour(line: str, colours: bool) -> str:
    if not colours:
        return plain(line)
    last = ""

    def code(match: re.Match[str]) -> str:
        nonlocal last
        style = _STYLE_OF.get(match[0])
        last = f"\x1b[{_CODES[style]}m" if style else ""
        return last or "\x1b[0m"

    shown = _MARKS.sub(code, line)
    return f"{shown}\x1b[0m" if last else shown


def _wrap(line: str, width: int | None) -> Iterator[str]:
    """Yield the lines of a wrapped line; a word that is too long is not split."""
    if width is None or cells(line) <= width:
        yield line
        return
    bare = plain(line)
    is_command = bare.lstrip().startswith("$ ") and not re.match(r"\s*\$ '?[A-Za-z]:", bare)
    indent = len(bare) - len(bare.lstrip())
    hang = indent + 4 if is_command else _hang(bare, indent, width)
    more = " \\" if is_command else ""  # so that the copied text is one command
    now = ""
    at = 0
    style = ""
    gap = ""
    for word in (_COMMAND if is_command else _WORDS).findall(line):
        if not word.strip(" "):
            gap = word
            continue
        size = cells(word)
        if at > hang and at + len(gap) + size + len(more) > width:
            yield now + more
            start = max(0, hang if hang + size <= width else min(hang, indent + 2))
            now = " " * start + style
            at = start
        else:
            now, at = now + gap, at + len(gap)
        now, at, gap = now + word, at + size, ""
        if marks := _MARKS.findall(word):
            style = marks[-1] if marks[-1] != _END else ""
    yield now


def _hang(bare: str, indent: int, width: int) -> int:
    """Return the indent of continuation lines: that of the last column that leaves enough room."""
    starts = [gap.end() for gap in _GAP.finditer(bare) if gap.end() <= width - _LEAST]
    return starts[-1] if starts else indent + (3 if bare.lstrip().startswith("-> ") else 2)
