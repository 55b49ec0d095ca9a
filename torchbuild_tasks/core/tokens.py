"""How many jobs a build may run at this moment, and which of them wait: by memory alone.

A jobserver can give a token at any time, but gets one back only when a job ends, and not
surely then; and a compile takes most of its memory late. So tokens go by what compiles have while
they are small, and when those that run could fill the memory, some are held: stopped for a while.

The largest is never held, and what it may still need is kept free for it: it ends, its memory
is free again, and the next largest goes on. So a build that is held cannot get stuck.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from torchbuild_tasks.model.pressure import MemoryState, Orders, Running

_MIB: Final = 1 << 20
# A process that never had this much is a shell or a tool, and says nothing about compiles.
_COMPILE: Final = 32 * _MIB
# Compiles that must have ended before their sizes count more than the size that was tabled.
_KNOWN: Final = 6
# After n compiles the next may be larger than all by this over n (of evenly spread sizes 1/n on average).
_UNSURE: Final = 2
# A compile that parses headers has this share of what the largest takes when it optimises.
_SMALL: Final = 8
# Of the memory there is for the build, at most one part in so many is kept back.
_RESERVE: Final = 16
# With compilers of a GB/s of growth: how long the free memory lasts decides the next look.
_FILL: Final = 2 << 30
_SOONEST, _LATEST = 0.05, 0.5
# Growth for so many seconds fits between the decision to hold and its being carried out.
_AHEAD: Final = 0.25


def usable(state: MemoryState) -> int | None:
    """Bytes that may still be taken, less when the machine stands still for want of memory.

    Each percent of full pressure takes two from it: a machine that swaps has free memory,
    too, but not for more jobs.
    """
    if state.room is None:
        return None
    return int(state.room * max(0.0, 1 - state.full / 50))


def wanted(state: MemoryState, *, cores: int, held: int, reserve: int, typical: int, in_use: int = 0) -> int:
    """The number of tokens to have out; one job more can run, for the first needs no token.

    Args:
        state: the memory now.
        cores: jobs that there may be at most.
        held: tokens that are out now. One is added only when one and a half fit: no flapping.
        reserve: bytes that stay free.
        typical: bytes that a job takes.
        in_use: bytes that the jobs have already, which are not free and yet theirs.
    """
    room = usable(state)
    if room is None:
        return max(0, cores - 1)
    budget = room + in_use - reserve
    fitting = budget // max(1, typical) - 1
    if fitting > held:
        fitting = max(held, (budget - typical // 2) // max(1, typical) - 1)
    return max(0, min(cores - 1, fitting))


def to_hold(running: Sequence[Running], free: int, *, largest: int, slack: int) -> frozenset[int]:
    """The processes that must wait: none while the largest may grow to `largest` and `slack` is left.

    Where it is less, those with the most run, as many as could all grow to `largest` together.
    Processes that use no CPU wait for others, and are not counted.

    Args:
        running: all processes of the build that have no children.
        free: bytes that may be taken, what is kept back already taken off.
        largest: bytes that a process may come to have.
        slack: bytes that all others together may grow by until the next look.
    """
    jobs = sorted((job for job in running if not job.idle), key=lambda job: (-job.size, job.started, job.pid))
    if len(jobs) < 2:
        return frozenset()
    # One that is larger than was thought is not done growing either.
    left = free - max(jobs[0].size // 10, largest - jobs[0].size)
    if left >= 2 * slack:
        return frozenset()
    short, rest = left < slack, left
    for number, job in enumerate(jobs[1:], 1):
        rest -= max(0, largest - job.size)
        if rest < 0:
            return frozenset(each.pid for each in jobs[number:] if short or each.held)
    return frozenset()


class TokenPolicy:
    """What a jobserver asks at each look; learns from the compiles that end how much they take.

    Args:
        cores: jobs that there may be at most.
        reserve: bytes to keep free; of a small limit a tenth.
        largest: bytes that one compile is thought to take at most, before any has ended.
        holds: whether processes can be held here. Without that, tokens go by the largest.
    """

    def __init__(self, *, cores: int, reserve: int, largest: int, holds: bool = True) -> None:
        self._cores, self._reserve, self._tabled, self._holds = cores, reserve, largest, holds
        self._peaks: list[int] = []
        self._alive: dict[tuple[int, float], int] = {}
        self._last: tuple[float, int] | None = None

    def __call__(self, state: MemoryState, running: Sequence[Running], tokens: int, now: float) -> Orders:
        """Decide until the next look."""
        self._learn(running)
        room = usable(state)
        if room is None:
            return Orders(tokens=self._cores - 1, wait=_LATEST)
        in_use = sum(job.size for job in running)
        budget = room + in_use
        reserve = min(self._reserve, budget // _RESERVE)
        # More than there is cannot be kept free for one, or there would never be another.
        largest = min(self.largest, budget * 2 // 3)
        typical = self._tabled // _SMALL if self._holds else self.largest
        number = wanted(
            state, cores=self._cores, held=tokens, reserve=reserve, typical=typical, in_use=in_use
        )
        slack = max(reserve // 2, int(self._growth(room, now) * _AHEAD))
        hold = to_hold(running, room - reserve, largest=largest, slack=slack)
        wait = min(_LATEST, max(_SOONEST, (room - reserve - largest) / _FILL))
        return Orders(tokens=number, hold=hold if self._holds else frozenset(), wait=wait)

    @property
    def largest(self) -> int:
        """Bytes that one compile may come to have: of few that ended little is known of the next."""
        seen = max((*self._peaks, *self._alive.values()), default=0)
        known = int(seen * (1 + _UNSURE / max(len(self._peaks), _KNOWN)))
        return known if len(self._peaks) >= _KNOWN else max(known, self._tabled)

    def _learn(self, running: Sequence[Running]) -> None:
        now = {(job.pid, job.started): job.peak for job in running}
        self._peaks += [peak for key, peak in self._alive.items() if key not in now and peak >= _COMPILE]
        self._alive = now

    def _growth(self, room: int, now: float) -> float:
        """Bytes a second by which the room has shrunk since the last look."""
        last, self._last = self._last, (now, room)
        if last is None or now <= last[0]:
            return 0.0
        return max(0.0, (last[1] - room) / (now - last[0]))
