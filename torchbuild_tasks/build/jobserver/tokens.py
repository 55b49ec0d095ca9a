"""Decide from the memory how many jobs a build may run at this moment, and which compiles to suspend.

What is seen and what is ordered are plain tuples, for they are created many times a second while compilers
run. While memory is short those that grow wait, and never the largest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

# Share of the free memory that the other processes may together use until the next look.
_SHARE: Final = 3
# Half-life of a rate in seconds: processes allocate in steps.
_HALF: Final = 0.5
# Bytes a second below which a process counts as not growing.
_STILL: Final = 1 << 20
_MIB: Final = 1 << 20
# Bytes: a process that stays smaller is a shell or a tool, and says nothing about compiles.
_COMPILE: Final = 32 * _MIB
# With less memory than the table's size, a typical job counts as at least 1/_FEW of the largest.
_FEW: Final = 4
# Compiles that must have ended before their sizes replace the size of the table.
_KNOWN: Final = 4
# While more than 1/_HEAVY of the build is left, a job of the table's size may be among it.
_HEAVY: Final = 10
# Compiles after which the table's size has no weight any more.
_BELIEVED: Final = 16
# After n compiles the next may be larger than all by _UNSURE / n (1/n on average for uniform sizes).
_UNSURE: Final = 1.5
# Size of a compile that parses headers, as a share of the largest one's when it optimises.
_SMALL: Final = 8
# Factor on the average size, because jobs do not grow and end evenly.
_UNEVEN: Final = 1.2
# The reserve is at most this part (1/n) of the memory of the build.
_RESERVE: Final = 16
# Part (1/n) of the reserve that may be used at each look when no other memory is left.
_SPARE: Final = 32
# Compilers grow by up to a GB/s: the next look comes before the free memory can be used up.
_FILL: Final = 2 << 30
_SOONEST = 0.05
_LATEST = 0.5


class MemoryState(NamedTuple):
    """The memory of one moment, in bytes; None is unknown or, as a limit, none.

    `used` counts against `limit`, without the page cache that the kernel would drop. `full` is the
    percent of the last ten seconds in which all waited for memory (Linux:
    docs.kernel.org/accounting/psi.html).
    """

    available: int | None = None
    limit: int | None = None
    used: int | None = None
    full: float = 0.0
    swap_used: int = 0

    @property
    def room(self) -> int | None:
        """Bytes that may still be used: the free memory, within the limit."""
        if self.limit is None or self.used is None:
            return self.available
        inside = max(0, self.limit - self.used)
        return inside if self.available is None else min(self.available, inside)


class Running(NamedTuple):
    """A process of the build without children: a compiler, a linker, a generator.

    `started` orders them by age, `size` is what it has now and `peak` the most it ever had, in
    bytes; `held` is true for one that we stopped, `idle` for one that has used no CPU lately.
    """

    pid: int
    started: float
    size: int
    peak: int
    held: bool = False
    idle: bool = False


class Orders(NamedTuple):
    """The decision until the next look, in `wait` seconds: tokens to offer, processes to suspend."""

    tokens: int
    hold: frozenset[int] = frozenset()
    wait: float = 0.5


# (memory, processes, tokens offered, seconds of a monotonic clock) -> decision
Policy = Callable[[MemoryState, Sequence[Running], int, float], Orders]


def usable(state: MemoryState) -> int | None:
    """Return the bytes that the build may still use; fewer under memory pressure.

    Each percent of full pressure subtracts two percent: a machine that swaps also has free memory,
    but not for more jobs.
    """
    if state.room is None:
        return None
    return int(state.room * max(0.0, 1 - state.full / 50))


def wanted(state: MemoryState, *, cores: int, out: int, reserve: int, typical: int, in_use: int = 0) -> int:
    """Return the number of tokens to offer; the first job needs none, so one more can run.

    Args:
        state: the memory now.
        cores: jobs that there may be at most.
        out: tokens that are out now. One is added only when one and a half fit: no flapping.
        reserve: bytes that stay free.
        typical: bytes that a job takes.
        in_use: bytes that the jobs have already, which are not free and yet theirs.
    """
    room = usable(state)
    if room is None:
        return max(0, cores - 1)
    budget = room + in_use - reserve
    fitting = budget // max(1, typical) - 1
    if fitting > out:
        fitting = max(out, (budget - typical // 2) // max(1, typical) - 1)
    return max(0, min(cores - 1, fitting))


class _Life(NamedTuple):
    """The life of one process: its peak, and its size summed over the time that it ran."""

    peak: int
    byte_seconds: float
    seconds: float


class TokenPolicy:
    """The policy of a jobserver; it learns the memory of compiles from those that have ended.

    Args:
        cores: jobs that there may be at most.
        reserve: bytes to keep free; of a small limit a part.
        largest: bytes that one compile is thought to take at most, before any has ended.
        holds: whether processes can be held here. Without that, tokens go by the largest.
        to_come: says which part of the build has not begun. What is compiled first is light, so the tabled
            size is believed until little is to come; without an answer until enough have ended.
    """

    def __init__(
        self,
        *,
        cores: int,
        reserve: int,
        largest: int,
        holds: bool = True,
        to_come: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._to_come = to_come
        self._cores = cores
        self._reserve = reserve
        self._tabled = largest
        self._holds = holds
        self._alive: dict[tuple[int, float], _Life] = {}
        self._ended = 0
        self._all = _Life(0, 0.0, 0.0)
        self._growth = Growth()
        self._when = 0.0

    def __call__(self, state: MemoryState, running: Sequence[Running], tokens: int, now: float) -> Orders:
        """Return the decision until the next look."""
        self._learn(running, now)
        rates = self._growth.look(running, now)
        room = usable(state)
        if room is None:
            return Orders(tokens=self._cores - 1, wait=_LATEST)
        in_use = sum(one.size for one in running)
        budget = room + in_use
        reserve = min(self._reserve, budget // _RESERVE)
        # Not more than there is: otherwise no second job would ever start.
        largest = min(self.largest, budget * 5 // 6)
        free = room - reserve
        typical = self.typical
        if budget < self._tabled:  # not even one job of the table's size fits: one at a time, later a few
            typical = self._tabled if self._ended < _KNOWN else max(typical, largest // _FEW)
        number = wanted(state, cores=self._cores, out=tokens, reserve=reserve, typical=typical, in_use=in_use)
        spare_room = free_beside(running, free, largest)
        wait = min(_LATEST, max(_SOONEST, min(free - largest, spare_room) / max(_FILL, sum(rates.values()))))
        if not self._holds:
            return Orders(tokens=number, wait=wait)
        growth = {pid: rate * wait for pid, rate in rates.items()}
        spare = reserve // _SPARE
        likely = int(largest / (1 + self._unsure))
        hold = to_hold(running, free, largest=largest, likely=likely, growth=growth, spare=spare)
        return Orders(tokens=number, hold=hold, wait=wait)

    @property
    def largest(self) -> int:
        """Bytes that one compile may grow to; a larger margin while few compiles have ended."""
        known = int(self._peak * (1 + self._unsure))
        believed = max(0.0, 1 - self._ended / _BELIEVED, min(1.0, _HEAVY * self._to_come()))
        return max(known, int(self._peak + (self._tabled - self._peak) * believed))

    @property
    def _peak(self) -> int:
        return max(self._all.peak, *(life.peak for life in self._alive.values()), 0)

    @property
    def _unsure(self) -> float:
        return _UNSURE / max(self._ended, _KNOWN)

    @property
    def typical(self) -> int:
        """Bytes to count for one job: the average, or the maximum where processes cannot be suspended."""
        if not self._holds:
            return self.largest
        if self._ended < _KNOWN or not self._all.seconds:
            return self._tabled // _SMALL
        return int(_UNEVEN * self._all.byte_seconds / self._all.seconds)

    def _learn(self, running: Sequence[Running], now: float) -> None:
        passed = max(0.0, now - self._when)
        self._when = now
        alive = {}
        for one in running:
            before = self._alive.get((one.pid, one.started))
            ran = passed if before and not one.held and not one.idle else 0.0
            before = before or _Life(0, 0.0, 0.0)
            alive[one.pid, one.started] = _Life(
                max(before.peak, one.peak), before.byte_seconds + one.size * ran, before.seconds + ran
            )
        for key, life in self._alive.items():
            if key not in alive and life.peak >= _COMPILE:
                self._ended += 1
                self._all = _Life(
                    max(self._all.peak, life.peak),
                    self._all.byte_seconds + life.byte_seconds,
                    self._all.seconds + life.seconds,
                )
        self._alive = alive


class Growth:
    """The growth of each process in bytes a second; a suspended process keeps its last rate."""

    def __init__(self) -> None:
        self._seen: dict[tuple[int, float], Running] = {}
        self._rates: dict[tuple[int, float], float] = {}
        self._when = 0.0

    def look(self, running: Sequence[Running], now: float) -> dict[int, float]:
        """Return the rate of each process by its pid, from this look and the one before."""
        passed = max(0.001, now - self._when)
        self._when = now
        self._rates = {(one.pid, one.started): self._rate(one, passed) for one in running}
        self._seen = {(one.pid, one.started): one for one in running}
        return {pid: rate if rate >= _STILL else 0.0 for (pid, _), rate in self._rates.items()}

    def _rate(self, one: Running, passed: float) -> float:
        key = (one.pid, one.started)
        before = self._seen.get(key)
        if before is None:  # it reached that size within a second
            return float(one.size)
        if one.held or before.held:
            return self._rates[key]
        forgotten: float = 0.5 ** (passed / _HALF)
        return max((one.size - before.size) / passed, self._rates[key] * forgotten)


def free_beside(running: Sequence[Running], free: int, largest: int) -> int:
    """Return the bytes of `free` that are left after the largest process has grown to `largest`."""
    size = max((one.size for one in running if not one.idle), default=0)
    # A process already larger than expected may grow further.
    return free - max(size // 10, largest - size)


def to_hold(
    running: Sequence[Running],
    free: int,
    *,
    largest: int,
    likely: int,
    growth: Mapping[int, float],
    spare: int,
) -> frozenset[int]:
    """Return the processes that must wait until the next look.

    Args:
        running: all processes of the build without children; idle ones wait for others, and are
            not counted.
        free: bytes that may be used, without the reserve. With none left, all but the largest wait.
        largest: bytes that a process may grow to.
        likely: the largest size seen; the difference to `largest` is a margin that slow growth may use.
        growth: by pid, bytes by which each is expected to grow until the next look.
        spare: bytes by which the others may grow while that margin lasts.
    """
    jobs = sorted((one for one in running if not one.idle), key=lambda one: (-one.size, one.started, one.pid))
    if free <= 0:
        return frozenset(one.pid for one in jobs[1:])
    margin = free_beside(jobs, free, likely)
    allowed: float = max(0, free_beside(jobs, free, largest) // _SHARE, min(spare, margin))
    hold = set()
    for one in jobs[1:]:
        grows = growth.get(one.pid, 0)
        if grows <= allowed:
            allowed -= grows
        else:
            hold.add(one.pid)
    return frozenset(hold)
