"""Find and end what a killed run has left running: known by a token of that run, and ended by the next.

SIGKILL ends our process and nothing that it started: a Ninja goes on, without the checkout's lock. So each
program gets the random token of the run in its environment, and its session is written down before anything
else happens. The next run ends a session only if one of its processes has that token: a number may be another
program's by then, and a cache's server that left the session is not the build's. On Windows the job ends all.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from torchbuild_tasks.system.files import create
from torchbuild_tasks.system.process_tree import end_tree
from torchbuild_tasks.system.reading import read_text

VARIABLE: Final = "TORCHBUILD_RUN"
FILE: Final = "running"
ENDED: Final = "ended"  # its time is when programs that a killed run had left were ended
_STARTING: Final = "?"
_LATE: Final = 1.0  # seconds between two clocks, the file system's and the kernel's


class Run:
    """The note of one run: its token, then a line for each session, after one that says that it begins."""

    def __init__(self, path: Path) -> None:
        self.token = os.urandom(16).hex()
        self._path = path
        with create(path) as file:
            file.write(f"{self.token}\n".encode("ascii"))

    def environ(self, env: Mapping[str, str] | None) -> Mapping[str, str] | None:
        """Return the environment of a program that this run starts, by which it is known as this run's."""
        if sys.platform == "win32":
            return env
        return {**(os.environ if env is None else env), VARIABLE: self.token}

    def note(self, line: str) -> None:
        """Add a line; without it, nothing but what a kill leaves is the worse."""
        with contextlib.suppress(OSError), self._path.open("a", encoding="ascii") as file:
            file.write(f"{line}\n")

    def starting(self) -> None:
        """Note that a session begins whose number is not known yet."""
        self.note(_STARTING)


_runs: list[Run] = []


def current() -> Run | None:
    """Return the innermost run that holds a checkout."""
    return _runs[-1] if _runs else None


@contextlib.contextmanager
def note_started(state: Path) -> Iterator[None]:
    """Note what is started meanwhile in `state`; at the end of the run nothing of it is left."""
    path = state / FILE
    try:
        run = Run(path)
    except OSError:  # a full disk: whatever has to be written will say it
        yield
        return
    _runs.append(run)
    try:
        yield
    finally:
        _runs.remove(run)
        with contextlib.suppress(OSError):
            path.unlink()


def end_leftovers(state: Path) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """End what a killed run left; its lock must be held.

    Returns:
        The names of the programs that were ended, and the numbers of processes that would not end.
    """
    path = state / FILE
    try:
        token, *lines = read_text(path, most=1 << 20).split()
        written = path.stat().st_mtime
    except (OSError, ValueError):
        return (), ()
    sessions = {int(line) for line in lines if line.isdecimal()}
    since = written - _LATE if lines and lines[-1] == _STARTING else None
    ended: list[str] = []
    stayed: list[int] = []
    for session, names in _sessions(token, sessions, since).items():
        ended += names
        stayed += end_tree(session)
    if ended:
        with contextlib.suppress(OSError):
            create(state / ENDED).close()
    return tuple(dict.fromkeys(ended)), tuple(stayed)


def _sessions(token: str, known: set[int], since: float | None) -> dict[int, list[str]]:
    """Return the sessions of that run with the names of their programs; those begun `since` need no note."""
    import psutil

    sessions: dict[int, list[str]] = {}
    for process in psutil.process_iter() if sys.platform != "win32" else ():
        with contextlib.suppress(psutil.Error, OSError):
            session = os.getsid(process.pid)
            new = since is not None and process.create_time() >= since
            ours = (session in known or new) and session != os.getsid(0)
            if ours and process.environ().get(VARIABLE) == token:
                sessions.setdefault(session, []).append(process.name())
    return sessions
