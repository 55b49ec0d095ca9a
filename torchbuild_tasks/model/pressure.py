"""What the jobserver sees of a running build, and what it is told to do: plain values of a moment.

They are tuples, for they are made many times a second beside the compilers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple


class MemoryState(NamedTuple):
    """The memory of one moment, in bytes; None is unknown or, as a limit, none.

    `used` counts against `limit`, without the page cache that the kernel would drop. `some` and
    `full` are the percent of the last ten seconds in which some, or all, waited for memory
    (Linux: docs.kernel.org/accounting/psi.html).
    """

    available: int | None = None
    limit: int | None = None
    used: int | None = None
    some: float = 0.0
    full: float = 0.0
    swap_used: int = 0

    @property
    def room(self) -> int | None:
        """Bytes that may still be taken: what is free, within the limit."""
        if self.limit is None or self.used is None:
            return self.available
        inside = max(0, self.limit - self.used)
        return inside if self.available is None else min(self.available, inside)


class Running(NamedTuple):
    """A process of the build that has no children: a compiler, a linker, a generator.

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
    """What to do until the next look, in `wait` seconds: tokens to have out, processes to hold."""

    tokens: int
    hold: frozenset[int] = frozenset()
    wait: float = 0.5


# (memory, processes, tokens that are out, seconds on any steady clock) -> what to do
Policy = Callable[[MemoryState, Sequence[Running], int, float], Orders]
