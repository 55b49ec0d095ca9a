"""The history: what a step costs, what a cache hit may not change, what is forgotten and compared."""

from __future__ import annotations

from tests.ninja.test_build_file import small
from torchbuild_tasks.model.history import History, PastBuild
from torchbuild_tasks.ninja.build_file import BuildFile
from torchbuild_tasks.ninja.log import Step
from torchbuild_tasks.ninja.step_times import (
    compiler_of,
    cost,
    costs,
    differences,
    find_removed_outputs,
    hits,
    remember,
)

BUILD = PastBuild(finished="2026-01-01T00:00:00+00:00", seconds=10.0, steps=3)


def step(output: str, seconds: float, start: float = 0.0) -> Step:
    return Step(output=output, start=start, end=start + seconds, outputs=(output,))


def learned(*builds: dict[str, float], graph: BuildFile | None = None) -> History:
    history = History()
    for build in builds:
        steps = [step(output, seconds) for output, seconds in build.items()]
        history = remember(history, steps, BUILD, graph=graph)
    return history


def test_one_build_next_to_other_work_is_no_new_usual_time() -> None:
    history = History(
        steps={"a.cpp.o": (90.0, 9.0, 0.1, 10.0), "lib.so": (50.0, 5.0), "b.cpp.o": (0.01, 4.0)}
    )
    assert costs(history) == {"a.cpp.o": 10.0, "lib.so": 5.0, "b.cpp.o": 4.0}


def test_the_newest_real_time_is_the_cost() -> None:
    assert cost("a.cpp.o", (4.0, 9.0)) == 4.0
    assert cost("a.cpp.o", (0.1, 9.0)) == 9.0  # the newest is a hit
    assert cost("lib.so", (0.1, 9.0)) == 0.1  # no cache links
    assert cost("a.cpp.o", ()) == 0.0


def test_a_hit_never_pushes_the_real_time_out() -> None:
    history = learned({"a.cpp.o": 9.0}, *[{"a.cpp.o": 0.05}] * 8)
    assert costs(history)["a.cpp.o"] == 9.0
    assert len(history.steps["a.cpp.o"]) == 4


def test_a_first_time_that_is_as_quick_as_this_builds_hits_says_nothing() -> None:
    history = learned({"a.cpp.o": 9.0, "b.cpp.o": 8.0}, {"a.cpp.o": 0.05, "b.cpp.o": 0.04, "new.cpp.o": 0.03})
    assert "new.cpp.o" not in history.steps
    again = learned({"a.cpp.o": 9.0}, {"a.cpp.o": 8.0, "small.cpp.o": 0.03})
    assert again.steps["small.cpp.o"] == (0.03,)


def test_what_the_graph_does_not_know_is_forgotten() -> None:
    history = learned({"a.o": 3.0, "old.o": 9.0}, graph=small())
    assert set(history.steps) == {"a.o"}
    assert set(learned({"a.o": 3.0, "old.o": 9.0}).steps) == {"a.o", "old.o"}
    known = learned({"a.o": 3.0, "b.o": 5.0, "old.o": 9.0})
    again = remember(known, [step("a.o", 2.0)], BUILD, graph=small())
    assert set(again.steps) == {"a.o", "b.o"}  # the graph has b.o, which did not have to run


def test_the_last_builds_are_kept_newest_first() -> None:
    history = History()
    for number in range(15):
        build = PastBuild(finished=str(number), seconds=1.0, steps=1)
        history = remember(history, [step("a.o", 1.0)], build, graph=None)
    assert [each.finished for each in history.builds] == [str(number) for number in range(14, 4, -1)]


def test_differences_with_and_without_this_build_in_the_history() -> None:
    before = {"a.cpp.o": 4.0, "b.cpp.o": 1.0}
    now = {"a.cpp.o": 9.0, "b.cpp.o": 1.5, "c.cpp.o": 2.0}
    steps = [step(output, seconds) for output, seconds in now.items()]
    for history in (learned(before), learned(before, now)):
        found = [(each.output, each.before, each.now) for each in differences(history, steps)]
        assert found == [("a.cpp.o", 4.0, 9.0), ("c.cpp.o", None, 2.0), ("b.cpp.o", 1.0, 1.5)]


def test_hits_of_a_build() -> None:
    history = learned({"a.cpp.o": 9.0, "tiny.cpp.o": 0.1, "lib.so": 9.0})
    quick = [step("a.cpp.o", 0.1), step("tiny.cpp.o", 0.001), step("lib.so", 0.1)]
    assert [each.output for each in hits(history, quick)] == ["a.cpp.o"]


def test_gone_needs_the_graph() -> None:
    history = learned({"a.o": 1.0, "old.o": 1.0})
    assert find_removed_outputs(history, small()) == ["old.o"]
    assert find_removed_outputs(history, None) == []


def test_the_compilers_tell_histories_apart() -> None:
    assert compiler_of({"CXX": "/usr/bin/g++", "CUDACXX": "/c/nvcc", "CC": "gcc"}) == "/usr/bin/g++ /c/nvcc"
    assert compiler_of({}) == ""
