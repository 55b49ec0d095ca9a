"""Seconds left of a build, from what its steps took on this machine before.

    work that is left / steps at once, but for each chain of T seconds that ends the build:
    T + the work that must be done before that chain can begin / steps at once

The greatest of these is the answer: a lower bound of any schedule that real ones come close to. The
seconds of before are corrected by what this build's steps really took. A step that took a tenth or
less of its usual time was answered by a compiler cache: it says how many of the others will be, and
nothing about how long a compile takes.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from torchbuild_tasks.core.ninja_log import Step, kind_of
from torchbuild_tasks.core.step_history import CACHEABLE, TOO_SHORT, costs, is_hit
from torchbuild_tasks.model.history import History

_FORGET: Final = 0.99  # what the last 100 steps show counts most: other programs come and go
_FORGET_HITS: Final = 0.985  # whether a cache answers changes from one step to the next (.cpp, .cu)
_PRIOR: Final = 10.0  # mean steps by which the history is believed before this build says otherwise
_FEW: Final = 5.0  # steps of a kind after which its own share of hits counts more than that of all
_ROOT: Final = 0.5  # a machine that is slow at one kind of step is not as slow at another
_WINDOW: Final = 256
_LEAST: Final = 1.0  # seconds: until the end is there, there is something to do


@dataclass(slots=True)
class _Pace:
    """What this build's steps took against the history, newer ones counting more."""

    expected: float = 0.0  # seconds of steps that really ran, as the history has them
    took: float = 0.0
    asked: float = 0.0  # how many steps a cache could have answered
    answered: float = 0.0  # and how many of these it did
    answers: float = 0.0  # seconds that took
    roots: float = 0.0  # the square roots of what it would have taken

    def add(self, usual: float, took: float, *, hit: bool, cacheable: bool) -> None:
        """Take in a step that ended."""
        if hit:
            self.answers = self.answers * _FORGET + took
            self.roots = self.roots * _FORGET + math.sqrt(usual)
        else:
            self.expected = self.expected * _FORGET + usual
            self.took = self.took * _FORGET + took
        if cacheable:
            self.asked = self.asked * _FORGET_HITS + 1
            self.answered = self.answered * _FORGET_HITS + hit

    def ratio(self, prior: float, weight: float) -> float:
        """Seconds now for a second of before, with so much weight on the prior."""
        return (self.took + prior * weight) / (self.expected + weight) if self.expected + weight else prior

    def share(self, prior: float, weight: float) -> float:
        """The share of steps that a cache answers."""
        return (self.answered + prior * weight) / (self.asked + weight) if self.asked + weight else prior

    def answer(self, usual: float) -> float:
        """What an answer of the cache takes: it grows with the root of the compile's time.

        On 1.13.1 with ccache: 0.012 s for 0.6 s, 0.03 for 4.5, 0.07 for 15, 0.12 for 90.
        """
        return self.answers / self.roots * math.sqrt(usual) if self.roots else 0.0


@dataclass(slots=True)
class _Left:
    """The steps that are known and not yet seen: what each costs and what must follow it."""

    seconds: dict[str, float] = field(default_factory=dict)
    after: dict[str, tuple[float, float]] = field(default_factory=dict)


def _by_kind(outputs: Collection[str], known: Mapping[str, float]) -> dict[str, float]:
    """What each output costs; one that is not known costs what its kind does, on average."""
    times: dict[str, list[float]] = {}
    for output, seconds in known.items():
        times.setdefault(kind_of(output), []).append(seconds)
    means = {kind: sum(each) / len(each) for kind, each in times.items()}
    mean = sum(known.values()) / len(known) if known else 0.0
    return {each: known.get(each, means.get(kind_of(each), mean)) for each in outputs}


