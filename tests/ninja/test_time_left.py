"""The time left: against simulated builds whose true end is known."""

from __future__ import annotations

import heapq
import random
import statistics
from collections.abc import Callable, Mapping, Sequence

import pytest

from tests.support.for_each import each_case
from torchbuild_tasks.catalog.rows import StepCostRow
from torchbuild_tasks.model.history import History
from torchbuild_tasks.ninja.log import Step
from torchbuild_tasks.ninja.time_left import TimeLeft


def run(seconds: Mapping[str, float], jobs: int = 2) -> list[Step]:
    """What Ninja would log: each step starts when a lane is free, by their order; sorted by their end."""
    free = [0.0] * jobs
    steps = []
    for output, took in seconds.items():
        start = heapq.heappop(free)
        heapq.heappush(free, start + took)
        steps.append(Step(output=output, start=start, end=start + took, command=output))
    return sorted(steps, key=lambda step: step.end)


def errors(steps: Sequence[Step], history: History) -> list[float]:
    """Relative errors after the first tenth of the time."""
    left, wall, found = TimeLeft(history), steps[-1].end, []
    for done, step in enumerate(steps, 1):
        left.set_progress(done, len(steps))
        left.add_steps([step], step.end)
        if wall / 10 <= step.end < wall:
            answer = left.seconds_left(step.end)
            assert answer is not None
            found.append(abs(answer - (wall - step.end)) / (wall - step.end))
    return found


def known(seconds: Mapping[str, float]) -> History:
    return History(steps={output: (each,) for output, each in seconds.items()})


def begun(seconds: Mapping[str, float], total: int) -> TimeLeft:
    """A build of so many steps whose first one, of two seconds, has just ended."""
    left = TimeLeft(known({"first.cpp.o": 2.0, **seconds}))
    left.add_steps([Step(output="first.cpp.o", start=0.0, end=2.0)], 2.0)
    left.set_progress(1, total)
    return left


def files(count: int = 300, seed: int = 1) -> dict[str, float]:
    chance = random.Random(seed)
    return {f"x.dir/f{number}.cpp.o": chance.lognormvariate(1, 1) for number in range(count)}


def changed(seconds: Mapping[str, float], change: Callable[[], float]) -> dict[str, float]:
    return {output: each * change() for output, each in seconds.items()}


@each_case("together", [0.5, 1.0, 2.0])
def test_a_machine_of_another_speed_is_seen_after_the_first_tenth(together: float) -> None:
    chance = random.Random(2)
    past = files()
    now = changed(past, lambda: together * chance.lognormvariate(0, 0.3))
    assert statistics.median(errors(run(now), known(past))) <= 0.15


def test_big_files_at_the_end_are_reckoned_with() -> None:
    """Where a count of steps is wrong by the most: nine tenths are small, the rest is the work."""
    past = {f"x.dir/s{n}.cpp.o": 0.5 for n in range(270)} | {f"x.dir/b{n}.cpp.o": 40.0 for n in range(30)}
    assert statistics.median(errors(run(past), known(past))) <= 0.05


def test_a_build_out_of_the_cache() -> None:
    """The compiles are answered in a hundredth of their time, and the links take what they always do."""
    past = files() | {f"lib{n}.so": 10.0 for n in range(30)}
    now = {output: each * (1.0 if output.endswith(".so") else 0.01) for output, each in past.items()}
    order = list(now)
    random.Random(3).shuffle(order)
    assert statistics.median(errors(run({output: now[output] for output in order}), known(past))) <= 0.15


def test_compiles_that_were_answered_make_no_link_quicker() -> None:
    past = {f"x.dir/f{n}.cpp.o": 10.0 for n in range(20)} | {"lib.so": 30.0}
    left = TimeLeft(known(past))
    for number in range(20):
        left.add_steps([Step(output=f"x.dir/f{number}.cpp.o", start=number / 10, end=(number + 1) / 10)], 0.0)
    left.add_steps([Step(output="x.dir/last.cpp.o", start=2.0, end=2.1)], 2.1)
    left.set_progress(21, 22)
    answer = left.seconds_left(2.1)
    assert answer is not None and answer >= 20.0


def test_it_counts_down_while_a_step_runs() -> None:
    left = TimeLeft(known({"a.cpp.o": 1.0, "lib.so": 30.0}))
    left.add_steps([Step(output="a.cpp.o", start=0.0, end=1.0)], now=101.0)
    left.set_progress(1, 2)
    assert [left.seconds_left(now) for now in (101.0, 111.0, 126.0)] == pytest.approx([30.0, 20.0, 5.0])
    assert left.seconds_left(500.0) == pytest.approx(1.5)  # it takes longer than it ever did, and is not over


def test_unknown_steps_cost_the_average() -> None:
    past = dict.fromkeys((f"{n}.cpp.o" for n in range(10)), 2.0)
    assert begun(past, 16).seconds_left(2.0) == pytest.approx(30.0)


def test_the_first_step_of_many_tells_nothing() -> None:
    past = dict.fromkeys((f"{n}.cpp.o" for n in range(1800)), 10.0)
    assert begun(past, 1766).seconds_left(2.0) is None


def test_an_edit_runs_a_part_of_what_is_known() -> None:
    past = dict.fromkeys((f"{n}.cpp.o" for n in range(10)), 4.0)
    assert begun(past, 6).seconds_left(2.0) == pytest.approx(20.0)


