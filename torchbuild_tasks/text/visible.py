"""Escape control characters and invisible characters, which a terminal or reader would act on or hide.

A log, a file's name, a version or a setting can hold a sequence that writes the clipboard, moves the cursor
over earlier output, or reverses a line (Trojan Source, CVE-2021-42574). All output is escaped here once,
where it is written. Of a running program's output a terminal gets the colours, and no other sequence.
"""

from __future__ import annotations

import codecs
import re
from typing import Any, Final

# C0 but tab and newline, DEL, C1; soft hyphen, marks and overrides of direction, what has no width, ends of
# lines and paragraphs, invisible operators, deprecated and annotating marks, tags; halves of surrogate pairs:
# Unicode 16, categories Cc, Cf, Cs, Zl, Zp without the signs of Arabic, Syriac and Kaithi numbers (seen).
_UNSEEN: Final = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
UNSEEN: Final = re.compile(f"[{_UNSEEN}]")
# Select Graphic Rendition (ECMA-48, 8.3.117) as compilers use it: weight, slope, underline, colour; neither
# "conceal" (8) nor "blink" (5).
_ONE: Final = (
    r"(?:0{0,2}[0-47]?|2[1-47]|3[0-79]|4[0-79]|9[0-7]|10[0-7]"
    r"|[34]8[;:](?:5[;:]\d{1,3}|2(?:[;:]{1,2}\d{1,3}){3}))"
)
_COLOUR: Final = re.compile(rf"\x1b\[{_ONE}(?:;{_ONE})*m")
_ERASE: Final = re.compile(r"\x1b\[0?K")  # erase to the end of the line: GCC writes one after each colour
_RESET: Final = "\x1b[0m"
# An incomplete sequence at the end of a chunk; longer than any colour of three numbers.
_CUT: Final = re.compile(r"(?:\r|\x1b(?:\[[0-9;:]{0,60})?)\Z")


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def visible(text: str) -> str:
    """Return a text with each such character as an escape (`\\x1b`); newlines and tabs stay."""
    return UNSEEN.sub(_escape, text.replace("\r\n", "\n"))


def visible_json(text: str) -> str:
    """Return equivalent JSON or TOML; but for the ends of lines, such characters are only in its strings."""
    import json  # by need: a start without JSON is faster

    return UNSEEN.sub(lambda match: json.dumps(match[0])[1:-1], text.replace("\r\n", "\n"))


def visible_value(value: Any) -> Any:
    """Return a JSON value with every string escaped by `visible`."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, (list, tuple)):
        return [visible_value(item) for item in value]
    if isinstance(value, dict):
        return {visible_value(key): visible_value(item) for key, item in value.items()}
    return value


def output(text: str, *, colours: bool) -> str:
    """Return a program's output: with its colours if wanted, and without other control sequences.

    A lone carriage return, with which a program writes over its own line, begins a new line.

    Args:
        text: complete lines, or the text from `Printed`.
        colours: whether they stay; a line that leaves one on is ended without it.
    """
    lines = _ERASE.sub("", text).replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return "\n".join(_line(line, colours) for line in lines)


def _line(line: str, colours: bool) -> str:
    if "\x1b" not in line:
        return visible(line)
    parts: list[str] = []
    at = 0
    last = ""
    for match in _COLOUR.finditer(line):
        last = match[0] if colours else ""
        parts += (visible(line[at : match.start()]), last)
        at = match.end()
    open_ = last and not re.fullmatch(r"\x1b\[0*m", last)
    return "".join((*parts, visible(line[at:]), _RESET if open_ else ""))


class Printed:
    """Converts a program's bytes, in arbitrary chunks, to visible text.

    Args:
        colours: as for `output`.
    """

    def __init__(self, *, colours: bool) -> None:
        self._colours = colours
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""

    def feed(self, data: bytes) -> str:
        """Return the text of the complete sequences so far; keep an incomplete one."""
        text = self._held + self._decoder.decode(data)
        cut = _CUT.search(text)
        self._held = cut[0] if cut else ""
        return output(text[: len(text) - len(self._held)], colours=self._colours)