class TimeLeft:
    """Feed it the steps that ended and the count that Ninja shows; ask it how long it takes still.

    Args:
        history: what this machine knows; an empty one makes it count steps.
        jobs: how many steps may run at once; None when that is not known.
        expected: the outputs that this build will make, when that is known; those that the history
            does not have cost what their kind does. The size of a file says too little: on 1.13.1 it
            correlates with the compile time by 0.34 and narrows the spread by 6 %.
    """

    def __init__(
        self, history: History, *, jobs: int | None = None, expected: Collection[str] | None = None
    ) -> None:
        known = costs(history)
        self._usual: Mapping[str, float] = known
        wanted = known if expected is None else _by_kind(expected, known)
        after = {output: (each[0], each[1]) for output, each in history.after.items() if len(each) == 2}
        self._left = _Left(seconds=dict(wanted), after=after)
        # Those that most must follow come first, so that one walk finds every bound.
        self._order = sorted(wanted, key=lambda output: -sum(after.get(output, (0.0, 0.0))))
        self._mean = sum(known.values()) / len(known) if known else 0.0
        self._jobs = jobs or history.jobs or 0
        self._total, self._done = 0, 0
        self._seen: set[tuple[float, float, str]] = set()
        self._recent: deque[Step] = deque(maxlen=_WINDOW)
        self._all, self._kinds = _Pace(), dict[str, _Pace]()
        self._unknown = (0, 0.0)  # steps that the history does not have: how many, their seconds
        self._zero: float | None = None  # `now` when Ninja began

    def counted(self, done: int, total: int) -> None:
        """Ninja's `[done/total]`."""
        self._done, self._total = done, total

    def finished(self, steps: Iterable[Step], now: float) -> None:
        """Steps that the log shows as ended, in its order; `now` is any clock in seconds."""
        for step in steps:
            key = (step.start, step.end, step.command)
            if key in self._seen:
                continue
            self._seen.add(key)
            self._recent.append(step)
            self._learn(step)
            began = now - step.end
            self._zero = began if self._zero is None else min(self._zero, began)

    def _learn(self, step: Step) -> None:
        usual = self._usual.get(step.output)
        self._left.seconds.pop(step.output, None)
        if usual is None:
            count, seconds = self._unknown
            self._unknown = (count + 1, seconds + step.seconds)
            return
        kind = kind_of(step.output)
        hit = is_hit(step.output, step.seconds, usual)
        for pace in (self._all, self._kinds.setdefault(kind, _Pace())):
            pace.add(usual, step.seconds, hit=hit, cacheable=kind in CACHEABLE and usual >= TOO_SHORT)

    def left(self, now: float) -> float | None:
        """Seconds from `now` to the last step's end; None before anything can be said."""
        steps_left = self._total - self._done
        if self._total and steps_left <= 0:
            return 0.0
        if not self._usual:
            return self._by_count(steps_left, now)
        lanes, running = self._lanes(), self._running(now)
        bound = self._bound(steps_left, lanes, sum(running))
        last = self._recent[-1].end if self._recent else 0.0
        since = 0.0 if self._zero is None else max(0.0, now - self._zero - last)
        # Since the last step ended, time has passed for those that run; so much of the answer is over.
        return max(bound - since, _LEAST, 0.05 * bound)

    def _by_count(self, steps_left: int, now: float) -> float | None:
        """Without a history: the rest goes like the last steps."""
        if not self._recent or not self._total or self._zero is None:
            return None
        first = min(step.start for step in self._recent)
        pace = (self._recent[-1].end - first) / len(self._recent)
        return max(pace * steps_left - max(0.0, now - self._zero - self._recent[-1].end), _LEAST)

    def _bound(self, steps_left: int, lanes: int, running: float) -> float:
        """The greatest of the bounds, over all chains; `running` is what the running steps have done."""
        share, ratio = self._all.share(0.0, 0.0), self._all.ratio(1.0, _PRIOR * self._mean)
        other_ratio = self._ratio("link")
        costs_now = self._costs_now()
        known = sum(costs_now.values())
        mean = self._mean * ratio * (1 - share) + share * self._all.answer(self._mean)
        grown = self._grown(steps_left, known, len(costs_now), mean)
        work = longest = 0.0
        for output, own in costs_now.items():
            work += own * grown
            chain, other = self._left.after.get(output, (0.0, 0.0))
            after = chain * (1 - share) * ratio + other * other_ratio if grown >= 1 else 0.0
            longest = max(longest, after + max(own, (work - min(running, work)) / lanes))
        return longest if costs_now else max(0.0, grown - running) / lanes

    def _costs_now(self) -> dict[str, float]:
        """Seconds to expect of each step that is left, those first that most must follow."""
        scales, found = self._scales(), {}
        for output in self._order:
            usual = self._left.seconds.get(output)
            if usual is not None:
                scale, hit = scales[kind_of(output)]
                found[output] = scale * usual + hit * self._all.answer(usual)
        return found

    def _grown(self, steps_left: int, work: float, known: int, mean: float) -> float:
        """By how much the work of known steps grows for those that nobody knows, or shrinks.

        A build after an edit runs a few of the steps that are known: then each counts in part. A step
        that nobody knows costs what such steps took so far, and before any did, the mean of all
        that are known. With no known step left this is the work of the unknown ones.
        """
        if not self._total or (known and steps_left < known):
            return steps_left / known if self._total else 1.0
        count, seconds = self._unknown
        usual = (seconds + _PRIOR * mean) / (count + _PRIOR)
        unknown = (steps_left - known) * usual
        return 1 + unknown / work if work else unknown

    def _scales(self) -> dict[str, tuple[float, float]]:
        """For each kind of step: seconds to expect for a second of before, and the share of hits."""
        share, scales = self._all.share(0.0, 0.0), {}
        for kind in {kind_of(output) for output in self._left.seconds}:
            pace = self._kinds.get(kind, _Pace())
            hit = pace.share(share, _FEW) if kind in CACHEABLE else 0.0
            scales[kind] = (self._ratio(kind) * (1 - hit), hit)
        return scales

    def _ratio(self, kind: str) -> float:
        """Seconds now for a second of before, of one kind; while it has shown little, the root of all."""
        weight = _PRIOR * self._mean
        together = self._all.ratio(1.0, weight)
        return self._kinds.get(kind, _Pace()).ratio(together**_ROOT, weight)

    def _lanes(self) -> int:
        """Steps at once: the most in the recent past, or what was said while little is known."""
        changes = sorted(
            change
            for step in self._recent
            for change in ((step.start, 1), (step.end, -1))
            if step.seconds > 0
        )
        most = running = 0
        for _, change in changes:
            running += change
            most = max(most, running)
        if self._jobs and len(self._recent) < 4 * self._jobs:
            return self._jobs
        return max(1, min(most, self._jobs or most))

    def _running(self, now: float) -> list[float]:
        """How long the steps have run that run when the last one ended: each began as another ended."""
        ends = [step.end for step in self._recent]
        lanes = self._lanes()
        return [ends[-1] - end for end in ends[-lanes:]] if ends else []
