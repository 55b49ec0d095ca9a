"""Sources an env file in sh, not as a login shell and not interactive: it reads no file of the user's."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from torchbuild_tasks.system.process import Captured, capture

NAME: Final = "/bin/sh"
# What the file prints goes to stderr, so that stdout is the environment and nothing else. The
# second line is no `. || exit`: there the shell would overlook a `set -e` of the file's.
_SCRIPT: Final = """\
. "$1" >&2
case $? in 0) exec "$2" -I -S -c "$3" ;; *) exit ;; esac
"""
# Not os.environ: Python itself puts LC_CTYPE there when it starts in the C locale.
_DUMP: Final = """\
import json
with open("/proc/self/environ", "rb") as file:
    entries = [entry.decode("utf-8", "surrogateescape") for entry in file.read().split(b"\\0")]
print(json.dumps([entry.partition("=")[::2] for entry in entries if "=" in entry]))
"""
_SPELLABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OF_THE_SHELL: Final = frozenset({"_", "SHLVL", "PWD", "OLDPWD"})


def load(path: Path, environ: Mapping[str, str], seconds: float) -> Captured:
    """Source the file; stdout is the environment as JSON, stderr what was said."""
    argv = (NAME, "-c", _SCRIPT, "sh", str(path.absolute()), sys.executable, _DUMP)
    return capture(argv, env=environ, timeout=seconds)


def without_traces(after: Mapping[str, str], before: Mapping[str, str]) -> dict[str, str]:
    """Undo what a shell does unasked: it counts levels, and drops names that it cannot spell."""
    result = {_native(name): _native(value) for name, value in after.items()}
    result = {name: value for name, value in result.items() if not _untold(name)}
    return result | {name: value for name, value in before.items() if _untold(name)}


def _native(text: str) -> str:
    """Decode as this process decodes os.environ, whatever its locale is."""
    return os.fsdecode(text.encode("utf-8", "surrogateescape"))


def _untold(name: str) -> bool:
    return name in _OF_THE_SHELL or not _SPELLABLE.fullmatch(name)


def text(said: bytes) -> str:
    """Return what the shell said, for people."""
    return said.decode(errors="replace")


def by_hand(path: Path) -> str:
    """Return the command that a person would type."""
    return f". {path}"
