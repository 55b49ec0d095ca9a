"""Letters of print that look like those of commands: dashes, curly quotes, blanks of no width."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

# Hyphens, dashes and minus signs that are not the hyphen of the keyboard.
DASHES: Final = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d"
QUOTES: Final = "\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u2033\u2032"
# Blanks that no shell splits words at, and characters that are not seen.
BLANKS: Final = "\u00a0\u2007\u202f\u3000\u200b\u200c\u200d\u2060\ufeff\u200e\u200f"
_LEADING: Final = re.compile(rf"[-{DASHES}]+")


def plain_word(text: str) -> str:
    """Return a word of a command line as it is typed: hyphens, straight quotes, usual blanks."""
    text = _translate(text)
    if (begin := _LEADING.match(text)) and any(letter in DASHES for letter in begin[0]):
        rest = text[begin.end() :]
        text = ("-" if len(rest.partition("=")[0]) == 1 else "--") + rest
    return text.strip()


def _translate(text: str) -> str:
    for letters, plain in ((QUOTES[:4], "'"), (QUOTES[4:], '"'), (BLANKS[:4], " "), (BLANKS[4:], "")):
        text = text.translate(dict.fromkeys(map(ord, letters), plain))
    return text


def say_odd_letters(text: str) -> str:
    """Name the first letter that only looks like one of a command; "" where there is none.

    A dash counts where an option would begin with it; inside a word it may be of a name.
    """
    for at, letter in enumerate(text):
        if letter in DASHES and text[:at].strip("-" + DASHES)[-1:].strip(" =,;'\""):
            continue
        if letter in QUOTES + BLANKS + DASHES:
            break
    else:
        return ""
    no = "hyphen" if letter in DASHES else "quote of a shell" if letter in QUOTES else "usual blank"
    code = f"U+{ord(letter):04X}, {unicodedata.name(letter, 'a character').casefold()}"
    return f"it has a character that is no {no} ({code}), as web pages and printed texts do"


def plain_value(text: str) -> str:
    """Return the words of a value as they are typed, each with a hyphen where it began with a dash."""
    words = _translate(text).split(" ")
    plain = (f"-{word.lstrip('-' + DASHES)}" if word[:1] in DASHES else word for word in words if word)
    return " ".join(plain).strip("'\"")
