"""Which of the user's variables concern a build; all others are none of our business."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase


def relevant_environ(
    environ: Mapping[str, str], patterns: Sequence[str], *, ignore_case: bool = False
) -> dict[str, str]:
    """The variables whose names match one of the patterns (`USE_*`), sorted by name.

    Upper and lower case differ, as they do on Linux. On Windows (`ignore_case`) a variable
    goes by the spelling of the plain pattern that names it, else in capitals, as Python
    itself reads it there.
    """
    if ignore_case:
        spelling = {pattern.upper(): pattern for pattern in patterns}
        kept = relevant_environ({name.upper(): value for name, value in environ.items()}, list(spelling))
        return dict(sorted((spelling.get(name, name), value) for name, value in kept.items()))
    # Nearly all patterns are plain names: looking them up keeps the matching to the few others.
    plain = set(patterns)
    wild = [pattern for pattern in patterns if any(mark in pattern for mark in "*?[")]
    return {
        name: value
        for name, value in sorted(environ.items())
        if name in plain or any(fnmatchcase(name, pattern) for pattern in wild)
    }
