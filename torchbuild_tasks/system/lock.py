"""Allow one run per checkout, by a lock that the system releases when its holder dies."""

from __future__ import annotations

import contextlib
import getpass
import os
import socket
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Final

from torchbuild_tasks.errors import TreeBusy, UsageError
from torchbuild_tasks.model import Running
from torchbuild_tasks.system import left_running
from torchbuild_tasks.system.files import state_dir, sweep, translate_errors, unlink, write_json
from torchbuild_tasks.system.reading import read_value

NOTE: Final = "lock.json"  # in the state folder while a run holds the lock; facts/tree.py reads it


@contextlib.contextmanager
def hold(root: Path, what: str, note: Callable[[str], object] | None = None) -> Iterator[None]:
    """Lock the checkout for one run of `what` (build, clean ...); do not wait.

    Programs that a killed run left running there are ended first, and reported by `note`.

    Raises:
        TreeBusy: another run has locked it, or a leftover program does not end.
        UsageError: the checkout cannot be written.
    """
    import filelock

    state = state_dir(root)
    lock = filelock.FileLock(state / "lock")
    about = state / NOTE
    with translate_errors(UsageError, state / "lock"):
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout:  # an OSError, too
            raise busy(root, read_value(Running, about)) from None
    try:
        _end_leftovers(root, state, note)
        sweep(root)  # writes would remove these only for files that change
        sweep(state)
        with contextlib.suppress(UsageError):  # on a full disk `clean` must work; the holder stays unknown
            write_json(about, _myself(what), error=UsageError, private=True)
        with left_running.note_started(state):
            yield
    finally:
        # First the note, then the lock: a note must not outlive its run.
        with contextlib.suppress(OSError):
            unlink(about)
        lock.release()


def _end_leftovers(root: Path, state: Path, note: Callable[[str], object] | None) -> None:
    ended, stayed = left_running.end_leftovers(state)
    if stayed:
        numbers = ", ".join(map(str, stayed))
        raise TreeBusy(
            f"A run that was killed left programs in {root} that do not end: process {numbers}.",
            next_step="They wait for a disk or a device. Run the same command again once they are gone.",
        )
    if ended and note is not None:
        note(f"ended what a run that was killed had left running here: {', '.join(ended)}")


def _myself(what: str) -> Running:
    started = datetime.now().astimezone().isoformat(timespec="seconds")
    host = socket.gethostname()
    return Running(command=what, user=_user(), host=host, pid=os.getpid(), started=started)


def _user() -> str:
    with contextlib.suppress(KeyError, OSError, ImportError):  # a container's user without a name
        return getpass.getuser()
    return "unknown"


def busy(root: Path, holder: Running | None) -> TreeBusy:
    """Return the error with the holder's command, if its note can be read."""
    return TreeBusy(
        f"{root} is in use by {holder or 'another process'}.",
        next_step="Wait until it is over, or end that process; its lock ends with it. "
        "Another checkout or worktree can be built at the same time.",
    )
