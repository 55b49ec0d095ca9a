"""The processes of the build that do the work, on Windows, and how to hold one: psutil suspends it."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from torchbuild_tasks.model.pressure import Running

if TYPE_CHECKING:
    import psutil

CAN_HOLD: Final = sys.platform == "win32"
# Without CPU for so long it waits for another: for a lock, a server, a network.
_IDLE: Final = 2.0


class Family:
    """All that descends from us, and from other processes that work for us, and who of it we hold.

    Args:
        also: asked at each look for the pids of those others; they are not of the family themselves.
    """

    def __init__(self, also: Callable[[], Sequence[int]] = tuple) -> None:
        self._also = also
        self._held: dict[int, psutil.Process] = {}
        self._seen: dict[int, psutil.Process] = {}
        self._busy: dict[int, tuple[float, float]] = {}  # pid -> CPU seconds, and since when so many

    def look(self) -> list[Running]:
        """Those without children, as they are now."""
        now = time.monotonic()
        self._seen = {process.pid: process for process in self._leaves()}
        self._busy = {pid: seen for pid, seen in self._busy.items() if pid in self._seen}
        return [one for process in self._seen.values() if (one := self._read(process, now))]

    def hold(self, wanted: frozenset[int]) -> tuple[tuple[int, float], ...]:
        """Hold exactly these of the last look, let others go on; returns who is held, with its start."""
        import psutil

        for pid in self._held.keys() - wanted:
            with contextlib.suppress(psutil.Error, OSError):
                self._held[pid].resume()
            self._busy.pop(pid, None)
            del self._held[pid]
        for pid in (wanted & self._seen.keys()) - self._held.keys():
            with contextlib.suppress(psutil.Error, OSError):
                self._seen[pid].suspend()
                self._held[pid] = self._seen[pid]
        return tuple((pid, process.create_time()) for pid, process in self._held.items())

    def _leaves(self) -> list[psutil.Process]:
        import psutil

        family: dict[int, psutil.Process] = {}
        for root in (os.getpid(), *self._also()):
            with contextlib.suppress(psutil.Error, OSError):
                family.update((each.pid, each) for each in psutil.Process(root).children(recursive=True))
        parents = set()
        for process in family.values():
            with contextlib.suppress(psutil.Error, OSError):
                parents.add(process.ppid())
        return [each for pid, each in family.items() if pid not in parents or pid in self._held]

    def _read(self, process: psutil.Process, now: float) -> Running | None:
        """Sizes are what commit is charged for, which psutil calls the page file."""
        import psutil

        try:
            with process.oneshot():
                memory = process.memory_info()
                times = process.cpu_times()
                started = process.create_time()
        except (psutil.Error, OSError):
            return None
        size, used = int(getattr(memory, "pagefile", memory.rss)), times.user + times.system
        before = self._busy.get(process.pid)
        if before is None or before[0] != used or process.pid in self._held:
            before = self._busy[process.pid] = (used, now)
        return Running(
            pid=process.pid,
            started=started,
            size=size,
            peak=max(size, int(getattr(memory, "peak_pagefile", 0))),
            held=process.pid in self._held,
            idle=now - before[1] > _IDLE,
        )
