"""Seconds left of a build, from what its steps took on this machine before.

    seconds so far * usual seconds of the steps that are left / seconds that the ended ones took

The usual seconds are corrected by what this build's steps really took against them, compiles and all
other steps apart: a compiler cache answers compiles and no links, and a busy machine slows both. That
correction is what Ninja's own %E lacks: it adds the times of its last log as they are (status_printer.cc,
Ninja 1.12 to 1.13), and a build on a busier day or out of a cache is then off by a multiple.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from torchbuild_tasks.model.history import History
from torchbuild_tasks.ninja.log import Step, kind_of
from torchbuild_tasks.ninja.progress import EARLY
from torchbuild_tasks.ninja.step_times import CACHEABLE, costs

_PRIOR: Final = 10.0  # mean steps by which the history is believed before this build shows otherwise
_LEAST: Final = 1.0  # seconds: until the end is there, there is something to do


class TimeLeft:
    """Feed it the steps that ended and the count that Ninja shows; ask it how long it takes still.

    Args:
        history: what this machine knows; with an empty one there is no answer.
    """

    def __init__(self, history: History) -> None:
        self._usual = costs(history)
        self._mean = sum(self._usual.values()) / len(self._usual) if self._usual else 0.0
        self._waiting = set(self._usual)
        # By whether a compiler cache can answer the step: usual seconds of what is left and of what
        # ended, and what the ended ones took.
        self._left = {True: 0.0, False: 0.0}
        for output, seconds in self._usual.items():
            self._left[_is_compile(output)] += seconds
        self._ended = {True: 0.0, False: 0.0}
        self._took = {True: 0.0, False: 0.0}
        self._total = 0
        self._done = 0
        self._seen: set[tuple[float, float, str]] = set()
        self._began: float | None = None  # `now` when Ninja began
        self._last = 0.0  # `now` when the last step ended

    def counted(self, done: int, total: int) -> None:
        """Take in Ninja's `[done/total]`."""
        self._done, self._total = done, total

    @property
    def steps(self) -> tuple[int, int]:
        """Return how many steps ran and how many are to come; where nothing counts them, 0 and 1."""
        return (self._done, self._total - self._done) if self._total else (0, 1)

    def finished(self, steps: Iterable[Step], now: float) -> None:
        """Take in steps that the log shows as ended; `now` is any clock in seconds."""
        for step in steps:
            key = (step.start, step.end, step.command)
            if key in self._seen:
                continue  # the lines of a step with thousands of outputs come in pieces
            self._seen.add(key)
            compiles = _is_compile(step.output)
            usual = self._usual.get(step.output)
            if step.output in self._waiting:
                self._waiting.remove(step.output)
                self._left[compiles] -= self._usual[step.output]
            self._ended[compiles] += self._mean if usual is None else usual
            self._took[compiles] += step.seconds
            began = now - step.end
            self._began = began if self._began is None else min(self._began, began)
            self._last = now

    def left(self, now: float) -> float | None:
        """Return the seconds from `now` to the last step's end; None while too little is known."""
        if self._total and self._done >= self._total:
            return 0.0
        took = sum(self._took.values())
        known = max(self._done, len(self._seen)) >= EARLY * self._total
        if not known or not self._usual or not took or self._began is None:
            return None
        whole = (self._last - self._began) * self._work_left() / took
        # Since the last step ended, time has passed for those that run; so much of the answer is over.
        return max(whole - max(0.0, now - self._last), _LEAST, 0.05 * whole)

    def _work_left(self) -> float:
        """Return the seconds of all steps that are left, as this build goes.

        A build after an edit runs a few of the steps that are known: then each counts in part. A step
        that is not known costs what all do on average.
        """
        pace = sum(self._took.values()) / (sum(self._ended.values()) or self._mean)
        known = self._left[True] * self._ratio(True, pace) + self._left[False] * self._ratio(False, 1.0)
        if not self._total:
            return known
        steps_left = self._total - self._done
        unknown = steps_left - len(self._waiting)
        if unknown < 0:
            return known * steps_left / len(self._waiting)
        return known + unknown * self._mean * pace

    def _ratio(self, compiles: bool, prior: float) -> float:
        """Return the seconds now for a usual second; while such steps have shown little, the prior."""
        weight = _PRIOR * self._mean
        return (self._took[compiles] + prior * weight) / (self._ended[compiles] + weight)


def _is_compile(output: str) -> bool:
    return kind_of(output) in CACHEABLE
