"""Start sccache-dist as scheduler or server, and check its needs: program, sandbox, a free port."""

from __future__ import annotations

import errno
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from torchbuild_tasks.errors import ClusterError
from torchbuild_tasks.system import process

NAME: Final = "sccache-dist"
_SECONDS: Final = 20.0
OLDEST: Final = (0, 3, 0)


def dist_next_to(program: str) -> str:
    """Return the sccache-dist next to an sccache; "" without one."""
    path = Path(program).resolve().with_name(NAME)
    return str(path) if program and path.is_file() and os.access(path, os.X_OK) else ""


def version(program: str) -> str:
    """Return sccache-dist's version ("0.16.0"); "" if it does not start."""
    captured = process.capture((program, "--version"), timeout=_SECONDS)
    return (captured.answer.split() or [""])[-1]


def make_token(program: str) -> str:
    """Return a new token that all clients share."""
    return _create(program, "generate-shared-token")


def secret_key(program: str) -> str:
    """Return a new key that signs the tokens of servers."""
    return _create(program, "generate-jwt-hs256-key")


def server_token(program: str, scheduler_conf: Path, address: str) -> str:
    """Return the token for a server's address, signed by the key in a scheduler's file.

    The key goes by file, for arguments of processes can be seen by everybody.
    """
    return _create(
        program, "generate-jwt-hs256-server-token", "--config", str(scheduler_conf), "--server", address
    )


def _create(program: str, *words: str) -> str:
    captured = process.capture((program, "auth", *words), timeout=_SECONDS)
    if not captured.answer:
        why = captured.error_text.splitlines()
        raise ClusterError(
            f"{program} auth {words[0]} ended with exit code {captured.rc}.", looked=tuple(why[-3:])
        )
    return captured.answer


def serve(program: str, kind: str, conf: Path, log: str, on_line: Callable[[str], None]) -> int:
    """Run it until it ends or is interrupted.

    Args:
        program: its path.
        kind: scheduler or server.
        conf: its file.
        log: what it is to write down (SCCACHE_LOG).
        on_line: called with every line that it writes.

    Returns:
        Its exit code. Raises Interrupted once all that it started is ended.
    """
    # Without this a scheduler goes to the background, where Ctrl-C does not reach it.
    environ = {**os.environ, "SCCACHE_NO_DAEMON": "1", "SCCACHE_LOG": log}

    def on_block(block: bytes) -> None:
        for line in block.decode(errors="replace").splitlines():
            on_line(line)

    argv = (program, kind, "--config", str(conf))
    return process.stream(argv, env=environ, cwd=None, on_block=on_block)


# ---- the sandbox of a server: root, bubblewrap, overlay mounts


class Sandbox(msgspec.Struct, frozen=True, kw_only=True):
    """The path of bubblewrap, and the problems with the sandbox, each with a fix."""

    bubblewrap: str = ""
    version: str = ""
    problems: tuple[tuple[str, str], ...] = ()


def find_sandbox(folder: Path) -> Sandbox:
    """Test everything that a server with its builds in `folder` needs."""
    program = shutil.which("bwrap") or ""
    installed = version(program) if program else ""
    problems = [*_user_problems(), *_bubblewrap_problems(program, installed)]
    if not problems:
        problems += _overlay_problems(folder)
    return Sandbox(bubblewrap=program, version=installed, problems=tuple(problems))


def _user_problems() -> list[tuple[str, str]]:
    if sys.platform == "win32" or os.geteuid() == 0:
        return []
    return [("a server has to run as root, for it mounts and isolates", "Run it with sudo.")]


def _bubblewrap_problems(program: str, version: str) -> list[tuple[str, str]]:
    install = "Install the package bubblewrap, as apt, dnf, zypper, pacman and apk call it"
    if not program:
        return [("bubblewrap (bwrap), in which a server compiles, is not on PATH", install)]
    numbers = tuple(int(part) for part in version.split(".") if part.isdecimal())
    if not version:
        return [(f"{program} does not run", install)]
    if numbers < OLDEST:
        return [(f"{program} is version {version}, and a server needs 0.3.0 or newer", install)]
    return []


def _overlay_problems(folder: Path) -> list[tuple[str, str]]:
    """Test an overlay mount, as a server makes it for each compile, in a temporary namespace."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as place:
            parts = {name: Path(place) / name for name in ("lower", "upper", "work", "target")}
            for part in parts.values():
                part.mkdir()
            options = f"lowerdir={parts['lower']},upperdir={parts['upper']},workdir={parts['work']}"
            mount = ("mount", "-t", "overlay", "overlay", "-o", options, str(parts["target"]))
            captured = process.capture(("unshare", "-m", *mount), timeout=_SECONDS)
    except OSError as error:
        return [(f"{folder} cannot be used: {error.strerror or error}", "Name another: --space FOLDER")]
    if captured.rc == 0:
        return []
    output = captured.error_text.splitlines()
    text = f"an overlay cannot be mounted in {folder}" + (f": {output[0]}" if output else "")
    return [
        (text, "In a container, give it CAP_SYS_ADMIN; name a folder on a disk of its own: --space FOLDER")
    ]


# ---- the port, tested before the start, because sccache-dist panics


_NOT_LISTENED: Final = {
    errno.EADDRINUSE: "another program listens there",
    errno.EADDRNOTAVAIL: "this machine has no such address",
    errno.EACCES: "this user may not listen there (ports below 1024 are root's)",
}


def why_not_listen(host: str, port: int) -> str:
    """Return "" if a program can listen at this address, else the reason."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family) as probe:
            if sys.platform != "win32":  # on Windows it would take the port from another program
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
            probe.listen()
    except OSError as error:
        return _NOT_LISTENED.get(error.errno or 0) or error.strerror or str(error)
    return ""
