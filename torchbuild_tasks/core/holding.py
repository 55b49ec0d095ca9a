"""Which compiles wait while memory is short: those that grow, and never the largest.

What the largest may still need is kept free for it. So it ends, its memory is free again, and the
next largest goes on: a build that is held cannot get stuck. One that has its memory and does not
grow is not held either, for to hold it would free nothing; when it grows after all, the next look
sees it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from torchbuild_tasks.model.pressure import Running

# The others may together take this part of what is left until the next look, so it never ends.
_SHARE: Final = 3
# A rate that is not seen again is half forgotten after so many seconds: memory comes in steps.
_HALF: Final = 0.5
# Below this (bytes a second) it is no growth.
_STILL: Final = 1 << 20


class Growth:
    """How quickly each process grows, in bytes a second; a held one keeps the rate that it had."""

    def __init__(self) -> None:
        self._seen: dict[tuple[int, float], Running] = {}
        self._rates: dict[tuple[int, float], float] = {}
        self._when = 0.0

    def look(self, running: Sequence[Running], now: float) -> dict[int, float]:
        """Take in one look; the rate of each process by its pid."""
        passed, self._when = max(0.001, now - self._when), now
        self._rates = {(one.pid, one.started): self._rate(one, passed) for one in running}
        self._seen = {(one.pid, one.started): one for one in running}
        return {pid: rate if rate >= _STILL else 0.0 for (pid, _), rate in self._rates.items()}

    def _rate(self, one: Running, passed: float) -> float:
        key = (one.pid, one.started)
        before = self._seen.get(key)
        if before is None:  # it has got there in a second or less
            return float(one.size)
        if one.held or before.held:
            return self._rates[key]
        forgotten: float = 0.5 ** (passed / _HALF)
        return max((one.size - before.size) / passed, self._rates[key] * forgotten)


def left_beside(running: Sequence[Running], free: int, largest: int) -> int:
    """Bytes of `free` that are left when the largest process grows to `largest`."""
    size = max((one.size for one in running if not one.idle), default=0)
    # One that is larger than was thought is not done growing either.
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
    """The processes that must wait until the next look.

    Args:
        running: all processes of the build that have no children; those that use no CPU wait for
            others, and are not counted.
        free: bytes that may be taken, what is kept back already taken off. With none left all
            but the largest wait.
        largest: bytes that a process may come to have.
        likely: bytes that one has had; what `largest` is above it is a margin, and may go to slow growth.
        growth: by pid, bytes by which each is expected to grow until the next look.
        spare: bytes by which the others may grow while that margin lasts.
    """
    jobs = sorted((one for one in running if not one.idle), key=lambda one: (-one.size, one.started, one.pid))
    if free <= 0:
        return frozenset(one.pid for one in jobs[1:])
    margin = left_beside(jobs, free, likely)
    allowed: float = max(0, left_beside(jobs, free, largest) // _SHARE, min(spare, margin))
    hold = set()
    for one in jobs[1:]:
        grows = growth.get(one.pid, 0)
        if grows <= allowed:
            allowed -= grows
        else:
            hold.add(one.pid)
    return frozenset(hold)
