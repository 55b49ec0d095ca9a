"""Watch a running build: its time left, hints that would make it faster, the memory of its processes.

A thread looks at the processes now and then, for a hundredth of one core at most.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from torchbuild_tasks.build.hints import Advice, State, advice, hint, program_kind
from torchbuild_tasks.build.history import Pace, read_peaks, write
from torchbuild_tasks.build.jobserver.serve import MemoryLook, Processes
from torchbuild_tasks.build.jobserver.stage import build_processes
from torchbuild_tasks.build.work import Reporter, Work
from torchbuild_tasks.model.history import PEAKS, Peak
from torchbuild_tasks.plan.jobs import add_peaks
from torchbuild_tasks.system.periodic import Periodic
from torchbuild_tasks.values import replace

_QUERY: Final = 0x1000  # PROCESS_QUERY_LIMITED_INFORMATION
_LONGEST: Final = 32_768
_SOONEST: Final = 0.2
_LATEST: Final = 5.0
_GAP: Final = 30.0  # seconds between two looks, far above _LATEST
_SHARE: Final = 0.01  # of a core
_EVERY: Final = 1.0  # seconds between two estimates of the time left


@contextlib.contextmanager
def monitor_build(work: Work, pace: Pace, first_error: Callable[[], str]) -> Iterator[None]:
    """Watch the build in the body; afterwards its processes' peak memory is in the ledger."""
    can = advice(work.plan, work.facts.tools)
    processes = build_processes(work.env)
    monitor = Monitor(pace, Sizes(program_kind, processes), can, work.report, first_error)
    try:
        with monitor:
            yield
    finally:
        work.ledger.note_peaks(monitor.sizes.peaks)
        _save_peaks(work, monitor.sizes.peaks, pace)


def _save_peaks(work: Work, peaks: Sequence[Peak], pace: Pace) -> None:
    """Save the peak memory for the next plan on this machine, which computes its jobs from it."""
    if not peaks:
        return
    build_type = work.plan.decided.get("build type", "")
    known = read_peaks(work.fetching.store)
    # With a wheel's libraries nothing but the target is ever built.
    steps = pace.steps if work.request.mixed else pace.steps_of_tree()
    new = add_peaks(known.peaks, work.plan.source, build_type, peaks, *steps)
    if problem := write(work.fetching.store / PEAKS, replace(known, peaks=new)):
        work.report.note(problem)


class Monitor(Periodic):
    """The thread that watches. Enter it around the build."""

    def __init__(
        self, pace: Pace, sizes: Sizes, can: Advice, report: Reporter, first_error: Callable[[], str]
    ) -> None:
        self.sizes = sizes
        self._first_error = first_error
        self._failed = False
        self._pace = pace
        self._can = can
        self._report = report
        self._began = time.monotonic()
        start = swap_used()
        self._state = State(elapsed=0.0, swap=start, swap_at_start=start)
        self._several = self._began
        self._looked = self._began
        self._reported = 0.0
        super().__init__("monitor", self._look_again, _SOONEST)

    def _look_again(self) -> float:
        before = time.thread_time()
        self._look_at(time.monotonic())
        return min(_LATEST, max(_SOONEST, (time.thread_time() - before) / _SHARE))

    def _look_at(self, now: float) -> None:
        working = self.sizes.look()
        # After a gap (Ctrl-Z, a suspended machine) the number of running jobs is unknown.
        if len(working) != 1 or now - self._looked > _GAP:
            self._several = now
        self._looked = now
        if now - self._reported < _EVERY:
            return
        self._reported = now
        if words := self._first_error():
            self._failed = True
            for line in words.splitlines():
                self._report.note(line)
        # After an error Ninja starts no further steps.
        seconds_left = None if self._failed else self._pace.seconds_left()
        self._report.left(seconds_left, self._pace.spread)
        self._state = replace(
            self._state,
            elapsed=now - self._began,
            swap=swap_used(),
            working=working,
            alone=now - self._several,
            seconds_left=seconds_left,
        )
        if advice := hint(self._state, self._can):
            self._state = replace(self._state, shown=self._state.shown | {advice[0]})
            self._report.note(advice[1])


# ---- the memory of its processes


class Sizes:
    """Measures the memory of processes: call `look` regularly, then read `peaks`.

    Args:
        kind_of: returns the kind of work of a program; "" for one that does not count.
        processes: the processes of the build; without it, all descendants of this process.
    """

    def __init__(self, kind_of: Callable[[str], str], processes: Processes | None = None) -> None:
        self._kind_of = kind_of
        self._processes = processes or Processes()
        self._seen: dict[tuple[int, float], tuple[str, int]] = {}  # pid and start -> kind, peak bytes

    def look(self) -> tuple[str, ...]:
        """Return the kinds of the processes that work at this moment; "" for one that does not count."""
        busy = []
        for one in self._processes.look():
            # A shell becomes the compiler that it runs, so its name is asked for at each look.
            kind = self._kind_of(program_name(one.pid))
            if kind:
                self._seen[one.pid, one.started] = kind, one.peak
            if not one.idle:
                busy.append(kind)
        return tuple(busy)

    @property
    def peaks(self) -> tuple[Peak, ...]:
        """The largest process of each kind, the largest first."""
        sizes: dict[str, list[int]] = {}
        for kind, size in self._seen.values():
            sizes.setdefault(kind, []).append(size)
        peaks = (Peak(kind=kind, bytes=max(each), count=len(each)) for kind, each in sizes.items())
        return tuple(sorted(peaks, key=lambda each: -each.bytes))


def swap_used() -> int:
    """Return the bytes in swap space, on Windows in page files; 0 where the system reports none."""
    if sys.platform != "win32":
        return MemoryLook()().swap_used
    import psutil

    with contextlib.suppress(OSError, RuntimeError):
        return int(psutil.swap_memory().used)
    return 0


def program_name(pid: int) -> str:
    """Return a process's file name ("cl.exe"), on Linux at most 15 letters; "" if it has ended."""
    if sys.platform == "win32":
        return _on_windows(pid).rpartition("\\")[2]
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text("utf-8", "replace").rstrip("\n")
    return ""


if sys.platform == "win32":

    def _on_windows(pid: int) -> str:
        kernel32 = ctypes.WinDLL("kernel32", use_last_error=True)
        kernel32.OpenProcess.restype = ctypes.c_void_p
        kernel32.QueryFullProcessImageNameW.argtypes = (
            ctypes.c_void_p,
            ctypes.c_uint32,
            ctypes.c_wchar_p,
            ctypes.POINTER(ctypes.c_uint32),
        )
        kernel32.CloseHandle.argtypes = (ctypes.c_void_p,)
        process = kernel32.OpenProcess(_QUERY, False, pid)
        if not process:
            return ""
        try:
            size = ctypes.c_uint32(_LONGEST)
            name = ctypes.create_unicode_buffer(_LONGEST)
            succeeded = kernel32.QueryFullProcessImageNameW(process, 0, name, ctypes.byref(size))
            return name.value if succeeded else ""
        finally:
            kernel32.CloseHandle(process)
