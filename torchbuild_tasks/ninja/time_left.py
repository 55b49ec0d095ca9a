"""Estimate the seconds left of a build, from the history of its steps on this machine, else from rows.

    seconds so far * usual seconds of the steps that are left / seconds that the ended ones took

The usual seconds are corrected by what this build's steps really took against them, each part of the
build for itself: a compiler cache answers compiles and no links, a busy machine slows both, and protobuf
tells little of ATen. That correction is what Ninja's own %E lacks: it adds the times of its last log as they
are (status_printer.cc, Ninja 1.12 to 1.13), and a build on a busier day or out of a cache is then off by a
multiple.

A first build has no history. Its steps, which Ninja's graph names, cost what the rows of step_costs.toml say.
What they take now counts more than what others took an hour ago, when the machine may have had other work.
With a history it does not: the misses of a cache, which come in swarms, would be taken for the rest. A count
of steps would promise too little for hours, since the small files of third_party come first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from torchbuild_tasks.catalog.rows import StepCostRow
from torchbuild_tasks.model.history import History
from torchbuild_tasks.ninja.log import Step, kind_of
from torchbuild_tasks.ninja.progress import EARLY, short_path
from torchbuild_tasks.ninja.step_times import CACHEABLE, costs

_PRIOR: Final = 10.0  # weight of the prior cost, in mean steps
_HALF: Final = 600.0  # seconds: half-life of the weight of a step
_LEAST: Final = 1.0  # seconds; the estimate is never less before the end
_COMPILES, _OTHER = "compiles", "other"  # parts of what the history knows
# At its start a build may take so many times longer or shorter than the rows' costs say.
_SPREAD: Final = 2.0
_SEEN_ENOUGH: Final = 0.5  # share of the work after which the build's own times replace the rows' costs
_NEARLY: Final = 0.9


class TimeLeft:
    """The estimate of the time left, from the steps that have ended and Ninja's own count.

    Args:
        history: the step times on this machine; with an empty one there is no estimate before `expect`.
        rows: the costs of steps that are not in the history.
    """

    def __init__(self, history: History, rows: Sequence[StepCostRow] = ()) -> None:
        self._rows = rows
        self._usual = costs(history)
        self._part = {output: _COMPILES if _is_compile(output) else _OTHER for output in self._usual}
        self._guessed: set[str] = set()
        self._row: dict[str, float] = {}  # by part: the row's cost of one step
        self._total = 0
        self._done = 0
        self._steps: dict[tuple[float, float, str], Step] = {}
        self._began: float | None = None  # `now` when Ninja began
        self._last = 0.0  # `now` when the last step ended
        self._sum_up(set(self._usual))

    def _sum_up(self, waiting: set[str]) -> None:
        """Compute the sums of each part again: usual seconds left and ended, and actual seconds."""
        self._mean = sum(self._usual.values()) / len(self._usual) if self._usual else 0.0
        self._waiting = waiting
        self._left: dict[str, float] = defaultdict(float)
        self._ended: dict[str, float] = defaultdict(float)
        self._took: dict[str, float] = defaultdict(float)
        self._all_ended = self._all_took = self._newest = 0.0
        for output in waiting:
            self._left[self._part[output]] += self._usual[output]
        for step in self._steps.values():
            self._end(step)

    def expect(self, outputs: Iterable[str], built: Collection[str] = ()) -> None:
        """Set the outputs of the build, so that steps without a history are included by the rows.

        Args:
            outputs: of Ninja's graph; only those of compiles and links count.
            built: outputs that existed when the build began; not counted if only the rest is built.
        """
        new = {output: row for output in outputs if (row := _guess(output, self._rows))}
        scale = scale_of_rows(self._usual, self._rows)
        for output, row in new.items():
            if output not in self._usual:
                part = f"{row.kind} {row.path}"
                self._part[output] = part
                self._row[part] = row.seconds * scale
                self._usual[output] = row.seconds * scale
                self._guessed.add(output)
        waiting = set(self._usual)
        unbuilt = waiting.difference(built)
        if self._total and self._total * _NEARLY <= len(unbuilt) and len(unbuilt) < len(waiting):
            waiting = unbuilt
        self._sum_up(waiting)

    def set_progress(self, done: int, total: int) -> None:
        """Set Ninja's `[done/total]`."""
        self._done = done
        self._total = total

    def finish(self) -> None:
        """Mark every step as ended."""
        self._done = self._total

    @property
    def steps(self) -> tuple[int, int]:
        """Return how many steps ran and how many are left; 0 and 1 if Ninja shows no count."""
        return (self._done, self._total - self._done) if self._total else (0, 1)

    def add_steps(self, steps: Iterable[Step], now: float) -> None:
        """Add steps that the log shows as ended; `now` is a time of any clock, in seconds."""
        for step in steps:
            key = (step.start, step.end, step.command)
            if key in self._steps:
                continue  # a step with thousands of outputs has its lines appended in several writes
            self._steps[key] = step
            self._end(step)
            began = now - step.end
            self._began = began if self._began is None else min(self._began, began)
            self._last = now

    def _end(self, step: Step) -> None:
        part = self._part.get(step.output) or (_COMPILES if _is_compile(step.output) else _OTHER)
        if step.output in self._waiting:
            self._waiting.remove(step.output)
            self._left[part] -= self._usual[step.output]
        self._forget(step.end)
        usual = self._usual.get(step.output, self._mean)
        self._ended[part] += usual
        self._took[part] += step.seconds
        self._all_ended += usual
        self._all_took += step.seconds

    def _forget(self, end: float) -> None:
        """Reduce the weight of earlier steps, by the time that has passed since."""
        if end <= self._newest or not self._guessed:
            return
        weight = 0.5 ** ((end - self._newest) / _HALF)
        self._newest = end
        for sums in (self._ended, self._took):
            for part in sums:
                sums[part] *= weight

    @property
    def spread(self) -> float:
        """Return the factor by which the true value may differ from the estimate; 1 for known."""
        remaining = sum(self._usual[output] for output in self._waiting) or 1.0
        guessed = sum(self._usual[output] for output in self._waiting & self._guessed)
        seen = min(1.0, self._all_ended / (self._all_ended + remaining) / _SEEN_ENOUGH)
        return 1.0 + (_SPREAD - 1.0) * guessed / remaining * (1.0 - seen)

    def seconds_left(self, now: float) -> float | None:
        """Return the seconds from `now` to the last step's end; None while too little is known."""
        if self._total and self._done >= self._total:
            return 0.0
        took = self._all_took
        known = max(self._done, len(self._steps)) >= EARLY * self._total
        if not known or not self._usual or not took or self._began is None:
            return None
        total = (self._last - self._began) * self._work_left() / took
        # Subtract the time since the last step ended, which the running steps have used.
        return max(total - max(0.0, now - self._last), _LEAST, 0.05 * total)

    def _work_left(self) -> float:
        """Return the seconds of all steps left, at the speed of this build.

        A build after an edit runs a few of the steps that are known: then each counts in part. A step
        that is not known costs what all do on average.
        """
        pace = sum(self._took.values()) / (sum(self._ended.values()) or self._mean)
        known = sum(
            cost * self._ratio(part, 1.0 if part == _OTHER else pace) for part, cost in self._left.items()
        )
        if not self._total:
            return known
        steps_left = self._total - self._done
        unknown = steps_left - len(self._waiting)
        if unknown < 0:
            return known * steps_left / len(self._waiting)
        return known + unknown * self._mean * pace

    def _ratio(self, part: str, prior: float) -> float:
        """Return the actual seconds for a usual second; near the prior while few steps of the part ended."""
        weight = _PRIOR * self._row.get(part, self._mean)
        return (self._took[part] + prior * weight) / (self._ended[part] + weight)


def cost_row(output: str, rows: Iterable[StepCostRow]) -> StepCostRow | None:
    """Return the row with the cost of the step that makes this output."""
    kind = kind_of(output)
    path = short_path(output)
    return next((row for row in rows if row.kind in ("", kind) and path.startswith(row.path)), None)


def scale_of_rows(usual: Mapping[str, float], rows: Sequence[StepCostRow]) -> float:
    """Return the seconds on this machine for a second of the rows, from the steps with a history."""
    known = {output: row for output in usual if (row := _guess(output, rows))}
    weight = sum(row.seconds for row in known.values())
    return sum(usual[output] for output in known) / weight if weight else 1.0


def _guess(output: str, rows: Sequence[StepCostRow]) -> StepCostRow | None:
    kind = kind_of(output)
    if kind not in CACHEABLE and not (kind == "link" and "/" in output):
        return None  # a written file, or another name of a library
    return cost_row(output, rows)


def _is_compile(output: str) -> bool:
    return kind_of(output) in CACHEABLE
