"""Call an env file in cmd.exe, without the user's AutoRun and without delayed expansion of `!`.

The command line itself has no path: cmd expands a variable once, so between quotes every character of a
path is safe. `call` would expand a second time (a folder `100%`, a folder `a^b`); a batch file that is
alone on the command line returns without `call`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path, PureWindowsPath
from typing import Final

from torchbuild_tasks.system.process import Captured, capture
from torchbuild_tasks.values import parse_json

NAME: Final = "cmd.exe"
_FILE: Final = "TORCHBUILD__FILE"
_PYTHON: Final = "TORCHBUILD__PYTHON"
# Windows' own environment: os.environ upper-cases the names. ASCII, so that the code page
# does not matter.
_DUMP: Final = "import json,nt,sys;sys.stdout.write(json.dumps(dict(nt.environ)))"
# The file's output goes to stderr, so that stdout is only the environment.
# `call` expands ERRORLEVEL when it runs; the caret prevents the earlier expansion.
_FAILED: Final = "call exit %^ERRORLEVEL%"
_LINE: Final = (
    f'"%{_FILE}%" 1>&2 & (if errorlevel 1 {_FAILED}) & (if not errorlevel 0 {_FAILED})'
    f' & "%{_PYTHON}%" -I -S -c "{_DUMP}"'
)
# Ours, and what cmd.exe adds.
_TRACES: Final = frozenset({_FILE, _PYTHON, "PROMPT"})


def load(path: Path, environ: Mapping[str, str], seconds: float) -> Captured:
    """Call the file; stdout is the environment as JSON, stderr the file's output."""
    env = {**environ, _FILE: str(path.absolute()), _PYTHON: sys.executable}
    return capture(f'"{_cmd()}" /d /e:on /v:off /s /c "{_LINE}"', env=env, timeout=seconds)


def read(stdout: bytes) -> dict[str, str]:
    """Parse the environment in the output of `load`.

    Raises:
        ValueError, TypeError: the file ended cmd.exe before it was printed.
    """
    return dict(parse_json(stdout))


def _cmd() -> PureWindowsPath:
    """Return the path of cmd.exe; COMSPEC may be another shell."""
    return PureWindowsPath(os.environ.get("SYSTEMROOT", r"C:\Windows"), "System32", NAME)


def without_traces(after: Mapping[str, str], before: Mapping[str, str]) -> dict[str, str]:
    """Remove the variables that cmd.exe and we add; keep the spelling of names, whose case is ignored."""
    known = {name.upper(): name for name in before}
    result = {known.get(name.upper(), name): value for name, value in after.items()}
    return {name: value for name, value in result.items() if name in before or name not in _TRACES}


def text(output: bytes) -> str:
    """Return the output as text: UTF-8, else the console's code page."""
    try:
        return output.decode()
    except UnicodeDecodeError:
        return output.decode("oem" if sys.platform == "win32" else "latin-1", errors="replace")


def by_hand(path: Path) -> str:
    """Return the command to type by hand; `call` reads % and ^ a second time, also between quotes."""
    if any(sign in str(path) for sign in "%^"):
        return f'cd /d "{path.parent}" && call {path.name}'
    return f'call "{path}"'
