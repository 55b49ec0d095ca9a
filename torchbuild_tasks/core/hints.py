"""What a person should hear while a build runs, at the moment when it matters and only then."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from torchbuild_tasks.catalog import GIB

_LONG: Final = 20 * 60.0  # seconds of compiling after which the next build is worth a thought
_SWAP: Final = GIB // 2  # a system moves a little of what nobody uses out at any time
_ALONE: Final = 60.0  # seconds

NO_CACHE: Final = (
    "20 minutes without a compiler cache: with one, the next clean build takes a small part of this. "
    "Install sccache or ccache."
)
SWAPPING: Final = (
    "Memory runs out: the system has begun to swap, which slows every step down. "
    "Ctrl-C and the same command with fewer --jobs goes on from here."
)
ONE_BUSY: Final = (
    "One core works now and the others wait: what is left is a chain of steps that need each other. "
    "A faster linker shortens it; more --jobs does not."
)


@dataclass(frozen=True, kw_only=True)
class State:
    """A build under way. `elapsed` is seconds of compiling, `swap` bytes in use now and at its start.

    `running` is how many steps run now (None when not known), `alone` for how many seconds it has been one;
    `left` the seconds that are left. `said` are the hints that were given.
    """

    elapsed: float
    cache: bool
    jobs: int
    swap: int | None = None
    swap_at_start: int | None = None
    running: int | None = None
    alone: float = 0.0
    left: float | None = None
    said: frozenset[str] = frozenset()


def hint(state: State) -> str | None:
    """The most urgent hint that was not given yet, if there is a reason for one."""
    urgent = ((SWAPPING, _swaps(state)), (NO_CACHE, _slow(state)), (ONE_BUSY, _waits(state)))
    return next((text for text, reason in urgent if reason and text not in state.said), None)


def _swaps(state: State) -> bool:
    if state.swap is None or state.swap_at_start is None:
        return False
    return state.swap - state.swap_at_start > _SWAP


def _slow(state: State) -> bool:
    return not state.cache and state.elapsed >= _LONG


def _waits(state: State) -> bool:
    """One step for a minute, and as much again to come: too late to say it of the last link."""
    several = state.jobs > 1 and state.running == 1
    return several and state.alone >= _ALONE and (state.left or 0.0) >= _ALONE
