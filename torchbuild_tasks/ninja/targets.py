"""Read what Ninja answers about its targets: an unknown one, those there are, the files of one."""

from __future__ import annotations

import re
from typing import Final

_UNKNOWN: Final = re.compile(r"unknown target '|\bunknown path\b", re.IGNORECASE)
_TARGET: Final = re.compile(r"^(.+?): (\S+)$", re.MULTILINE)
_SHOWN: Final = 8


def is_unknown(said: str) -> bool:
    """Say whether Ninja says that it knows no such target."""
    return _UNKNOWN.search(said) is not None


def nearest_targets(target: str, listed: str) -> tuple[str, ...]:
    """Return names out of `ninja -t targets all` that a mistyped one may have meant, the likeliest first.

    Objects and CMake's own steps are left out.
    """
    names = [
        name
        for name, rule in _TARGET.findall(listed)
        if not rule.startswith("CXX_COMPILER") and "CMakeFiles/" not in name and not name.startswith("/")
    ]
    folded: dict[str, str] = {}
    for name in names:
        folded.setdefault(name.rpartition("/")[2].casefold(), name)
        folded.setdefault(name.casefold(), name)
    import difflib  # only for a mistyped name

    word = target.casefold()
    close = difflib.get_close_matches(word, folded, n=_SHOWN, cutoff=0.6)
    within = sorted((name for name in folded if word in name), key=len)
    return tuple(dict.fromkeys(folded[name] for name in (*close, *within)))[:_SHOWN]


def files_of(target: str, said: str) -> tuple[str, ...]:
    """Return the files that a target stands for, out of `ninja -t query`: a phony one's inputs, or itself."""
    inputs: list[str] = []
    phony = section = False
    for line in said.splitlines():
        text = line.strip()
        if text.startswith("input:"):
            section, phony = True, text == "input: phony"
        elif text.startswith(("outputs:", "validations:")):
            section = False
        elif section and phony and text and not text.startswith("|"):
            inputs.append(text)
    return tuple(inputs) if phony else (target,)
