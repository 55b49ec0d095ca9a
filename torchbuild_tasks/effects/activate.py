"""Load the written env file once, in its own shell, and bring back what it made.

So the build runs in exactly what a user gets by sourcing the file. The place of
Windows' `cmd /d /v:off /c call` is beside `_load`, with the same result.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from torchbuild_tasks.effects.process import Captured, capture
from torchbuild_tasks.errors import EnvFileError

_SECONDS: Final = 60.0
_SHELL: Final = "/bin/sh"
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


def activate(path: Path, *, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment after `path` was sourced in `environ`.

    Args:
        path: an env_set.sh.
        environ: the environment that the shell starts in.

    Raises:
        EnvFileError: the file does not load; the shell's words stand in `looked`.
    """
    captured = _load(path, environ)
    if captured.timed_out:
        raise _failed(path, captured, f"did not load within {_SECONDS:.0f} seconds")
    if captured.rc != 0:
        raise _failed(path, captured, f"did not load in {_SHELL} (exit status {captured.rc})")
    try:
        pairs = json.loads(captured.stdout)
    except ValueError:
        raise _failed(path, captured, f"ended {_SHELL} before its environment could be read") from None
    return _without_traces({_text(name): _text(value) for name, value in pairs}, environ)


def _load(path: Path, environ: Mapping[str, str]) -> Captured:
    # Not a login shell and not interactive: sh reads no file of the user's.
    argv = (_SHELL, "-c", _SCRIPT, "sh", str(path.absolute()), sys.executable, _DUMP)
    return capture(argv, env=environ, timeout=_SECONDS)


def _text(text: str) -> str:
    """Decode as this process decodes os.environ, whatever its locale is."""
    return os.fsdecode(text.encode("utf-8", "surrogateescape"))


def _without_traces(after: dict[str, str], before: Mapping[str, str]) -> dict[str, str]:
    """Undo what a shell does unasked: it counts levels, and drops names that it cannot spell."""
    result = {name: value for name, value in after.items() if not _untold(name)}
    return result | {name: value for name, value in before.items() if _untold(name)}


def _untold(name: str) -> bool:
    return name in _OF_THE_SHELL or not _SPELLABLE.fullmatch(name)


def _failed(path: Path, captured: Captured, how: str) -> EnvFileError:
    said = captured.stderr.decode(errors="replace").splitlines()
    return EnvFileError(
        f"The env file {path} {how}.",
        looked=tuple(said[-20:]),
        next_step=f"Source it by hand to see more (. {path}); `env` writes it anew.",
    )
