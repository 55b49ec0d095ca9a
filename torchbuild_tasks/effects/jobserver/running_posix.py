"""The processes of the build that do the work, from /proc, and how to hold one: SIGSTOP.

Only our own family is read, child by child, so that a look costs about 0.1 ms a process
however many others run. Source: proc_pid_stat(5), proc_pid_status(5), proc_tid_children(5).
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from torchbuild_tasks.model.pressure import Running

CAN_HOLD: Final = sys.platform == "linux" and Path("/proc/self/task").exists()
# Without CPU for so long it waits for another: for a lock, a server, a network.
_IDLE: Final = 2.0
_PAGE: Final = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


class Family:
    """All that descends from us, and from other processes that work for us, and who of it we hold.

    Args:
        also: asked at each look for the pids of those others; they are not of the family themselves.
    """

    def __init__(self, also: Callable[[], Sequence[int]] = tuple) -> None:
        self._also = also
        self._held: dict[int, float] = {}
        self._busy: dict[int, tuple[int, float]] = {}  # pid -> CPU ticks, and since when so many

    def look(self) -> list[Running]:
        """Those without children, as they are now."""
        now = time.monotonic()
        found = [one for pid in self._leaves() if (one := self._read(pid, now))]
        alive = {one.pid for one in found}
        self._busy = {pid: seen for pid, seen in self._busy.items() if pid in alive}
        self._held = {pid: start for pid, start in self._held.items() if start_of(pid) == start}
        return found

    def hold(self, wanted: frozenset[int]) -> tuple[tuple[int, float], ...]:
        """Hold exactly these of the last look, let others go on; returns who is held, with its start."""
        for pid in self._held.keys() - wanted:
            _send(pid, "SIGCONT")
            self._busy.pop(pid, None)
            del self._held[pid]
        for pid in wanted - self._held.keys():
            start = start_of(pid)
            if start is not None and _send(pid, "SIGSTOP"):
                self._held[pid] = start
        return tuple(self._held.items())

    def _leaves(self) -> Iterator[int]:
        roots = (os.getpid(), *self._also())
        todo = [child for root in roots for child in _children(root)]
        seen = set(roots)
        while todo:
            pid = todo.pop()
            if pid in seen:
                continue
            seen.add(pid)
            children = _children(pid)
            todo += children
            # A held one that got children in between is still ours to let go on.
            if not children or pid in self._held:
                yield pid

    def _read(self, pid: int, now: float) -> Running | None:
        fields = _stat(pid)
        if fields is None or fields[0] in {b"Z", b"X"}:
            return None
        ticks = int(fields[11]) + int(fields[12])
        size = int(fields[21]) * _PAGE
        if not size:  # on its way out: its memory is gone already, and with it how much that was at most
            return None
        before = self._busy.get(pid)
        if before is None or before[0] != ticks or pid in self._held:
            before = self._busy[pid] = (ticks, now)
        return Running(
            pid=pid,
            started=float(fields[19]),
            size=size,
            peak=max(size, _peak(pid)),
            held=pid in self._held,
            idle=now - before[1] > _IDLE,
        )


def start_of(pid: int) -> float | None:
    """When a process was started, in the kernel's ticks; None where there is none."""
    fields = _stat(pid)
    return None if fields is None else float(fields[19])


def _stat(pid: int) -> list[bytes] | None:
    """The fields from the third one on: the second is a name that can hold anything."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - twice as quick, many times a second
            return file.read().rpartition(b")")[2].split()
    except OSError:
        return None


def _peak(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/status", "rb") as file:  # noqa: PTH123
            after = file.read().partition(b"VmHWM:")[2].split(maxsplit=1)
    except OSError:
        return 0
    return int(after[0]) * 1024 if after else 0


def _children(pid: int) -> list[int]:
    """Of all its threads, for each has those that it started."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{task}/children", "rb") as file:  # noqa: PTH123
                found += map(int, file.read().split())
    return found


def _send(pid: int, name: str) -> bool:
    with contextlib.suppress(OSError):
        os.kill(pid, getattr(signal, name))
        return True
    return False
