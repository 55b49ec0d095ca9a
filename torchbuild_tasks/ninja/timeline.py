"""Keeps the history of step times: takes in a build, and says what a step costs and what changed."""

from __future__ import annotations

import heapq
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from torchbuild_tasks.model.facts import History, PastBuild
from torchbuild_tasks.ninja.log import Graph, Step, kind_of, longest_before
from torchbuild_tasks.ninja.progress import short_path
from torchbuild_tasks.values import replace

_TOUCH: Final = 0.005  # seconds: Ninja's log has whole milliseconds, and starts a step a little later


class Placed(msgspec.Struct, frozen=True):
    """A step and the lane that it is drawn in; no two of one lane overlap."""

    step: Step
    lane: int


class Kind(msgspec.Struct, frozen=True):
    """All steps of one kind, in seconds."""

    kind: str
    count: int
    total: float
    median: float
    longest: float


class Chain(msgspec.Struct, frozen=True):
    """Steps of which each waited for the one before, and how that is known: the graph or the times."""

    steps: tuple[Step, ...]
    by: str

    @property
    def seconds(self) -> float:
        """Say how long it takes with as many cores as one likes."""
        return sum(step.seconds for step in self.steps)


def lanes(steps: Sequence[Step]) -> list[Placed]:
    """Put each step into the first lane that is free when it starts."""
    busy: list[tuple[float, int]] = []
    free: list[int] = []
    placed = []
    for step in sorted(steps, key=lambda each: (each.start, each.end)):
        while busy and busy[0][0] <= step.start:
            heapq.heappush(free, heapq.heappop(busy)[1])
        lane = heapq.heappop(free) if free else len(busy)
        heapq.heappush(busy, (step.end, lane))
        placed.append(Placed(step, lane))
    return placed


def wall(steps: Sequence[Step]) -> float:
    """Return the seconds from the first start to the last end."""
    return max(step.end for step in steps) - min(step.start for step in steps) if steps else 0.0


def slowest(steps: Sequence[Step], count: int) -> list[Step]:
    """Return the steps that took longest."""
    return heapq.nlargest(count, steps, key=lambda step: (step.seconds, step.output))


def by_kind(steps: Sequence[Step]) -> list[Kind]:
    """Return totals of each kind, the greatest first."""
    times: dict[str, list[float]] = {}
    for step in steps:
        times.setdefault(kind_of(step.output), []).append(step.seconds)
    kinds = [
        Kind(kind=kind, count=len(each), total=sum(each), median=statistics.median(each), longest=max(each))
        for kind, each in times.items()
    ]
    return sorted(kinds, key=lambda each: -each.total)


def alone(steps: Sequence[Step]) -> float:
    """Return seconds during which exactly one step ran: what more cores cannot make shorter."""
    changes = sorted([(step.start, 1) for step in steps] + [(step.end, -1) for step in steps])
    found, running, last = 0.0, 0, 0.0
    for at, change in changes:
        found += at - last if running == 1 else 0.0
        running, last = running + change, at
    return found


def critical_path(steps: Sequence[Step], graph: Graph | None) -> Chain:
    """Return the longest chain of steps that wait for each other.

    With the graph it is the longest one through it. Without, it goes back from the last end: to the
    step that ended last before this one started, which may only have left it a free core.
    """
    if graph is not None:
        named = {output: step for step in steps for output in step.outputs or (step.output,)}
        chain = longest_before(graph, {output: step.seconds for output, step in named.items()})
        if chain:
            return Chain(tuple(named[output] for output in chain), "graph")
    return Chain(tuple(_by_times(steps)), "times")


def _by_times(steps: Sequence[Step]) -> list[Step]:
    by_end = sorted((step for step in steps if step.seconds > 0), key=lambda step: step.end)
    chain = by_end[-1:]
    for step in reversed(by_end[:-1]):
        if step.end <= chain[-1].start + _TOUCH and step.start < chain[-1].start:
            chain.append(step)
    return chain[::-1]


def trace_events(placed: Sequence[Placed], title: str, stages: Sequence[tuple[str, float]]) -> dict[str, Any]:
    """Return the build as Chrome's trace: complete events in microseconds, a thread for each lane.

    Args:
        placed: the steps in their lanes.
        title: what the process is called.
        stages: the tool's own stages with their seconds, one after the other, as a second process.
    """
    events: list[dict[str, Any]] = [_meta("process_name", 1, 0, title), _meta("process_name", 2, 0, "stages")]
    count = max((each.lane for each in placed), default=-1) + 1
    events += [_meta("thread_name", 1, lane, f"lane {lane + 1}") for lane in range(count)]
    zero = min((each.step.start for each in placed), default=0.0)
    events += [
        {
            "name": short_path(each.step.output),
            "cat": kind_of(each.step.output),
            "ph": "X",
            "pid": 1,
            "tid": each.lane,
            "ts": round((each.step.start - zero) * 1e6),
            "dur": round(each.step.seconds * 1e6),
            "args": {"output": each.step.output},
        }
        for each in placed
    ]
    at = 0.0
    for name, seconds in stages:
        events.append(
            {"name": name, "cat": "stage", "ph": "X", "pid": 2, "tid": 0}
            | {"ts": round(at * 1e6), "dur": round(seconds * 1e6)}
        )
        at += seconds
    return {"displayTimeUnit": "ms", "traceEvents": events}


