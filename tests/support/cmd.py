"""Run the real cmd in tests: write an env file, call it, and read the resulting environment.

What it leaves is written as JSON by a Python that cmd starts, which no code page touches.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from torchbuild_tasks.catalog.templates import load_templates
from torchbuild_tasks.model import EnvOp
from torchbuild_tasks.plan.env_files import encode, file_name, render

TEMPLATES: Final = load_templates()
CALL: Final = 'call "%~dp0env_set.bat" || exit /b 1'
_DUMP: Final = """\
import json, os, sys
with open(sys.argv[1], "w") as file:
    json.dump([dict(os.environ), os.getcwd()], file)
"""


class Done(NamedTuple):
    """The result of cmd: exit code, both streams, and, if it got so far, the environment of programs."""

    rc: int
    out: str
    err: str
    environ: dict[str, str]
    folder: str


def hidden() -> int:
    """Return the flag that gives a process an invisible console of its own."""
    if sys.platform == "win32":
        return subprocess.CREATE_NO_WINDOW
    return 0


def write(folder: Path, ops: Sequence[EnvOp], *, shell: str = "bat", checkout: str = r"C:\pt") -> Path:
    """Write the env file of these operations."""
    path = folder / file_name(shell)
    text = render(shell, TEMPLATES[shell], ops, checkout=checkout, writer="the tests")
    path.write_bytes(encode(shell, text))
    return path


def run(folder: Path, *script: str, environ: Mapping[str, str | None] | None = None, flags: int = 0) -> Done:
    """Run these lines and return the result; a name with None is unset before."""
    dump, seen = folder / "dump.py", folder / "seen.json"
    dump.write_text(_DUMP, encoding="utf-8")
    seen.unlink(missing_ok=True)
    lines = ["@echo off", *script, f'"{sys.executable}" -I -S "%~dp0dump.py" "%~dp0seen.json"', ""]
    (folder / "main.bat").write_bytes("\r\n".join(lines).encode())
    done = start(f'call "{folder}\\main.bat"', folder, environ or {}, flags)
    left, at = json.loads(seen.read_text("utf-8")) if seen.exists() else ({}, "")
    out, err = (
        stream.decode(errors="replace").replace("\r\n", "\n") for stream in (done.stdout, done.stderr)
    )
    return Done(done.returncode, out, err, left, at)


def start(
    command: str, folder: Path, environ: Mapping[str, str | None], flags: int = 0
) -> subprocess.CompletedProcess[bytes]:
    """Run one command line in a new cmd; it is handed over in one piece, in quotes."""
    return subprocess.run(
        f'cmd.exe /d /v:off /c "{command}"',
        env={name: value for name, value in {**os.environ, **environ}.items() if value is not None},
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=120,
        check=False,
        creationflags=flags,
    )


def after(
    folder: Path, *before: str, times: int = 1, environ: Mapping[str, str | None] | None = None
) -> Done:
    """Return the result after the env file in `folder` was called `times` times."""
    done = run(folder, *before, *[CALL] * times, environ=environ)
    assert done.rc == 0, done.err[-2_000:]
    return done


def helpers(done: Done) -> list[str]:
    """The env file's own variables that were left behind."""
    return [name for name in done.environ if name.startswith("TORCHBUILD__")]


def reads_utf8(folder: Path) -> bool:
    """Whether this cmd reads a file as UTF-8, be it after chcp: wine's does in some locales only."""
    lines = (r"%SystemRoot%\System32\chcp.com 65001 >nul 2>&1", 'set "X=\u20ac"')
    return run(folder, *lines, flags=hidden()).environ.get("X") == "\u20ac"
