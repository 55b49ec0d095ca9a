"""Memory, processes and tokens of a jobserver on Linux, and the tokens on other POSIX systems.

The tokens are bytes in a named pipe, in a private folder that a later run removes if it is left. A byte in a
pipe has no owner: when a job ends, the build and we reach for the same one, and we get it about every second
time. Memory is read from /proc and cgroups; a process is held by SIGSTOP.
"""

from __future__ import annotations

import array
import contextlib
import os
import re
import select
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from torchbuild_tasks.build.jobserver.tokens import MemoryState, Running
from torchbuild_tasks.facts.machine import (
    MEMORY_FILES,
    NO_LIMIT,
    MemoryFiles,
    cgroup_levels,
    number_in,
    pairs_in,
)
from torchbuild_tasks.facts.probe import Probe

CAN_HOLD: Final = sys.platform == "linux" and Path("/proc/self/task").exists()
# Seconds without CPU time after which a process counts as waiting: for a lock, a server, a network.
_IDLE: Final = 2.0
_PAGE: Final = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
_PREFIX: Final = "torchbuild-jobs-"
_FIFO = "tokens"
_HELD = "held"
_LOCK = "lock"


if sys.platform != "win32":
    import fcntl
    import termios


class Tokens:
    """An empty pool of tokens.

    Args:
        folder: where its folder is made, instead of the one for temporary files.

    Raises:
        OSError: no pipe can be made there.
    """

    def __init__(self, folder: Path | None = None) -> None:
        parent = folder or Path(tempfile.gettempdir())
        if " " in str(parent):  # would be two words of MAKEFLAGS
            parent = Path("/tmp")
        sweep(parent)
        self.folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
        self._lock = os.open(self.folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        self._pipe: int | None = None
        self._noted: tuple[tuple[int, float], ...] = ()
        try:
            if sys.platform != "win32":
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.mkfifo(self.folder / _FIFO, 0o600)
                # Held open at both ends, so that the bytes outlive every client.
                self._pipe = os.open(self.folder / _FIFO, os.O_RDWR | os.O_NONBLOCK)
        except OSError:
            self.close()
            raise

    @property
    def auth(self) -> str:
        """Return the value of `--jobserver-auth=`."""
        return f"fifo:{self.folder / _FIFO}"

    def give_out(self, number: int) -> None:
        """Add tokens to the pool."""
        if self._pipe is not None and number > 0:
            os.write(self._pipe, b"+" * number)

    def take(self, timeout: float) -> bool:
        """Take a token out of the pool; false if none was free in time."""
        if self._pipe is None or not select.select([self._pipe], [], [], timeout)[0]:
            return False
        with contextlib.suppress(BlockingIOError):  # a job was quicker
            return os.read(self._pipe, 1) != b""
        return False

    def free(self) -> int:
        """Return how many tokens are free."""
        count = array.array("i", [0])
        if sys.platform != "win32" and self._pipe is not None:
            fcntl.ioctl(self._pipe, termios.FIONREAD, count)
        return count[0]

    def note_held(self, processes: tuple[tuple[int, float], ...]) -> None:
        """Record the suspended processes (pid and start), so that a later run can resume them."""
        if processes == self._noted:
            return
        self._noted = processes
        text = "".join(f"{pid} {started:.0f}\n" for pid, started in processes)
        with contextlib.suppress(OSError):
            (self.folder / _HELD).write_text(text, "ascii")

    def close(self) -> None:
        """Close and remove the pipe and its folder."""
        if self._pipe is not None:
            os.close(self._pipe)
            self._pipe = None
        _remove(self.folder)
        os.close(self._lock)


def sweep(parent: Path) -> None:
    """Remove the folders of killed runs, and resume the processes that they had suspended."""
    for folder in parent.glob(_PREFIX + "*"):
        with contextlib.suppress(OSError):
            about = folder.lstat()
            if about.st_uid == _uid() and folder.is_dir() and not folder.is_symlink():
                _sweep_one(folder)


def _sweep_one(folder: Path) -> None:
    """Remove the folder of a run that is over; raises OSError while it runs, for it holds its lock."""
    lock = os.open(folder / _LOCK, os.O_RDWR)
    try:
        if sys.platform != "win32":
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for line in _lines(folder / _HELD):
            pid, _, started = line.partition(" ")
            if start_of(int(pid)) == float(started):
                os.kill(int(pid), getattr(signal, "SIGCONT", 0))
        _remove(folder)
    finally:
        os.close(lock)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text("ascii").splitlines()
    except OSError:
        return []


def _remove(folder: Path) -> None:
    with contextlib.suppress(OSError):
        for name in (_FIFO, _HELD, _LOCK):
            (folder / name).unlink(missing_ok=True)
        folder.rmdir()


def _uid() -> int:
    if sys.platform == "win32":
        return 0
    return os.getuid()


# ---- processes


class Processes:
    """All descendants of this process and of the `also` processes, and those of them that are suspended.

    Args:
        also: returns the pids of other processes that work for the build; they are not counted themselves.
    """

    def __init__(self, also: Callable[[], Sequence[int]] = tuple) -> None:
        self._also = also
        self._held: dict[int, float] = {}
        self._busy: dict[int, tuple[int, float]] = {}  # pid -> CPU ticks, and when they last changed

    def look(self) -> list[Running]:
        """Return the processes without children, with their present state."""
        now = time.monotonic()
        running = [one for pid in self._leaves() if (one := self._read(pid, now))]
        alive = {one.pid for one in running}
        self._busy = {pid: seen for pid, seen in self._busy.items() if pid in alive}
        self._held = {pid: start for pid, start in self._held.items() if start_of(pid) == start}
        return running

    def hold(self, wanted: frozenset[int]) -> tuple[tuple[int, float], ...]:
        """Suspend exactly these processes and resume all others; return those suspended (pid, start)."""
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
            # A suspended process that has children by now must still be resumed.
            if not children or pid in self._held:
                yield pid

    def _read(self, pid: int, now: float) -> Running | None:
        fields = _stat(pid)
        if fields is None or fields[0] in {b"Z", b"X"}:
            return None
        ticks = int(fields[11]) + int(fields[12])
        size = int(fields[21]) * _PAGE
        if not size:  # exiting: its memory, and the record of its peak, are released already
            return None
        before = self._busy.get(pid)
        # It runs, or waits for a core or the disk: on a busy machine its ticks can stay the same for long.
        works = fields[0] in {b"R", b"D"}
        if before is None or before[0] != ticks or works or pid in self._held:
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
    """Return when a process was started, in the kernel's ticks; None where there is none."""
    fields = _stat(pid)
    return None if fields is None else float(fields[19])


def _stat(pid: int) -> list[bytes] | None:
    """Return the fields from the third one on: the second is a name that can hold anything.

    https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html
    """
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
    """Return the children of all its threads, for each thread has those that it started."""
    pids: list[int] = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{task}/children", "rb") as file:  # noqa: PTH123
                pids += map(int, file.read().split())
    return pids


def _send(pid: int, name: str) -> bool:
    with contextlib.suppress(OSError):
        os.kill(pid, getattr(signal, name))
        return True
    return False


# ---- memory


class MemoryLook:
    """Reads the memory at each call. `root` replaces the root of the file system in tests."""

    def __init__(self, root: Path | None = None) -> None:
        self._probe = Probe(environ={}, root=root)
        levels = cgroup_levels(self._probe, "memory")
        self._levels = tuple((level.folder, MEMORY_FILES[level.version]) for level in levels)
        pressures = (f"{level.folder}/memory.pressure" for level in levels if level.version == 2)
        self._pressure = next(filter(self._probe.exists, pressures), "/proc/pressure/memory")

    def __call__(self) -> MemoryState:
        """Read memory and limits; limits can change at any time."""
        info = pairs_in(self._probe.read("/proc/meminfo"))
        limits = [pair for folder, names in self._levels for pair in self._limits(folder, names)]
        limit, used = min(limits, key=lambda pair: pair[0] - pair[1], default=(None, None))
        available = info.get("MemAvailable")
        return MemoryState(
            available=None if available is None else available * 1024,
            limit=limit,
            used=used,
            full=_stalled(self._probe.read(self._pressure) or ""),
            swap_used=(info.get("SwapTotal", 0) - info.get("SwapFree", 0)) * 1024,
        )

    def _limits(self, folder: str, names: MemoryFiles) -> Iterator[tuple[int, int]]:
        """Yield each limit of one cgroup with the bytes in use."""
        values = [number_in(self._probe.read(f"{folder}/{name}")) for name in names.limits]
        limits = [value for value in values if value is not None and value < NO_LIMIT]
        if limits:
            used = number_in(self._probe.read(f"{folder}/{names.used}")) or 0
            used = max(0, used - self._cache(folder, names))
            yield from ((value, used) for value in limits)

    def _cache(self, folder: str, names: MemoryFiles) -> int:
        """Return the bytes of page cache that no program has mapped: headers read, objects written.

        They count as used, and the kernel drops them before it kills a process.
        """
        stat = pairs_in(self._probe.read(f"{folder}/memory.stat"))
        files = stat.get(f"{names.prefix}inactive_file", 0) + stat.get(f"{names.prefix}active_file", 0)
        return max(0, files - stat.get(names.mapped, 0))


def _stalled(text: str) -> float:
    """Return the percent in `full avg10=0.12 avg60=...`.

    https://docs.kernel.org/accounting/psi.html
    """
    match = re.search(r"(?m)^full avg10=([\d.]+)", text)
    return float(match[1]) if match else 0.0
