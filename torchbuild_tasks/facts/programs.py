"""Starting a program to hear what it says of itself: `Probe.run`, and nothing else, comes here."""

from __future__ import annotations

import contextlib
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Final, TypeAlias

from torchbuild_tasks.facts.answers import Output
from torchbuild_tasks.facts.system import system

# What one stream of a probed program may say: a version is a line, a report some kilobytes.
LIMIT: Final = 4 * 1024 * 1024

_Process: TypeAlias = "subprocess.Popen[bytes]"  # noqa: TID251 - this is the door of the room that looks


def run(
    argv: Sequence[str], environ: Mapping[str, str], timeout: float, cut: Callable[[], None] = lambda: None
) -> Output | None:
    """Run a program to its end with nothing to read from.

    Args:
        argv: the program's path and its arguments; no shell.
        environ: its whole environment.
        timeout: seconds until it is killed with everything that it started.
        cut: told when it had to be killed.

    Returns:
        None when it cannot start, hangs, or says more than `LIMIT` bytes.
    """
    try:
        process = subprocess.Popen(  # noqa: TID251 - as above
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environ,
            start_new_session=system.NEW_SESSION,
            creationflags=system.CREATION_FLAGS,
        )
    except (OSError, ValueError):
        return None
    with system.group(process) as kill:
        said = _finish(process, kill, timeout)
    if said is None:
        cut()
        return None
    return Output(process.returncode, *said)


def _finish(process: _Process, kill: Callable[[], None], timeout: float) -> tuple[str, str] | None:
    """Read both streams to their end; None, and everything killed, when late.

    Reading ends before waiting does, so a background process that keeps a stream open is
    still in a group whose number nobody else can have got.
    """
    deadline = time.monotonic() + timeout
    readers = [_Reader(stream) for stream in (process.stdout, process.stderr) if stream]
    for reader in readers:
        reader.join(max(0.0, deadline - time.monotonic()))
    in_time = not any(reader.is_alive() or reader.flooded for reader in readers)
    try:
        process.wait(max(0.0, deadline - time.monotonic()) if in_time else 0)
    except subprocess.TimeoutExpired:
        in_time = False
    if not in_time:
        kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(1.0)
        return None
    stdout, stderr = (reader.said.decode("utf-8", "replace") for reader in readers)
    return stdout, stderr


class _Reader(threading.Thread):
    """Reads a stream to its end or to `LIMIT`, so that a flood cannot fill the memory."""

    def __init__(self, stream: IO[bytes]) -> None:
        super().__init__(daemon=True)
        self.stream = stream
        self.said = b""
        self.flooded = False
        self.start()

    def run(self) -> None:
        with self.stream:
            self.said = self.stream.read(LIMIT)
            self.flooded = len(self.said) == LIMIT