def _meta(name: str, pid: int, tid: int, value: str) -> dict[str, Any]:
    return {"name": name, "ph": "M", "pid": pid, "tid": tid, "args": {"name": value}}


# ----------------


CACHEABLE: Final = frozenset({"C", "C++", "CUDA", "HIP", "assembler", "object"})
_KEPT_TIMES: Final = 4
_KEPT_BUILDS: Final = 10
# A warm compiler cache takes 0.2 to 8 % of a compile (ccache, sccache; measured on 1.13.1), 34 % for
# nvcc through sccache. A tenth tells a hit from a file that became smaller.
_HIT: Final = 0.1
TOO_SHORT: Final = 0.25  # seconds: below it, a hit and a small file look the same


class Difference(msgspec.Struct, frozen=True):
    """One step in this build and the last time that it really ran; None where it never did."""

    output: str
    before: float | None
    now: float | None


def is_hit(output: str, seconds: float, usual: float) -> bool:
    """Say whether a compile took so little of its usual time that a cache must have answered."""
    return kind_of(output) in CACHEABLE and usual >= TOO_SHORT and seconds < _HIT * usual


def cost(output: str, times: Sequence[float]) -> float:
    """Return seconds of a step that really runs: its newest time that was no cache hit."""
    usual = max(times, default=0.0)
    return next((each for each in times if not is_hit(output, each, usual)), usual)


def costs(history: History) -> dict[str, float]:
    """Return what each step that is known takes when it really runs: the middle of its times.

    The newest alone would carry on what other programs did to one build.
    """
    return {output: _middle(output, times) for output, times in history.steps.items()}


def _middle(output: str, times: Sequence[float]) -> float:
    usual = max(times, default=0.0)
    real = sorted(each for each in times if not is_hit(output, each, usual)) or [usual]
    return real[(len(real) - 1) // 2]


def remember(history: History, steps: Sequence[Step], build: PastBuild, *, graph: Graph | None) -> History:
    """Return the history with one more build; what the graph does not know any more is forgotten.

    Args:
        history: what was known.
        steps: what ran in this build.
        build: the build as a whole.
        graph: of the whole tree; None forgets nothing.
    """
    times = dict(history.steps)
    nothing_said = _first_hits(history, steps)
    for step in steps:
        if step.output not in nothing_said:
            times[step.output] = _merged(step, times.get(step.output, ()))
    if graph is not None and graph.outputs:
        there = graph.outputs
        ran = {step.output for step in steps if there.intersection(step.outputs)}
        times = {output: each for output, each in times.items() if output in there or output in ran}
    return replace(history, steps=times, builds=(build, *history.builds)[:_KEPT_BUILDS])


def _first_hits(history: History, steps: Sequence[Step]) -> set[str]:
    """Return compiles that ran for the first time, and were as quick as the hits of this build.

    Their time says nothing about what a compile takes; what is left out costs what such steps do on
    average. In a build that a cache mostly answered, that is most of them.
    """
    usual = costs(history)
    known = [step for step in steps if kind_of(step.output) in CACHEABLE and step.output in usual]
    answered = [step for step in known if is_hit(step.output, step.seconds, usual[step.output])]
    if len(answered) <= len(known) / 2:
        return set()
    slowest = max(step.seconds for step in answered)
    new = (step for step in steps if step.output not in usual and kind_of(step.output) in CACHEABLE)
    return {step.output for step in new if step.seconds <= slowest}


def _merged(step: Step, times: tuple[float, ...]) -> tuple[float, ...]:
    """Return the newest times, and one that was no hit, however many hits came since."""
    newest = (round(step.seconds, 3), *times)
    kept = newest[:_KEPT_TIMES]
    real = cost(step.output, newest)
    return kept if real in kept else (*kept[:-1], real)


def differences(history: History, steps: Iterable[Step]) -> list[Difference]:
    """Return what each step of a build took, and the last time it really ran; the greatest change first.

    The build itself may or may not be in the history already: a time that is exactly this step's
    counts as this build's.
    """
    found = []
    for step in steps:
        times = history.steps.get(step.output, ())
        earlier = times[1:] if times[:1] == (round(step.seconds, 3),) else times
        before = cost(step.output, earlier) if earlier else None
        found.append(Difference(step.output, before, step.seconds))
    return sorted(found, key=lambda each: -abs((each.now or 0.0) - (each.before or 0.0)))


def gone(history: History, graph: Graph | None) -> list[str]:
    """Return outputs that the history knows and nothing makes any more; empty when the graph is not known."""
    if graph is None or not graph.outputs:
        return []
    return sorted(output for output in history.steps if output not in graph.outputs)


def builds_before(history: History, started: str) -> tuple[PastBuild, ...]:
    """Return the builds that ended before this one started; all but the newest where that is not known."""
    if not started:
        return history.builds[1:]
    return tuple(build for build in history.builds if build.finished < started)


def hits(history: History, steps: Iterable[Step]) -> list[Step]:
    """Return the steps that a compiler cache must have answered, by their usual time."""
    usual = costs(history)
    return [step for step in steps if is_hit(step.output, step.seconds, usual.get(step.output, 0.0))]


def compiler_of(choices: Mapping[str, str]) -> str:
    """Return what tells two histories of a checkout apart: the plan's C++ compiler, and nvcc."""
    return " ".join(filter(None, (choices.get("CXX"), choices.get("CUDACXX"))))
