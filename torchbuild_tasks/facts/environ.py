"""Which of the user's variables concern a build; all others are none of our business."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase


def relevant_environ(environ: Mapping[str, str], patterns: Sequence[str]) -> dict[str, str]:
    """The variables whose names match one of the patterns (`USE_*`), sorted by name.

    Upper and lower case differ, as they do on Linux.
    """
    # Nearly all patterns are plain names: looking them up keeps the matching to the few others.
    plain = set(patterns)
    wild = [pattern for pattern in patterns if any(mark in pattern for mark in "*?[")]
    return {
        name: value
        for name, value in sorted(environ.items())
        if name in plain or any(fnmatchcase(name, pattern) for pattern in wild)
    }
