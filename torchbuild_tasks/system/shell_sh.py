"""Source an env file in sh, neither login nor interactive, so that it reads no startup file."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from torchbuild_tasks.system.process import Captured, capture

NAME: Final = "/bin/sh"
# The file's output goes to stderr, so that stdout is only the environment. The second line is
# not `. || exit`, in which the shell would ignore a `set -e` in the file.
_SCRIPT: Final = """\
. "$1" >&2
case $? in 0) exec /usr/bin/env -0 ;; *) exit ;; esac
"""
_SPELLABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OF_THE_SHELL: Final = frozenset({"_", "SHLVL", "PWD", "OLDPWD"})


def load(path: Path, environ: Mapping[str, str], seconds: float) -> Captured:
    """Source the file; stdout is the environment, stderr the file's output."""
    return capture((NAME, "-c", _SCRIPT, "sh", str(path.absolute())), env=environ, timeout=seconds)


def read(stdout: bytes) -> dict[str, str]:
    """Parse the environment in the output of `load`.

    Raises:
        ValueError: the file ended the shell before it was printed.
    """
    if not stdout.endswith(b"\0"):
        raise ValueError("there is no environment")
    # Decoded as os.environ is, in any locale.
    entries = (os.fsdecode(entry).partition("=") for entry in stdout.split(b"\0"))
    return {name: value for name, equals, value in entries if equals}


def without_traces(after: Mapping[str, str], before: Mapping[str, str]) -> dict[str, str]:
    """Undo the shell's own changes: it sets SHLVL, and drops variables with invalid names."""
    result = {name: value for name, value in after.items() if not _is_shells_own(name)}
    return result | {name: value for name, value in before.items() if _is_shells_own(name)}


def _is_shells_own(name: str) -> bool:
    return name in _OF_THE_SHELL or not _SPELLABLE.fullmatch(name)


def text(output: bytes) -> str:
    return output.decode(errors="replace")


def by_hand(path: Path) -> str:
    """Return the command to type by hand."""
    return f". {path}"
