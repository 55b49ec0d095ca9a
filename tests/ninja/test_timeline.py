"""Lanes, the slowest, the critical path, the trace."""

from __future__ import annotations

import json
import random

from tests.ninja.test_build_file import small
from torchbuild_tasks.ninja.build_file import parse_build_file
from torchbuild_tasks.ninja.log import Step
from torchbuild_tasks.ninja.timeline import (
    by_kind,
    critical_path,
    lanes,
    seconds_alone,
    slowest,
    trace_events,
    wall_seconds,
)


def step(output: str, start: float, end: float) -> Step:
    return Step(output=output, start=start, end=end, outputs=(output,))


GRAPH = parse_build_file(
    lambda name: "build lib.so: LINK a.cpp.o\nbuild a.cpp.o: CXX a.cpp || gen.h\nbuild gen.h: GEN\n"
)
STEPS = [
    step("gen.h", 0, 2),
    step("b.cpp.o", 0, 9),
    step("a.cpp.o", 2, 6),
    step("c.cpp.o", 6, 10),
    step("lib.so", 10, 11),
]


def test_no_two_steps_of_a_lane_overlap_and_no_lane_is_wasted() -> None:
    chance = random.Random(4)
    steps = []
    for number in range(500):
        start = chance.uniform(0, 100)
        steps.append(step(f"{number}.o", start, start + chance.uniform(0, 5)))
    placed = lanes(steps)
    assert len(placed) == 500
    most = max(
        sum(other.start <= each.start < other.end for other in steps) for each in steps if each.seconds > 0
    )
    assert max(each.lane for each in placed) + 1 == most
    for lane in range(most):
        mine = [each.step for each in placed if each.lane == lane]
        assert all(one.end <= other.start for one, other in zip(mine, mine[1:], strict=False))


def test_a_lane_is_free_at_the_moment_when_its_step_ends() -> None:
    assert [each.lane for each in lanes([step("a", 0, 5), step("b", 5, 6)])] == [0, 0]


def test_the_path_through_the_graph_is_what_waits_for_each_other() -> None:
    chain = critical_path(STEPS, GRAPH)
    assert [each.output for each in chain.steps] == ["gen.h", "a.cpp.o", "lib.so"]
    assert (chain.by, chain.seconds) == ("graph", 7)


def test_the_path_leads_through_the_longest_of_several_and_a_circle_is_passed_over() -> None:
    seconds = {"a.o": 3.0, "b.o": 9.0, "gen.h": 7.0, "lib.so": 2.0}

    def chain(**changed: float) -> list[str]:
        steps = [step(output, 0, each) for output, each in {**seconds, **changed}.items()]
        return [each.output for each in critical_path(steps, small()).steps]

    assert chain() == ["gen.h", "a.o", "lib.so"]
    assert chain(**{"b.o": 11.0}) == ["b.o", "lib.so"]
    circle = parse_build_file(lambda name: "build all: phony a\nbuild a: X b\nbuild b: X a\n")
    assert critical_path([step("a", 0, 1)], circle).seconds == 1


def test_without_the_graph_it_goes_back_by_the_times() -> None:
    chain = critical_path(STEPS, None)
    assert [each.output for each in chain.steps] == ["gen.h", "a.cpp.o", "c.cpp.o", "lib.so"]
    assert chain.by == "times"
    assert critical_path([], None).steps == ()


def test_a_graph_that_knows_none_of_the_steps_is_no_help() -> None:
    assert critical_path([step("x.o", 0, 1)], GRAPH).by == "times"


def test_figures() -> None:
    assert wall_seconds(STEPS) == 11 and wall_seconds([]) == 0
    assert seconds_alone(STEPS) == 2  # the end of c.cpp.o, and the link
    assert [each.output for each in slowest(STEPS, 2)] == ["b.cpp.o", "c.cpp.o"]
    first = by_kind(STEPS)[0]
    assert (first.kind, first.count, first.total, first.median, first.longest) == ("C++", 3, 17, 4, 9)


def test_the_trace_is_what_perfetto_reads() -> None:
    trace = json.loads(json.dumps(trace_events(lanes(STEPS), "torch", [("compile", 12.5), ("verify", 1.0)])))
    whole = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert len(whole) == len(STEPS) + 2
    link = next(event for event in whole if event["name"] == "lib.so")
    assert (link["pid"], link["tid"], link["ts"], link["dur"]) == (1, 0, 10_000_000, 1_000_000)
    assert all(isinstance(event[key], int) for event in whole for key in ("ts", "dur", "pid", "tid"))
    verify = next(event for event in whole if event["name"] == "verify")
    assert (verify["pid"], verify["ts"]) == (2, 12_500_000)
    names = [event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "thread_name"]
    assert names == ["lane 1", "lane 2"]
