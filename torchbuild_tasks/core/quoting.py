"""How each shell writes a value.

A value comes back equal or is refused with the reason (refusal.py); nothing is escaped
halfway. The `quote_*` functions may count on `refusal` having said None.
"""

from __future__ import annotations

import re
from typing import Final

# A line break to some reader of a .ps1, or invisible in it.
_PS1_APART: Final = re.compile(r"([\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff])")


def quote_sh(value: str) -> str:
    """One word of POSIX sh: single quotes, in which nothing but a single quote is special."""
    return "'" + value.replace("'", "'\\''") + "'"


def quote_fish(value: str) -> str:
    """One word of fish: its single quotes know two escapes, of the quote and of the backslash."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def quote_ps1(value: str) -> str:
    """An expression of PowerShell: single-quoted pieces joined with control characters by number.

    Curly single quotes end a string there just as the straight one does. Line breaks go
    by number, because the file's own line ends are CRLF.
    """
    pieces = [piece for piece in _PS1_APART.split(value) if piece]
    words = [f"[char]0x{ord(p):02X}" if _PS1_APART.match(p) else _ps1_text(p) for p in pieces]
    if not words or not words[0].startswith("'"):
        words.insert(0, "''")  # text first, so that + joins instead of adding numbers
    return words[0] if len(words) == 1 else "(" + " + ".join(words) + ")"


def _ps1_text(piece: str) -> str:
    return "'" + re.sub("(['\u2018\u2019\u201a\u201b])", r"\1\1", piece) + "'"


def quote_bat(value: str) -> str:
    """The text between `=` and the last quote of `set "NAME=..."`.

    cmd expands % everywhere. A quote in the value ends the quoting for what follows it,
    up to the next one; there, and only there, ^ takes the meaning from an operator.
    """
    out, quoted = [], True
    for character in value.replace("%", "%%"):
        if character == '"':
            quoted = not quoted
        out.append("^" + character if character in "&|<>" and not quoted else character)
    return "".join(out)
