"""Simulate a run of Ninja: when each job runs, for given cores, memory and servers.

There is no randomness, so the same jobs have the same schedule. Jobs start in Ninja's order (Plan of its
build.cc): from 1.12 on the job with the most dependents first, before that in the order of build.ninja. A
pool counts a job from the time when it could start, as Ninja does.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Mapping, Sequence

import msgspec

_HERE = 0
_AWAY = 1


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A step: `before` are the indexes of its prerequisites, each smaller than its own.

    It takes `here` seconds of a core of this machine, then `away` of a server's, and `memory` bytes here
    meanwhile. `order` is Ninja's count of it, `pool` "" for none; a `phony` one takes nothing.
    """

    name: str
    order: int
    before: tuple[int, ...] = ()
    here: float = 0.0
    away: float = 0.0
    memory: int = 0
    pool: str = ""
    phony: bool = False

    @property
    def seconds(self) -> float:
        """Return the duration without other jobs."""
        return self.here + self.away


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """A simulated machine: `jobs` is Ninja's -j, `memory` bytes (None for no limit), `servers` their cores.

    `depths` are those of pools; `chains` says whether jobs with many behind them go first.
    """

    cores: int
    jobs: int
    servers: int = 0
    memory: int | None = None
    depths: Mapping[str, int] = msgspec.field(default_factory=dict)
    chains: bool = True


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """The result: `memory` is the peak of all running jobs, `chain` the longest chain, `ends` by job.

    `bounds` are the seconds that each limit alone makes it take: critical path, cores, pools …
    """

    wall: float
    memory: int
    ends: tuple[float, ...]
    chain: tuple[int, ...]
    bounds: Mapping[str, float]


def simulate(jobs: Sequence[Job], machine: Machine) -> Schedule:
    run = _Run(jobs, machine)
    run.play()
    return Schedule(
        wall=run.now,
        memory=run.most,
        ends=tuple(run.ends),
        chain=(chain := longest_chain(jobs)),
        bounds=_bounds(jobs, machine, sum(jobs[index].seconds for index in chain)),
    )


def longest_chain(jobs: Sequence[Job]) -> tuple[int, ...]:
    """Return the chain of jobs, each waiting for the one before, with the longest total time."""
    ends: list[float] = []
    for job in jobs:
        ends.append(job.seconds + max((ends[each] for each in job.before), default=0.0))
    at = max(range(len(jobs)), key=lambda each: ends[each], default=None)
    chain = []
    while at is not None:
        chain.append(at)
        at = max(jobs[at].before, key=lambda each: ends[each], default=None)
    return tuple(each for each in reversed(chain) if jobs[each].seconds > 0)


def _bounds(jobs: Sequence[Job], machine: Machine, chain: float) -> dict[str, float]:
    bounds = {"critical path": chain, "cores": sum(job.here for job in jobs) / machine.cores}
    if machine.servers:
        bounds["jobs"] = sum(job.seconds for job in jobs) / machine.jobs
        bounds["servers"] = sum(job.away for job in jobs) / machine.servers
    if machine.memory:
        bounds["memory"] = sum(min(job.memory, machine.memory) * job.here for job in jobs) / machine.memory
    for pool, depth in machine.depths.items():
        if work := sum(job.seconds for job in jobs if job.pool == pool) / (depth or 1):
            bounds[f"pool {pool}"] = work if depth else 0.0
    return bounds


class _Run:
    """One run; `now` is the clock, in seconds since its start."""

    def __init__(self, jobs: Sequence[Job], machine: Machine) -> None:
        self.now = 0.0
        self.most = 0
        self.ends = [0.0] * len(jobs)
        self._jobs = jobs
        self._machine = machine
        self._left = [len(set(job.before)) for job in jobs]
        self._behind: list[list[int]] = [[] for _ in jobs]
        for index, job in enumerate(jobs):
            for each in set(job.before):
                self._behind[each].append(index)
        self._rank = self._ranks()
        self._ready: list[tuple[int, int, int]] = []
        self._delayed: dict[str, list[tuple[int, int, int]]] = {}
        self._in_pool: dict[str, int] = {}
        self._running = 0
        self._memory = 0
        self._free = [machine.cores, machine.servers]
        self._waiting = (deque[int](), deque[int]())
        self._events: list[tuple[float, int, int, int]] = []
        self._count = 0

    def _ranks(self) -> list[tuple[int, int, int]]:
        """Return the sort key of each job: the length of its longest chain to the end, then its order."""
        weights = [0] * len(self._jobs)
        for index in range(len(self._jobs) - 1, -1, -1):
            behind = max((weights[each] for each in self._behind[index]), default=0)
            weights[index] = behind + (not self._jobs[index].phony)
        chains = self._machine.chains
        return [(-weights[at] if chains else 0, job.order, at) for at, job in enumerate(self._jobs)]

    def play(self) -> None:
        for index, left in enumerate(self._left):
            if not left:
                self._make_ready(index)
        for pool in self._delayed:
            self._from_pool(pool)
        self._start()
        while self._events:
            self.now, _, index, where = heapq.heappop(self._events)
            self._leave(index, where)
            self._start()

    def _make_ready(self, index: int) -> None:
        pool = self._jobs[index].pool
        if self._machine.depths.get(pool):
            heapq.heappush(self._delayed.setdefault(pool, []), self._rank[index])
        else:
            heapq.heappush(self._ready, self._rank[index])

    def _from_pool(self, pool: str) -> None:
        waiting = self._delayed.get(pool, [])
        while waiting and self._in_pool.get(pool, 0) < self._machine.depths[pool]:
            heapq.heappush(self._ready, heapq.heappop(waiting))
            self._in_pool[pool] = self._in_pool.get(pool, 0) + 1

    def _start(self) -> None:
        """Start jobs in their order while cores and memory allow, as Ninja does; one may always run."""
        while self._ready and self._running < self._machine.jobs:
            index = self._ready[0][2]
            job = self._jobs[index]
            limit = self._machine.memory
            if limit is not None and self._running and self._memory + job.memory > limit:
                return
            heapq.heappop(self._ready)
            if job.phony:
                self._finish(index)
                continue
            self._running += 1
            self._memory += job.memory
            self.most = max(self.most, self._memory)
            self._enter(index, _HERE)

    def _enter(self, index: int, where: int) -> None:
        if not self._free[where]:
            self._waiting[where].append(index)
            return
        self._free[where] -= 1
        self._count += 1
        job = self._jobs[index]
        seconds = job.away if where else job.here
        heapq.heappush(self._events, (self.now + seconds, self._count, index, where))

    def _leave(self, index: int, where: int) -> None:
        self._free[where] += 1
        if self._waiting[where]:
            self._enter(self._waiting[where].popleft(), where)
        job = self._jobs[index]
        if where == _HERE and job.away:
            self._enter(index, _AWAY)
            return
        self._running -= 1
        self._memory -= job.memory
        self._finish(index)

    def _finish(self, index: int) -> None:
        self.ends[index] = self.now
        pool = self._jobs[index].pool
        if self._machine.depths.get(pool):
            self._in_pool[pool] -= 1
        for each in self._behind[index]:
            self._left[each] -= 1
            if not self._left[each]:
                self._make_ready(each)
        for name in self._delayed:
            self._from_pool(name)
