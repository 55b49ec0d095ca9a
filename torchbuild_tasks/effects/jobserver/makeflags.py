"""The variable by which Ninja and make find a jobserver: MAKEFLAGS.

Source: gnu.org/software/make/manual/html_node/Job-Slots.html, POSIX-Jobserver.html,
Windows-Jobserver.html; Ninja reads it since 1.13 (doc/manual.asciidoc).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

# What the user's own flags say about jobs: a number, or another jobserver.
_JOBS: Final = re.compile(r"-j\d*|--jobs(=\d+)?|--jobserver-(auth|fds|style)=\S*")
# Each of these becomes a -j on Ninja's command line, and that switches the jobserver off.
SWITCH_OFF: Final = ("MAX_JOBS", "CMAKE_BUILD_PARALLEL_LEVEL")


def environment(auth: str, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of a build that takes its tokens from the jobserver `auth`.

    The user's own MAKEFLAGS stay, less what they say about jobs; the variables that become a
    -j are left out. The first word of MAKEFLAGS holds single letters (`ks`), and where there
    are none it is empty.
    """
    kept = {name: value for name, value in environ.items() if name not in SWITCH_OFF}
    given = environ.get("MAKEFLAGS", "")
    words = [word for word in given.split() if not _JOBS.fullmatch(word)]
    letters = words.pop(0) if words and _letters(words[0]) else ""
    return {**kept, "MAKEFLAGS": " ".join((letters, *words, f"--jobserver-auth={auth}"))}


def _letters(word: str) -> bool:
    return not word.startswith("-") and "=" not in word
