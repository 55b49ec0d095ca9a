"""A build over time: steps in lanes and by kind, the longest chain, and a trace for a browser."""

from __future__ import annotations

import heapq
import statistics
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from torchbuild_tasks.ninja.build_file import BuildFile
from torchbuild_tasks.ninja.log import Step, kind_of
from torchbuild_tasks.ninja.progress import short_path
from torchbuild_tasks.ninja.schedule import Job, longest_chain

_TOUCH: Final = 0.005  # seconds: Ninja's log has whole milliseconds, and starts a step a little later


class LaneStep(msgspec.Struct, frozen=True):
    """A step and the lane that it is drawn in; steps of a lane do not overlap."""

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
    """Steps that each waited for the one before, by the graph or, without one, by their times."""

    steps: tuple[Step, ...]
    by: str

    @property
    def seconds(self) -> float:
        """Return the duration with unlimited cores."""
        return sum(step.seconds for step in self.steps)


def lanes(steps: Sequence[Step]) -> list[LaneStep]:
    """Put each step into the first lane that is free when it starts."""
    busy: list[tuple[float, int]] = []
    free: list[int] = []
    drawn = []
    for step in sorted(steps, key=lambda each: (each.start, each.end)):
        while busy and busy[0][0] <= step.start:
            heapq.heappush(free, heapq.heappop(busy)[1])
        lane = heapq.heappop(free) if free else len(busy)
        heapq.heappush(busy, (step.end, lane))
        drawn.append(LaneStep(step, lane))
    return drawn


def wall_seconds(steps: Sequence[Step]) -> float:
    """Return the seconds from the first start to the last end."""
    return max(step.end for step in steps) - min(step.start for step in steps) if steps else 0.0


def slowest(steps: Sequence[Step], count: int) -> list[Step]:
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


def seconds_alone(steps: Sequence[Step]) -> float:
    """Return the seconds with exactly one running step, which more cores cannot shorten."""
    changes = sorted([(step.start, 1) for step in steps] + [(step.end, -1) for step in steps])
    seconds = 0.0
    running = 0
    last = 0.0
    for at, change in changes:
        seconds += at - last if running == 1 else 0.0
        running, last = running + change, at
    return seconds


def critical_path(steps: Sequence[Step], graph: BuildFile | None) -> Chain:
    """Return the longest chain of steps that wait for each other.

    With the graph it is the longest one through it. Without, it goes back from the last end: to the
    step that ended last before this one started, which may only have left it a free core.
    """
    if graph is not None and (chain := _by_graph(steps, graph)):
        return Chain(chain, "graph")
    return Chain(tuple(_by_times(steps)), "times")


def _by_graph(steps: Sequence[Step], graph: BuildFile) -> tuple[Step, ...]:
    named = {output: step for step in steps for output in step.outputs or (step.output,)}
    edges = [graph.edges[index] for index in graph.find_needed_edges(graph.targets)]
    ran = [next((named[output] for output in edge.outputs if output in named), None) for edge in edges]
    at = {output: place for place, edge in enumerate(edges) for output in edge.outputs}
    jobs = [
        Job(
            name=edge.outputs[0],
            order=place,
            # The graph has no cycle; Ninja refuses one.
            before=tuple({at[name] for name in edge.inputs if at.get(name, place) < place}),
            here=step.seconds if step else 0.0,
        )
        for place, (edge, step) in enumerate(zip(edges, ran, strict=True))
    ]
    return tuple(step for place in longest_chain(jobs) if (step := ran[place]))


def _by_times(steps: Sequence[Step]) -> list[Step]:
    by_end = sorted((step for step in steps if step.seconds > 0), key=lambda step: step.end)
    chain = by_end[-1:]
    for step in reversed(by_end[:-1]):
        if step.end <= chain[-1].start + _TOUCH and step.start < chain[-1].start:
            chain.append(step)
    return chain[::-1]


def trace_events(
    drawn: Sequence[LaneStep], title: str, stages: Sequence[tuple[str, float]]
) -> dict[str, Any]:
    """Return the build as Chrome's trace: complete events in microseconds, a thread for each lane.

    Args:
        title: what the process is called.
        stages: the tool's own stages with their seconds, one after the other, as a second process.
    """
    events: list[dict[str, Any]] = [_meta("process_name", 1, 0, title), _meta("process_name", 2, 0, "stages")]
    count = max((each.lane for each in drawn), default=-1) + 1
    events += [_meta("thread_name", 1, lane, f"lane {lane + 1}") for lane in range(count)]
    zero = min((each.step.start for each in drawn), default=0.0)
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
        for each in drawn
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
