"""The policy of the jobserver: its properties, and whole builds in numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.simulated_build import GIB, MIB, Outcome, jobs, ours, plain
from torchbuild_tasks.core.tokens import TokenPolicy, to_hold, usable, wanted
from torchbuild_tasks.model.pressure import MemoryState, Running

BYTES = st.integers(0, 1 << 42)
PERCENT = st.floats(0, 100)
NUMBER = st.integers(0, 200)


def state(room: int | None, full: float = 0.0) -> MemoryState:
    return MemoryState(available=room, full=full)


@pytest.mark.parametrize(
    ("available", "limit", "used", "room"),
    [
        (None, None, None, None),
        (5, None, None, 5),
        (50, 30, 10, 20),
        (5, 30, 10, 5),
        (None, 30, 10, 20),
        (50, 10, 30, 0),
        (50, 30, None, 50),
    ],
)
def test_room_is_what_is_free_within_the_limit(
    available: int | None, limit: int | None, used: int | None, room: int | None
) -> None:
    assert MemoryState(available=available, limit=limit, used=used).room == room


@given(
    room=BYTES,
    full=PERCENT,
    cores=st.integers(1, 200),
    held=NUMBER,
    reserve=BYTES,
    typical=BYTES,
    in_use=BYTES,
)
def test_tokens_are_never_negative_nor_more_than_cores(
    room: int, full: float, cores: int, held: int, reserve: int, typical: int, in_use: int
) -> None:
    """With the job that needs no token there is always one, and never more than cores."""
    tokens = wanted(
        state(room, full), cores=cores, held=held, reserve=reserve, typical=typical, in_use=in_use
    )
    assert 0 <= tokens <= cores - 1


@given(rooms=st.tuples(BYTES, BYTES), full=PERCENT, held=NUMBER, reserve=BYTES, typical=BYTES, in_use=BYTES)
def test_more_memory_is_never_fewer_tokens(
    rooms: tuple[int, int], full: float, held: int, reserve: int, typical: int, in_use: int
) -> None:
    less, more = (
        wanted(state(room, full), cores=64, held=held, reserve=reserve, typical=typical, in_use=in_use)
        for room in sorted(rooms)
    )
    assert less <= more


@given(room=BYTES, typical=st.integers(1, 1 << 40), held=st.integers(0, 63))
def test_what_was_just_given_is_kept_when_nothing_changes(room: int, typical: int, held: int) -> None:
    """No flapping: asked again with what it said, it says the same."""
    once = wanted(state(room), cores=64, held=held, reserve=0, typical=typical)
    assert wanted(state(room), cores=64, held=once, reserve=0, typical=typical) == once


def test_a_token_more_needs_room_for_one_and_a_half() -> None:
    tokens = [
        wanted(state(room * MIB), cores=64, held=1, reserve=0, typical=1000 * MIB)
        for room in (2000, 3000, 3499, 3501, 4499, 4501)
    ]
    assert tokens == [1, 1, 1, 2, 2, 3]


def test_all_at_once_where_there_is_plenty_or_nothing_is_known() -> None:
    assert wanted(state(None), cores=64, held=0, reserve=GIB, typical=GIB) == 63
    assert wanted(state(80 * GIB), cores=64, held=0, reserve=GIB, typical=GIB) == 63


def test_a_machine_that_stands_still_for_memory_has_less_of_it() -> None:
    assert [usable(state(1000, full)) for full in (0, 10, 25, 50, 100)] == [1000, 800, 500, 0, 0]
    assert usable(state(None, 50)) is None


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


@given(running=JOBS, free=st.integers(-(1 << 42), 1 << 42), largest=BYTES, slack=BYTES)
def test_somebody_who_works_always_runs(running: list[Running], free: int, largest: int, slack: int) -> None:
    """The largest of those that work is never held, and nobody who waits for another is."""
    held = to_hold(running, free, largest=largest, slack=slack)
    working = {job.pid: job for job in running if not job.idle}
    assert held <= working.keys()
    if working:
        assert max(working.values(), key=lambda job: (job.size, -job.started, -job.pid)).pid not in held


@given(running=JOBS, frees=st.tuples(BYTES, BYTES), largest=BYTES, slack=BYTES)
def test_more_memory_never_holds_more(
    running: list[Running], frees: tuple[int, int], largest: int, slack: int
) -> None:
    less, more = (to_hold(running, free, largest=largest, slack=slack) for free in sorted(frees))
    assert more <= less


def running(*sizes: int, held: tuple[int, ...] = ()) -> list[Running]:
    return [Running(n, n, size, size, held=n in held) for n, size in enumerate(sizes)]


def test_those_run_that_could_all_grow_to_the_largest() -> None:
    three = running(100, 900, 600)
    assert to_hold(three, 500, largest=1000, slack=500) == {0}  # 100 and then 400 are kept for two
    assert to_hold(three, 499, largest=1000, slack=500) == {0, 2}
    assert to_hold(three, 900, largest=1000, slack=400) == frozenset()


def test_between_little_and_enough_nothing_changes() -> None:
    assert to_hold(running(100, 900, 600, held=(0,)), 600, largest=1000, slack=300) == {0}
    assert to_hold(running(100, 900, 600), 600, largest=1000, slack=300) == frozenset()


def test_one_that_waits_for_another_is_no_job() -> None:
    waits = Running(1, 1, 900, 900, idle=True)
    assert to_hold([waits, *running(500)], 0, largest=1000, slack=100) == frozenset()


def test_the_largest_is_learned_from_those_that_ended() -> None:
    policy = TokenPolicy(cores=8, reserve=GIB, largest=2 * GIB)
    for number in range(7):
        policy(state(40 * GIB), [Running(number, 0.0, 100 * MIB, (100 + number) * MIB)], 7, number)
    assert policy.largest == int(106 * MIB * (1 + 2 / 6))


def test_tools_that_are_no_compilers_teach_nothing() -> None:
    policy = TokenPolicy(cores=8, reserve=GIB, largest=2 * GIB)
    for number in range(50):
        policy(state(40 * GIB), [Running(number, 0.0, 2 * MIB, 3 * MIB)], 7, number)
    assert policy.largest == 2 * GIB


def test_memory_that_goes_quickly_holds_earlier() -> None:
    quick, slow = (TokenPolicy(cores=8, reserve=GIB, largest=GIB) for _ in range(2))
    many = running(*[100 * MIB] * 8)
    quick(state(20 * GIB), many, 7, 0.0)
    slow(state(7 * GIB), many, 7, 0.0)
    assert quick(state(5 * GIB), many, 7, 0.5).hold and not slow(state(5 * GIB), many, 7, 0.5).hold


def best_by_hand(seed: int, limit: int) -> float:
    return min(out.seconds for n in range(1, 9) if not (out := plain(jobs(seed), limit, n)).died)


SEEDS = (24, 1, 2, 3, 4, 5)


def outcome(seed: int, gib: int) -> Outcome:
    return ours(jobs(seed), gib * GIB, 8)


@pytest.mark.parametrize("gib", [2, 3, 4, 6])
def test_a_build_that_plain_ninja_does_not_survive_ends(gib: int) -> None:
    assert any(plain(jobs(seed), gib * GIB, 8).died for seed in SEEDS)
    assert not any(outcome(seed, gib).died for seed in SEEDS)


@pytest.mark.parametrize("gib", [2, 3, 4, 6, 8])
def test_it_is_about_as_quick_as_the_best_number_found_by_hand(gib: int) -> None:
    ratios = sorted(outcome(seed, gib).seconds / best_by_hand(seed, gib * GIB) for seed in SEEDS)
    assert ratios[len(ratios) // 2] <= 1.1 and ratios[-1] <= 1.4


def test_with_plenty_of_memory_it_is_plain_ninja() -> None:
    for seed in SEEDS:
        assert outcome(seed, 40) == plain(jobs(seed), 40 * GIB, 8)


def test_where_nothing_can_be_held_it_is_careful_and_ends() -> None:
    for gib in (2, 4, 8):
        assert not any(ours(jobs(seed), gib * GIB, 8, holds=False).died for seed in SEEDS)
