"""sccache-dist: where it is, the secrets it makes, and a run of it in the foreground."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

from torchbuild_tasks.errors import ClusterError
from torchbuild_tasks.system import process

NAME: Final = "sccache-dist"
_SECONDS: Final = 20.0


def beside(program: str) -> str:
    """The sccache-dist that came with an sccache; "" where there is none."""
    path = Path(program).resolve().with_name(NAME)
    return str(path) if program and path.is_file() and os.access(path, os.X_OK) else ""


def on_path() -> str:
    """The sccache-dist of this machine; "" where there is none."""
    return shutil.which(NAME) or ""


def version(program: str) -> str:
    """What it calls itself ("0.16.0"); "" when it does not start."""
    done = process.capture((program, "--version"), timeout=_SECONDS)
    words = done.stdout.decode(errors="replace").split()
    return words[-1] if done.rc == 0 and words else ""


def shared_token(program: str) -> str:
    """A new token that all clients share."""
    return _made(program, "generate-shared-token")


def secret_key(program: str) -> str:
    """A new key that signs the tokens of servers."""
    return _made(program, "generate-jwt-hs256-key")


def server_token(program: str, scheduler_conf: Path, address: str) -> str:
    """The token of the server at an address, signed by the key in a scheduler's file.

    The key goes by file, for arguments of processes can be seen by everybody.
    """
    return _made(
        program, "generate-jwt-hs256-server-token", "--config", str(scheduler_conf), "--server", address
    )


def _made(program: str, *words: str) -> str:
    done = process.capture((program, "auth", *words), timeout=_SECONDS)
    said = done.stdout.decode(errors="replace").strip()
    if done.rc != 0 or not said:
        why = done.stderr.decode(errors="replace").strip().splitlines()
        raise ClusterError(
            f"{program} auth {words[0]} ended with exit code {done.rc}.", looked=tuple(why[-3:])
        )
    return said


def serve(program: str, kind: str, conf: Path, log: str, on_line: Callable[[str], None]) -> int:
    """Run it until it ends or is interrupted.

    Args:
        program: its path.
        kind: scheduler or server.
        conf: its file.
        log: what it is to write down (SCCACHE_LOG).
        on_line: told every line that it writes.

    Returns:
        Its exit code. Raises Interrupted once all that it started is ended.
    """
    # Without this a scheduler goes to the background, where Ctrl-C does not reach it.
    environ = {**os.environ, "SCCACHE_NO_DAEMON": "1", "SCCACHE_LOG": log}

    def tell(block: bytes) -> None:
        for line in block.decode(errors="replace").splitlines():
            on_line(line)

    argv = (program, kind, "--config", str(conf))
    return process.stream(argv, env=environ, cwd=None, log=_Nowhere(), on_block=tell)


class _Nowhere:
    """A log for what is only shown."""

    def write(self, data: bytes, /) -> None: ...
