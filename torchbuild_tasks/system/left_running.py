"""End the programs that a killed run left running: the next run finds them by a token.

SIGKILL ends our process but not its children: a Ninja continues, without the checkout's lock. So each
program gets the random token of the run in its environment, and its session is recorded first. The next run
ends a session only if one of its processes has that token: a session id may be another program's by then,
and a cache's server that left the session is not part of the build. On Windows the job object ends all.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from torchbuild_tasks.system.files import create
from torchbuild_tasks.system.process_tree import end_tree, list_processes
from torchbuild_tasks.system.reading import read_text

VARIABLE: Final = "TORCHBUILD_RUN"
FILE: Final = "running"
ENDED: Final = "ended"  # its mtime is when leftover programs of a killed run were ended
_STARTING: Final = "?"
_LATE: Final = 1.0  # seconds of difference between the clocks of the file system and the kernel


class Run:
    """The record of one run: its token, then two lines for each session: "starting", and its id."""

    def __init__(self, path: Path) -> None:
        self.token = os.urandom(16).hex()
        self._path = path
        with create(path) as file:
            file.write(f"{self.token}\n".encode("ascii"))

    def environ(self, env: Mapping[str, str] | None) -> Mapping[str, str] | None:
        """Return the environment for programs of this run, with its token."""
        if sys.platform == "win32":
            return env
        return {**(os.environ if env is None else env), VARIABLE: self.token}

    def note(self, line: str) -> None:
        """Add a line; errors are ignored, because only the clean-up after a kill needs it."""
        with contextlib.suppress(OSError), self._path.open("a", encoding="ascii") as file:
            file.write(f"{line}\n")

    def starting(self) -> None:
        """Record that a session is about to start, whose id is not known yet."""
        self.note(_STARTING)


_runs: list[Run] = []


def current() -> Run | None:
    """Return the innermost run that has locked a checkout."""
    return _runs[-1] if _runs else None


@contextlib.contextmanager
def note_started(state: Path) -> Iterator[None]:
    """Record in `state` the programs started in the body; end those left at its end."""
    path = state / FILE
    try:
        run = Run(path)
    except OSError:  # a full disk: a later write will report it
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
    """End the programs that a killed run left; the caller holds the lock.

    Returns:
        The names of the ended programs, and the pids of processes that did not end.
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
    """Return the sessions of a run, each with its programs' names; those begun `since` need no record."""
    import psutil

    sessions: dict[int, list[str]] = {}
    for process in list_processes() if sys.platform != "win32" else ():
        with contextlib.suppress(psutil.Error, OSError):
            session = os.getsid(process.pid)
            new = since is not None and process.create_time() >= since
            ours = (session in known or new) and session != os.getsid(0)
            if ours and process.environ().get(VARIABLE) == token:
                sessions.setdefault(session, []).append(process.name())
    return sessions
