"""Write a fix in the words of the system that the log is of: what is typed on Linux works on no other."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import Final

from torchbuild_tasks.catalog import SystemWordRow

# What cmd.exe takes for a letter, and < > | within it for its own signs.
_SCRIPT: Final = re.compile(r"(?<= -c )'([^'\n]{1,300})'")
_BOUND: Final = re.compile(r"(?<![\w'])'([\w.\[\],-]{1,80}[<>=!~][^'\n]{1,80})'(?![\w'])")


def in_words_of(system: str, text: str, rows: Sequence[SystemWordRow]) -> str:
    """Return the text of a fix as it is typed on this system.

    Args:
        system: linux, windows or mac; "" where it is not known, which changes nothing.
        text: of a fix.
        rows: of data/system_words.toml.
    """
    for row in rows:
        other = {"windows": row.windows, "mac": row.mac}.get(system, "")
        if other:
            text = _compiled(row.unix).sub(other, text)
    if system != "windows":
        return text
    text = _SCRIPT.sub(_quoted, text)
    return _BOUND.sub(r'"\1"', text)


def _quoted(script: re.Match[str]) -> str:
    inner = script[1].replace('"', "'")
    return f'"{inner}"'


@functools.cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
