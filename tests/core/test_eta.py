"""The time left: against simulated builds whose true end is known."""

from __future__ import annotations

import heapq
import random
import statistics
from collections.abc import Callable, Mapping, Sequence

import pytest

from torchbuild_tasks.core.eta import TimeLeft
from torchbuild_tasks.core.ninja_log import Step
from torchbuild_tasks.model.history import History


def run(seconds: Mapping[str, float], jobs: int = 2) -> list[Step]:
    """What Ninja would log: each step starts when a lane is free, by their order; sorted by their end."""
    free = [0.0] * jobs
    steps = []
    for output, took in seconds.items():
        start = heapq.heappop(free)
        heapq.heappush(free, start + took)
        steps.append(Step(output=output, start=start, end=start + took, command=output))
    return sorted(steps, key=lambda step: step.end)


def errors(steps: Sequence[Step], history: History, jobs: int = 2) -> list[float]:
    """Relative errors after the first tenth of the time."""
    left, wall, found = TimeLeft(history, jobs=jobs), steps[-1].end, []
    for done, step in enumerate(steps, 1):
        left.counted(done, len(steps))
        left.finished([step], step.end)
        if wall / 10 <= step.end < wall:
            answer = left.left(step.end)
            assert answer is not None
            found.append(abs(answer - (wall - step.end)) / (wall - step.end))
    return found


def known(seconds: Mapping[str, float], after: Mapping[str, tuple[float, ...]] | None = None) -> History:
    return History(jobs=2, steps={output: (each,) for output, each in seconds.items()}, after=after or {})


def files(count: int = 300, seed: int = 1) -> dict[str, float]:
    chance = random.Random(seed)
    return {f"x.dir/f{number}.cpp.o": chance.lognormvariate(1, 1) for number in range(count)}


def changed(seconds: Mapping[str, float], change: Callable[[], float]) -> dict[str, float]:
    return {output: each * change() for output, each in seconds.items()}


@pytest.mark.parametrize("together", [0.5, 1.0, 2.0])
def test_a_machine_of_another_speed_is_seen_after_the_first_tenth(together: float) -> None:
    chance = random.Random(2)
    past = files()
    now = changed(past, lambda: together * chance.lognormvariate(0, 0.3))
    assert statistics.median(errors(run(now), known(past))) <= 0.15


def test_big_files_at_the_end_are_reckoned_with() -> None:
    """Where a count of steps is wrong by the most: nine tenths are small, the rest is the work."""
    past = {f"x.dir/s{n}.cpp.o": 0.5 for n in range(270)} | {f"x.dir/b{n}.cpp.o": 40.0 for n in range(30)}
    assert statistics.median(errors(run(past), known(past))) <= 0.05


def test_while_a_cache_answers_the_misses_do_not_become_cheap() -> None:
    """The first half are hits: what is left is then reckoned as hits, but no compile as cheaper."""
    past = files()
    hit = set(list(past)[:150])
    now = {output: 0.02 if output in hit else each for output, each in past.items()}
    steps = run(now)
    left = TimeLeft(known(past), jobs=2)
    later = []
    for done, step in enumerate(steps, 1):
        left.counted(done, len(steps))
        left.finished([step], step.end)
        if done > 220:
            later.append((left.left(step.end), steps[-1].end - step.end))
    wrong = [abs(answer - truth) / truth for answer, truth in later if answer and truth > 10]
    assert statistics.median(wrong) <= 0.25


def test_a_build_out_of_the_cache() -> None:
    past = files()
    now = changed(past, lambda: 0.01)
    steps = run(now)
    left = TimeLeft(known(past), jobs=2)
    for done, step in enumerate(steps[:60], 1):
        left.counted(done, len(steps))
        left.finished([step], step.end)
    answer, truth = left.left(steps[59].end), steps[-1].end - steps[59].end
    assert answer is not None and answer < 5 * truth
    assert answer < sum(list(past.values())[60:]) / 20


