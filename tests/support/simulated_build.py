"""A build in numbers: compiles that grow, Ninja 1.13 that takes tokens, a memory that ends.

So that the policy of the jobserver can be held to what it promises without a clock: in seconds
of its own, the same ones on every machine.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final, Literal

import msgspec

from torchbuild_tasks.build.jobserver.tokens import MemoryState, Running, TokenPolicy

MIB: Final = 1 << 20
GIB: Final = 1 << 30
STEP: Final = 0.05
_START: Final = 25 * MIB

Shape = Literal["late", "steady", "waves", "creep"]


@dataclass
class Job:
    """A compile of `seconds` that comes to have `peak` bytes.

    It grows late (small until 0.6 of its time, at its peak from 0.8 on), steadily from the start, in
    waves, giving memory back between two passes, or creeps: as cc1plus does, quickly while it reads and
    slowly while it optimises.
    """

    pid: int
    peak: int
    seconds: float
    shape: Shape = "late"
    done: float = 0.0
    held: bool = False
    started: float = 0.0
    most: int = 0

    @property
    def size(self) -> int:
        """Bytes that it has now."""
        part = self.done / self.seconds
        if self.shape == "late":
            grown = ramp(part, 0.6, 0.8)
        elif self.shape == "steady":
            grown = 0.85 * ramp(part, 0, 0.55) + 0.15 * ramp(part, 0.55, 0.9)
        elif self.shape == "creep":
            grown = 0.7 * ramp(part, 0, 0.35) + 0.3 * ramp(part, 0.35, 0.95)
        else:
            grown = 0.5 * ramp(part, 0, 0.3) if part < 0.45 else 0.3 + 0.7 * ramp(part, 0.6, 0.75)
        return int(_START + grown * (self.peak - _START))


def ramp(part: float, low: float, high: float) -> float:
    """From 0 at `low` to 1 at `high`."""
    if part <= low:
        return 0.0
    return 1.0 if part >= high else (part - low) / (high - low)


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """Simulated seconds, and the least room there ever was; where it is less than none, it ended there."""

    seconds: float
    least: int
    held: float = 0.0

    @property
    def died(self) -> bool:
        """Whether the kernel would have killed one."""
        return self.least < 0


def jobs(
    seed: int = 24,
    count: int = 24,
    low: int = 200,
    high: int = 1500,
    shape: Shape = "late",
    seconds: float = 6,
) -> list[Job]:
    """Compiles with peaks of so many MiB that take about so many seconds."""
    dice = random.Random(seed)
    return [
        Job(100 + number, dice.randint(low, high) * MIB, seconds * dice.uniform(0.7, 1.3), shape)
        for number in range(count)
    ]


def plain(todo: list[Job], limit: int, parallel: int) -> Outcome:
    """What `ninja -jN` does."""
    return _run(todo, limit, parallel, None)


def ours(
    todo: list[Job],
    limit: int,
    cores: int,
    *,
    holds: bool = True,
    largest: int = 2 * GIB,
    counted: bool = False,
) -> Outcome:
    """What Ninja does with our tokens; `counted` where it says how many compiles are to come."""
    left = list(todo)
    policy = TokenPolicy(
        cores=cores,
        reserve=GIB,
        largest=largest,
        holds=holds,
        to_come=(lambda: sum(job.done < job.seconds for job in left) / len(left)) if counted else lambda: 0.0,
    )
    return _run(todo, limit, cores, policy)


def _run(todo: list[Job], limit: int, parallel: int, policy: TokenPolicy | None) -> Outcome:
    waiting, running = list(todo), list[Job]()
    dice = random.Random(7)
    tokens = wanted = 0 if policy else parallel - 1
    clock, next_look, held, least, fill = 0.0, 0.0, 0.0, limit, True
    while waiting or running:
        sizes = [job.size for job in running]
        room = limit - sum(sizes)
        least = min(least, room)
        if least < 0:
            break
        if policy and clock >= next_look:
            state = MemoryState(available=limit * 4, limit=limit, used=limit - room)
            for job, size in zip(running, sizes, strict=True):
                job.most = max(job.most, size)
            seen = [
                Running(job.pid, job.started, size, job.most, job.held)
                for job, size in zip(running, sizes, strict=True)
            ]
            orders = policy(state, seen, tokens, clock)
            # What is not held by a job can be taken back at once, the others when a job ends.
            wanted = orders.tokens
            tokens = max(wanted, min(tokens, max(0, len(running) - 1)))
            next_look = clock + orders.wait
            for job in running:
                job.held = job.pid in orders.hold
        while fill and waiting and len(running) < tokens + 1:
            running.append(waiting.pop(0))
            running[-1].started = clock
        for job in running:
            job.done += 0 if job.held else STEP
            held += STEP if job.held else 0
        ended = [job for job in running if job.done >= job.seconds]
        running = [job for job in running if job not in ended]
        # Ninja looks for tokens at the start and whenever a job ends; of what a job gives back it is
        # every second time quicker than we are.
        fill = bool(ended)
        tokens -= sum(tokens > wanted and dice.random() < 0.5 for _ in ended)
        clock += STEP
    return Outcome(seconds=clock, least=least, held=held)
