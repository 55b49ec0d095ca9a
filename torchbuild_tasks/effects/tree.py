"""Ends a process tree: the session, and every descendant that left it."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import psutil

# The first signal is what Ctrl-C in a terminal sends: ninja and make delete the outputs
# they were writing, pip and setup.py remove their temporary folders. Python programs die
# of SIGTERM without tidying, so it comes second. Windows knows neither between processes:
# `end_tree` sends Ctrl-Break to the group, the only polite word there is, and waits.
_POLITE: Final = (None,) if sys.platform == "win32" else (signal.SIGINT, signal.SIGTERM)
_KILL: Final = getattr(signal, "SIGKILL", signal.SIGTERM)  # SIGTERM is what kills on Windows


def end_tree(pid: int, grace: float = 3.0) -> tuple[int, ...]:
    """End the process, its session and all its descendants, also those in other sessions.

    They are asked twice within `grace` seconds and then killed; returns the pids that
    were still there two seconds after that (a process in uninterruptible sleep). A
    daemon that detached itself on purpose (new session, parent gone) is not found.
    """
    if sys.platform == "win32":
        with contextlib.suppress(OSError):
            os.kill(pid, signal.CTRL_BREAK_EVENT)
    family: dict[int, psutil.Process] = {}
    for number in _POLITE:
        if _sent(pid, family, number, grace / len(_POLITE)):
            return ()
    _sent(pid, family, _KILL, 2.0)
    return tuple(_members(pid, family))


def _sent(pid: int, family: dict[int, psutil.Process], number: int | None, seconds: float) -> bool:
    """Send a signal (None: no signal) to every member, late comers too; true once nobody is left."""
    import psutil

    told: set[psutil.Process] = set()
    deadline = time.monotonic() + seconds
    while members := _members(pid, family):
        for process in set(members.values()) - told:
            with contextlib.suppress(psutil.Error, OSError):
                if number is not None:
                    process.send_signal(number)
            told.add(process)
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def _members(pid: int, family: dict[int, psutil.Process]) -> dict[int, psutil.Process]:
    """Who is alive of the family; `family` remembers those whose parents are gone by now."""
    import psutil

    children: dict[int, list[psutil.Process]] = {}
    alive: dict[int, psutil.Process] = {}
    for process in psutil.process_iter(["ppid", "status"]):
        children.setdefault(process.info["ppid"], []).append(process)
        known = family.get(process.pid) == process or process.pid == pid
        if known or _session(process.pid) == pid:
            alive[process.pid] = process
    todo = list(alive)
    while todo:
        for child in children.get(todo.pop(), []):
            if child.pid not in alive:
                alive[child.pid] = child
                todo.append(child.pid)
    family.update(alive)
    return {number: p for number, p in alive.items() if p.info["status"] != psutil.STATUS_ZOMBIE}


def _session(pid: int) -> int:
    """The session of a process; ids of sessions are not reused while one member lives."""
    if sys.platform == "win32":
        return -1
    try:
        return os.getsid(pid)
    except OSError:
        return -1
