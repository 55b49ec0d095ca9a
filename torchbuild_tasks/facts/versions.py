"""Finding the version in what a program says of itself."""

from __future__ import annotations

import re
from collections.abc import Sequence

from torchbuild_tasks.facts.probe import Probe

_VERSION = re.compile(r"(?:^|\s)v?(\d+(?:\.\d+)+)")
_BRACKETS = re.compile(r"\([^()]*\)")


def version_in(text: str) -> str | None:
    """The first dotted number that starts a word and is not in brackets; looks at five lines.

    In brackets stands who packaged it: "GNU gold (GNU Binutils for Debian 2.40) 1.16". In
    the middle of a word it is part of a name: "g++-4.8 (Ubuntu) 4.8.5".
    """
    for line in text.splitlines()[:5]:
        count = 1
        while count:
            line, count = _BRACKETS.subn(" ", line)
        if match := _VERSION.search(line):
            return match[1]
    return None


def version_of(probe: Probe, path: str, ask: Sequence[str] = ("--version",)) -> str | None:
    """What the program at `path` answers to --version; None when it fails or says none."""
    output = probe.run((path, *ask))
    if output is None or output.rc != 0:
        return None
    return version_in(output.stdout) or version_in(output.stderr)
