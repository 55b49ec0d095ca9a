"""End a process tree: the job on Windows, else the session and every descendant that left it."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

if sys.platform == "win32":
    from torchbuild_tasks.system.windows_job import ask
if TYPE_CHECKING:
    import psutil

    from torchbuild_tasks.system.windows_job import Job

_KILL: Final = getattr(signal, "SIGKILL", signal.SIGTERM)  # SIGTERM is what kills on Windows
GRACE: Final = 3.0  # seconds


def end_tree(pid: int, grace: float = GRACE, *, job: Job | None = None) -> tuple[int, ...]:
    """End the process, its session and all its descendants, also those in other sessions.

    They are asked twice within `grace` seconds (0: not at all) and then killed; returns the pids that
    were still there two seconds after that (a process in uninterruptible sleep). A
    daemon that detached itself on purpose (new session, parent gone) is not found; on
    Windows it is in the `job` too, and ends.
    """
    if job is not None:
        return job.end(grace if grace and _ask(pid) else 0.0)  # the request was not sent, so do not wait
    tree: dict[int, psutil.Process] = {}
    _members(pid, tree)
    # SIGTERM ends Python programs without clean-up, so it comes second.
    rounds = [(None, grace)] if sys.platform == "win32" else [(None, grace / 2), (signal.SIGTERM, grace / 2)]
    if not grace:
        rounds = []
    elif not _ask(pid):
        rounds = rounds[1:]
    if any(_signal(pid, tree, number, seconds) for number, seconds in rounds):
        return ()
    _signal(pid, tree, _KILL, 2.0)
    return tuple(_members(pid, tree))


def _ask(pid: int) -> bool:
    """Send the group what Ctrl-C in a terminal sends; return false without such a group or console.

    ninja and make delete the outputs they were writing, pip and setup.py their temporary
    folders. Not to each process: a ninja whose compilers die first leaves half an output.
    """
    if sys.platform == "win32":
        return ask(pid)
    with contextlib.suppress(OSError):
        os.killpg(pid, signal.SIGINT)
        return True
    return False


def _signal(pid: int, tree: dict[int, psutil.Process], number: int | None, seconds: float) -> bool:
    """Send a signal (None: no signal) to every member, also new ones; true once none is left."""
    import psutil

    sent: set[psutil.Process] = set()
    deadline = time.monotonic() + seconds
    while members := _members(pid, tree):
        for process in set(members.values()) - sent:
            with contextlib.suppress(psutil.Error, OSError):
                if number is not None:
                    process.send_signal(number)
            sent.add(process)
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def _members(pid: int, tree: dict[int, psutil.Process]) -> dict[int, psutil.Process]:
    """Return the live processes of the tree; `tree` keeps those whose parents are gone."""
    import psutil

    children: dict[int, list[psutil.Process]] = {}
    alive: dict[int, psutil.Process] = {}
    for process in list_processes("ppid", "status"):
        children.setdefault(process.info["ppid"], []).append(process)
        known = tree.get(process.pid) == process or process.pid == pid
        if known or _session(process.pid) == pid:
            alive[process.pid] = process
    todo = list(alive)
    while todo:
        parent = alive[todo.pop()]
        for child in children.get(parent.pid, []):
            if child.pid not in alive and _is_child(child, parent):
                alive[child.pid] = child
                todo.append(child.pid)
    tree.update(alive)
    return {number: p for number, p in alive.items() if p.info["status"] != psutil.STATUS_ZOMBIE}


def list_processes(*attributes: str) -> Iterator[psutil.Process]:
    """Yield all processes of the system, with these attributes in `info`.

    psutil 7.2.2 keeps what it has listed by its pid. It leaves a process out whose pid was another's when
    this process listed them last, which may be thousands of compiles ago.
    """
    import psutil

    psutil.process_iter.cache_clear()
    return psutil.process_iter(attributes or None)


def _is_child(child: psutil.Process, parent: psutil.Process) -> bool:
    """Say whether it is a child; on Windows an older process is not: its parent's pid was reused."""
    import psutil

    if sys.platform != "win32":
        return True
    with contextlib.suppress(psutil.Error, OSError):
        return bool(child.create_time() >= parent.create_time())
    return False


def _session(pid: int) -> int:
    """Return the session id of a process, which is not reused while a member lives; -1 for none."""
    if sys.platform != "win32":
        with contextlib.suppress(OSError):
            return os.getsid(pid)
    return -1
