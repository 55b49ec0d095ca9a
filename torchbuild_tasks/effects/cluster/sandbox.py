"""What a server needs to compile for others without letting them in: root, bubblewrap, overlay mounts.

sccache-dist 0.16 refuses to run as anyone but root, and asks for bubblewrap 0.3.0 or newer
(src/bin/sccache-dist/build.rs). Each compile gets an overlay of the toolchain; that fails in a container
without rights, and on a file system that is an overlay itself, and sccache would only say so at each compile.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final

import msgspec

from torchbuild_tasks.system import process

OLDEST: Final = (0, 3, 0)
_SECONDS: Final = 20.0


class Sandbox(msgspec.Struct, frozen=True, kw_only=True):
    """Bubblewrap as it was found, and what is missing: each problem with what to do about it."""

    bubblewrap: str = ""
    version: str = ""
    problems: tuple[tuple[str, str], ...] = ()


def look(folder: Path) -> Sandbox:
    """Try everything that a server with its builds in `folder` needs."""
    program = shutil.which("bwrap") or ""
    version = _version(program)
    problems = [*_of_user(), *_of_bubblewrap(program, version)]
    if not problems:
        problems += _of_overlay(folder)
    return Sandbox(bubblewrap=program, version=version, problems=tuple(problems))


def _of_user() -> list[tuple[str, str]]:
    if sys.platform == "win32" or os.geteuid() == 0:
        return []
    return [("a server has to run as root, for it mounts and isolates", "Run it with sudo.")]


def _of_bubblewrap(program: str, version: str) -> list[tuple[str, str]]:
    install = "Install it: sudo apt install bubblewrap"
    if not program:
        return [("bubblewrap (bwrap), in which a server compiles, is not on PATH", install)]
    numbers = tuple(int(part) for part in version.split(".") if part.isdecimal())
    if not version:
        return [(f"{program} does not run", install)]
    if numbers < OLDEST:
        return [(f"{program} is version {version}, and a server needs 0.3.0 or newer", install)]
    return []


def _version(program: str) -> str:
    if not program:
        return ""
    done = process.capture((program, "--version"), timeout=_SECONDS)
    words = done.stdout.decode(errors="replace").split()
    return words[-1] if done.rc == 0 and words else ""


def _of_overlay(folder: Path) -> list[tuple[str, str]]:
    """Mount one, as a server does for each compile, in a name space that ends with the command."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as place:
            parts = {name: Path(place) / name for name in ("lower", "upper", "work", "target")}
            for part in parts.values():
                part.mkdir()
            options = f"lowerdir={parts['lower']},upperdir={parts['upper']},workdir={parts['work']}"
            mount = ("mount", "-t", "overlay", "overlay", "-o", options, str(parts["target"]))
            done = process.capture(("unshare", "-m", *mount), timeout=_SECONDS)
    except OSError as error:
        return [(f"{folder} cannot be used: {error.strerror or error}", "Name another: --space FOLDER")]
    if done.rc == 0:
        return []
    said = done.stderr.decode(errors="replace").strip().splitlines()
    text = f"an overlay cannot be mounted in {folder}" + (f": {said[0]}" if said else "")
    return [
        (text, "In a container, give it CAP_SYS_ADMIN; name a folder on a disk of its own: --space FOLDER")
    ]