def test_never_below_the_longest_chain() -> None:
    """Sixty-four lanes have no work left but the chain: a link that must wait for one long compile."""
    past = {"x.dir/long.cpp.o": 100.0, "lib.so": 30.0} | {f"x.dir/f{n}.cpp.o": 1.0 for n in range(100)}
    history = known(past, {"x.dir/long.cpp.o": (0.0, 30.0)})
    left = TimeLeft(history, jobs=64)
    left.counted(0, len(past))
    assert left.left(0.0) == pytest.approx(130.0)


def test_work_before_a_chain_counts_with_the_chain() -> None:
    """All compiles must end before the link: the work of two lanes, and then the link alone."""
    past = {f"x.dir/f{n}.cpp.o": 1.0 for n in range(100)} | {"lib.so": 30.0}
    history = known(past, {f"x.dir/f{n}.cpp.o": (0.0, 30.0) for n in range(100)})
    left = TimeLeft(history, jobs=2)
    left.counted(0, len(past))
    assert left.left(0.0) == pytest.approx(80.0)


def test_it_counts_down_while_a_step_runs() -> None:
    left = TimeLeft(known({"a.cpp.o": 1.0, "lib.so": 30.0}), jobs=1)
    left.finished([Step(output="a.cpp.o", start=0.0, end=1.0)], now=101.0)
    left.counted(1, 2)
    assert [left.left(now) for now in (101.0, 111.0, 126.0)] == pytest.approx([30.0, 20.0, 5.0])
    assert left.left(500.0) == pytest.approx(1.5)  # it takes longer than it ever did, and is not over


def test_steps_that_nobody_knows_cost_what_the_others_do() -> None:
    past = files(100)
    left = TimeLeft(known(past), jobs=1)
    left.counted(0, 110)
    assert left.left(0.0) == pytest.approx(1.1 * sum(past.values()), rel=0.01)


def test_an_edit_runs_a_part_of_what_is_known() -> None:
    past = files(100)
    left = TimeLeft(known(past), jobs=1)
    left.counted(0, 10)
    assert left.left(0.0) == pytest.approx(sum(past.values()) / 10, rel=0.01)


def test_where_the_outputs_are_named_only_these_count() -> None:
    past = {"a.cpp.o": 5.0, "b.cpp.o": 7.0, "lib.so": 3.0}
    left = TimeLeft(known(past), jobs=1, expected=["b.cpp.o", "lib.so", "new.cpp.o"])
    left.counted(0, 3)
    assert left.left(0.0) == pytest.approx(7.0 + 3.0 + 6.0)  # the new one costs what C++ does


def test_without_a_history_the_last_steps_count() -> None:
    left = TimeLeft(History())
    assert left.left(0.0) is None
    left.counted(0, 100)
    assert left.left(0.0) is None
    for done, step in enumerate(run(dict.fromkeys(map(str, range(50)), 2.0), jobs=2), 1):
        left.counted(done, 100)
        left.finished([step], step.end)
    assert left.left(50.0) == pytest.approx(50.0)


def test_the_end_is_zero_and_before_it_is_not() -> None:
    left = TimeLeft(known({"a.o": 1.0}), jobs=1)
    left.counted(1, 1)
    assert left.left(0.0) == 0.0
    left.counted(0, 1)
    assert left.left(0.0) == pytest.approx(1.0)


def test_a_step_that_is_told_twice_counts_once() -> None:
    """Its lines come in pieces when it has thousands of outputs."""
    step = Step(output="gen.h", start=0.0, end=4.0, command="c")
    once, twice = (TimeLeft(known({"gen.h": 1.0, "a.o": 10.0}), jobs=1) for _ in range(2))
    for left, times in ((once, 1), (twice, 9)):
        left.finished([step] * times, 4.0)
        left.counted(1, 2)
    assert once.left(4.0) == twice.left(4.0)