def test_without_a_history_or_a_step_there_is_no_answer() -> None:
    left = TimeLeft(History())
    left.set_progress(0, 100)
    assert left.seconds_left(0.0) is None
    left.add_steps([Step(output="a.cpp.o", start=0.0, end=1.0)], now=1.0)
    assert left.seconds_left(1.0) is None
    assert TimeLeft(known({"a.o": 1.0})).seconds_left(0.0) is None


def test_the_end_is_zero_and_before_it_is_not() -> None:
    left = begun({}, 1)
    assert left.seconds_left(2.0) == 0.0
    left.set_progress(0, 1)
    assert left.seconds_left(3.9) == pytest.approx(1.0)


def test_a_step_that_is_reported_twice_counts_once() -> None:
    """Its lines come in pieces when it has thousands of outputs."""
    step = Step(output="gen.h", start=0.0, end=4.0, command="c")
    once, twice = (TimeLeft(known({"gen.h": 1.0, "a.o": 10.0})) for _ in range(2))
    for left, times in ((once, 1), (twice, 9)):
        left.add_steps([step] * times, 4.0)
        left.set_progress(1, 2)
    assert once.seconds_left(4.0) == twice.seconds_left(4.0) is not None


ROWS = (
    StepCostRow(path="third_party/", kind="C++", seconds=1.0, source=""),
    StepCostRow(path="", kind="C++", seconds=20.0, source=""),
    StepCostRow(path="", kind="link", seconds=2.0, source=""),
)
SMALL = [f"third_party/p/CMakeFiles/p.dir/f{number}.cc.o" for number in range(100)]
LARGE = [f"caffe2/CMakeFiles/torch_cpu.dir/__/aten/f{number}.cpp.o" for number in range(100)]


def first_build(history: History, *, built: Sequence[str] = (), total: int = 200) -> TimeLeft:
    left = TimeLeft(history, ROWS)
    left.set_progress(0, total)
    left.expect([*SMALL, *LARGE, "gen/version.h", "libp.a"], built)
    return left


def test_a_first_build_reckons_with_what_comes_later_by_the_rows() -> None:
    """The first quarter of the steps are small, on a machine half as fast as the one of the rows."""
    left = first_build(History())
    left.add_steps(
        [Step(output=each, start=n * 2.0, end=n * 2.0 + 2.0) for n, each in enumerate(SMALL[:50])], 100.0
    )
    left.set_progress(50, 200)
    assert left.seconds_left(100.0) == pytest.approx(50 * 2.0 + 100 * 40.0, rel=0.01)  # by the count: 300


def test_a_part_that_goes_otherwise_than_its_row_says_corrects_itself_alone() -> None:
    left = first_build(History())
    steps = [Step(output=each, start=n * 20.0, end=n * 20.0 + 20.0) for n, each in enumerate(LARGE[:80])]
    steps += [Step(output=each, start=1600.0 + n, end=1610.0 + n) for n, each in enumerate(SMALL[:80])]
    left.add_steps(sorted(steps, key=lambda step: step.end), 1700.0)
    left.set_progress(160, 200)
    answer = left.seconds_left(1700.0)
    assert answer == pytest.approx((20 * 20 + 20 * 10) * 1700 / 2400, rel=0.15)


def test_what_an_interrupted_build_has_built_costs_nothing_more() -> None:
    left = first_build(History(), built=SMALL, total=100)
    left.add_steps([Step(output=LARGE[0], start=0.0, end=20.0)], 20.0)
    left.set_progress(1, 100)
    assert left.seconds_left(20.0) == pytest.approx(99 * 20.0, rel=0.01)


def test_a_long_build_after_an_edit_still_knows_what_was_built_before() -> None:
    left = first_build(known(dict.fromkeys([*SMALL, *LARGE], 4.0)), built=[*SMALL, *LARGE], total=150)
    left.add_steps([Step(output=SMALL[0], start=0.0, end=4.0)], 4.0)
    left.set_progress(1, 150)
    left.set_progress(2, 150)
    assert left.seconds_left(4.0) == pytest.approx(148 * 4.0, rel=0.01)


def test_the_spread_falls_as_the_build_tells_what_its_steps_cost_and_is_none_with_a_history() -> None:
    assert first_build(known(dict.fromkeys([*SMALL, *LARGE], 4.0))).spread == pytest.approx(1.0)
    left = first_build(History())
    before = left.spread
    left.add_steps([Step(output=each, start=0.0, end=20.0, command=each) for each in LARGE[:30]], 20.0)
    assert before == pytest.approx(2.0) and 1.2 < left.spread < 1.6
    left.add_steps([Step(output=each, start=1.0, end=20.0, command=each) for each in LARGE[30:60]], 20.0)
    assert left.spread == pytest.approx(1.0)


def test_a_machine_that_has_less_other_work_since_is_believed_in_a_first_build() -> None:
    """An hour of files of 30 seconds, then half an hour of such files of 10."""
    names = [f"x.dir/f{number}.cpp.o" for number in range(600)]
    left = TimeLeft(History(), ROWS)
    left.expect(names)
    ends, now = [], 0.0
    for number, name in enumerate(names[:300]):
        took = 30.0 if number < 120 else 10.0
        ends.append(Step(output=name, start=now, end=now + took, command=name))
        now += took
    left.add_steps(ends, now)
    left.set_progress(300, 600)
    assert left.seconds_left(now) == pytest.approx(300 * 10.0, rel=0.15)  # by all that it saw: 5,400
