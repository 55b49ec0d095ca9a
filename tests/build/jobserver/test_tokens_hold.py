"""Which compiles are suspended: never the largest, never a waiting one, and only those that grow."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from torchbuild_tasks.build.jobserver.tokens import Growth, Running, free_beside, to_hold

MIB = 1 << 20
BYTES = st.integers(0, 1 << 42)
FREE = st.integers(-(1 << 42), 1 << 42)
JOBS = st.lists(
    st.builds(
        Running,
        pid=st.integers(1, 10_000),
        started=st.floats(0, 1e9),
        size=BYTES,
        peak=BYTES,
        held=st.booleans(),
        idle=st.booleans(),
    ),
    unique_by=lambda job: job.pid,
    max_size=12,
)


RATES = st.dictionaries(st.integers(1, 10_000), st.floats(0, 1e12))


def running(*sizes: int) -> list[Running]:
    return [Running(number, number, size, size) for number, size in enumerate(sizes)]


@given(running=JOBS, free=FREE, largest=BYTES, likely=BYTES, growth=RATES, spare=BYTES)
def test_one_active_process_always_runs(
    running: list[Running], free: int, largest: int, likely: int, growth: dict[int, float], spare: int
) -> None:
    """The largest active process is never suspended, nor one that waits for another."""
    held = to_hold(running, free, largest=largest, likely=likely, growth=growth, spare=spare)
    working = {job.pid: job for job in running if not job.idle}
    assert held <= working.keys()
    if working:
        assert max(working.values(), key=lambda job: (job.size, -job.started, -job.pid)).pid not in held


@given(running=JOBS, free=st.integers(1, 1 << 42), largest=BYTES, growth=RATES)
def test_what_is_not_suspended_grows_less_than_is_left(
    running: list[Running], free: int, largest: int, growth: dict[int, float]
) -> None:
    """In addition to the largest one's need until the next look, which is reserved for it."""
    held = to_hold(running, free, largest=largest, likely=largest, growth=growth, spare=0)
    working = sorted((job for job in running if not job.idle), key=lambda job: (-job.size, job.started))
    grows = sum(growth.get(job.pid, 0) for job in working[1:] if job.pid not in held)
    assert grows <= max(0, free_beside(running, free, largest)) + 1


def test_one_that_does_not_grow_is_not_suspended() -> None:
    assert to_hold(
        running(100, 900, 600), 10, largest=1000, likely=1000, growth={0: 5, 1: 5}, spare=0
    ) == frozenset({0})


def test_without_any_room_only_the_largest_goes_on() -> None:
    none = to_hold(running(100, 900, 600), 0, largest=1000, likely=1000, growth={}, spare=50)
    assert none == {0, 2}


def test_the_larger_ones_may_grow_first() -> None:
    growth = {0: 30.0, 1: 30.0, 2: 30.0}
    assert to_hold(running(100, 900, 600), 190, largest=1000, likely=1000, growth=growth, spare=0) == {0}


def test_slow_growth_may_use_what_the_largest_only_perhaps_needs() -> None:
    three, slow = running(100, 900, 600), {0: 10.0}
    assert to_hold(three, 200, largest=1200, likely=1000, growth=slow, spare=20) == frozenset()
    assert to_hold(three, 200, largest=1200, likely=1100, growth=slow, spare=20) == {0}
    assert to_hold(three, 200, largest=1200, likely=1000, growth={0: 30.0}, spare=20) == {0}


def test_one_that_waits_for_another_is_no_job() -> None:
    waits = Running(1, 1, 900, 900, idle=True)
    assert to_hold([waits, *running(500)], 0, largest=1000, likely=1000, growth={}, spare=0) == frozenset()
    assert free_beside([waits, *running(500)], 600, 1000) == 100


def one(size: int, held: bool = False) -> list[Running]:
    return [Running(1, 0.0, size * MIB, size * MIB, held=held)]


def test_growth_is_bytes_a_second_and_fades() -> None:
    growth = Growth()
    growth.look(one(100), 10.0)
    growth.look(one(100), 20.0)
    assert growth.look(one(200), 20.5) == {1: 200 * MIB}
    (rate,) = growth.look(one(200), 21.0).values()  # memory comes in steps: this is no rest yet
    assert round(rate) == 100 * MIB
    assert growth.look(one(200), 26.0) == {1: 0}


def test_one_that_is_suspended_keeps_the_rate_that_it_had() -> None:
    growth = Growth()
    growth.look(one(100), 1.0)
    growth.look(one(400), 2.0)
    for second in (3.0, 4.0, 5.0):
        assert growth.look(one(400, held=True), second) == {1: 300 * MIB}
    assert growth.look(one(400), 5.1) == {1: 300 * MIB}  # it was only let go on just now
    assert growth.look(one(400), 12.0) == {1: 0}


def test_slow_growth_is_growth_and_hardly_any_is_none() -> None:
    """A compile that optimises creeps, and eight of them are a room full in a minute."""
    growth = Growth()
    growth.look([Running(1, 0.0, 10 * MIB, 0), Running(2, 0.0, 10 * MIB, 0)], 1.0)
    seen = growth.look([Running(1, 0.0, 30 * MIB, 0), Running(2, 0.0, 11 * MIB, 0)], 11.0)
    assert seen == {1: 2 * MIB, 2: 0}
