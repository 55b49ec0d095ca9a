"""The policy of the jobserver: its properties, and simulated builds."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.examples import examples
from tests.support.for_each import each_case
from tests.support.simulated_build import GIB, MIB, Outcome, Shape, jobs, ours, plain
from torchbuild_tasks.build.jobserver.tokens import MemoryState, Running, TokenPolicy, usable, wanted

BYTES = st.integers(0, 1 << 42)
PERCENT = st.floats(0, 100)
NUMBER = st.integers(0, 200)


def state(room: int | None, full: float = 0.0) -> MemoryState:
    return MemoryState(available=room, full=full)


@each_case(
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
    tokens = wanted(state(room, full), cores=cores, out=held, reserve=reserve, typical=typical, in_use=in_use)
    assert 0 <= tokens <= cores - 1


@given(rooms=st.tuples(BYTES, BYTES), full=PERCENT, held=NUMBER, reserve=BYTES, typical=BYTES, in_use=BYTES)
def test_more_memory_is_never_fewer_tokens(
    rooms: tuple[int, int], full: float, held: int, reserve: int, typical: int, in_use: int
) -> None:
    less, more = (
        wanted(state(room, full), cores=64, out=held, reserve=reserve, typical=typical, in_use=in_use)
        for room in sorted(rooms)
    )
    assert less <= more


@given(room=BYTES, typical=st.integers(1, 1 << 40), held=st.integers(0, 63))
def test_what_was_just_given_is_kept_when_nothing_changes(room: int, typical: int, held: int) -> None:
    """No flapping: with its own decision as input, it decides the same."""
    once = wanted(state(room), cores=64, out=held, reserve=0, typical=typical)
    assert wanted(state(room), cores=64, out=once, reserve=0, typical=typical) == once


def test_a_token_more_needs_room_for_one_and_a_half() -> None:
    tokens = [
        wanted(state(room * MIB), cores=64, out=1, reserve=0, typical=1000 * MIB)
        for room in (2000, 3000, 3499, 3501, 4499, 4501)
    ]
    assert tokens == [1, 1, 1, 2, 2, 3]


def test_all_at_once_where_there_is_plenty_or_nothing_is_known() -> None:
    assert wanted(state(None), cores=64, out=0, reserve=GIB, typical=GIB) == 63
    assert wanted(state(80 * GIB), cores=64, out=0, reserve=GIB, typical=GIB) == 63


def test_a_machine_that_stands_still_for_memory_has_less_of_it() -> None:
    assert [usable(state(1000, full)) for full in (0, 10, 25, 50, 100)] == [1000, 800, 500, 0, 0]
    assert usable(state(None, 50)) is None


def running(*sizes: int, held: tuple[int, ...] = ()) -> list[Running]:
    return [Running(n, n, size, size, held=n in held) for n, size in enumerate(sizes)]


def after(ended: int) -> TokenPolicy:
    """What has learned from so many compiles of 1000 MiB each, where 2000 are tabled."""
    policy = TokenPolicy(cores=8, reserve=GIB, largest=2000 * MIB)
    for number in range(ended):
        policy(state(40 * GIB), [Running(number, 0.0, MIB, 1000 * MIB)], 7, number)
    policy(state(40 * GIB), [], 7, ended)
    return policy


@each_case(("ended", "largest"), [(0, 2000), (1, 1937), (8, 1500), (12, 1250), (15, 1100), (100, 1014)])
def test_the_largest_is_learned_from_those_that_ended(ended: int, largest: int) -> None:
    """What is tabled is believed less with each; what is larger than all of many is not far from it."""
    assert after(ended).largest // MIB == largest


def test_tools_that_are_no_compilers_teach_nothing() -> None:
    policy = TokenPolicy(cores=8, reserve=GIB, largest=2 * GIB)
    for number in range(50):
        policy(state(40 * GIB), [Running(number, 0.0, 2 * MIB, 3 * MIB)], 7, number)
    assert policy.largest == 2 * GIB


def test_what_a_job_takes_is_learned_from_the_time_that_it_ran() -> None:
    """100 MiB for three seconds and 500 for one are 200 on average; suspended seconds do not count."""
    policy = TokenPolicy(cores=8, reserve=GIB, largest=2 * GIB)
    assert policy.typical == 256 * MIB
    clock = 0.0
    for number in range(5):
        for size, held in ((100, False), (100, False), (100, False), (100, False), (500, False), (500, True)):
            one = Running(number, 0.0, size * MIB, size * MIB, held=held)
            policy(state(40 * GIB), [one], 7, clock)
            clock += 1.0
    assert policy.typical == pytest.approx(1.2 * 200 * MIB, rel=0.01)


def test_memory_that_goes_quickly_holds_earlier() -> None:
    quick, slow = (TokenPolicy(cores=8, reserve=GIB, largest=GIB) for _ in range(2))
    small, large = running(*[100 * MIB] * 8), running(*[400 * MIB] * 8)
    quick(state(6 * GIB), small, 7, 0.0)
    slow(state(4 * GIB), large, 7, 0.0)
    assert quick(state(4 * GIB), large, 7, 0.5).hold and not slow(state(4 * GIB), large, 7, 5.0).hold


SEEDS = (24, 1, 3)[: examples(2, 3)]
SHAPES: tuple[Shape, ...] = ("late", "steady", "waves", "creep")


def best_by_hand(seed: int, gib: int, shape: Shape) -> float:
    """Of numbers that the memory is enough for, more is never slower."""
    tried = (plain(jobs(seed, shape=shape), gib * GIB, number) for number in range(8, 1, -1))
    return next(out.seconds for out in tried if not out.died)


def outcome(seed: int, gib: int, shape: Shape) -> Outcome:
    return ours(jobs(seed, shape=shape), gib * GIB, 8)


@each_case("shape", SHAPES)
def test_a_build_that_plain_ninja_does_not_survive_ends_about_as_soon_as_with_the_best_number(
    shape: Shape,
) -> None:
    ratios = []
    assert all(plain(jobs(seed, shape=shape), 4 * GIB, 8).died for seed in SEEDS)
    for gib in (3, 4, 6):
        for seed in SEEDS:
            out = outcome(seed, gib, shape)
            assert not out.died
            ratios.append(out.seconds / best_by_hand(seed, gib, shape))
    assert sorted(ratios)[len(ratios) // 2] <= 1.1 and max(ratios) <= 1.5


@each_case("shape", SHAPES)
def test_one_that_takes_three_quarters_of_the_memory_is_let_through(shape: Shape) -> None:
    assert not any(outcome(seed, 2, shape).died for seed in SEEDS)


@each_case("shape", ("steady", "creep"))
def test_slow_compiles_do_not_creep_past_the_limit(shape: Shape) -> None:
    """Each of them grows too slowly to be seen in one look; a gibibyte, and 420 MiB for the largest."""
    for seed in SEEDS:
        many = jobs(seed, count=12, low=120, high=420, shape=shape, seconds=20)
        assert not ours(many, GIB, 6, largest=GIB // 2).died


def test_with_plenty_of_memory_it_is_plain_ninja() -> None:
    for shape in SHAPES:
        assert outcome(24, 40, shape) == plain(jobs(24, shape=shape), 40 * GIB, 8)


def test_where_nothing_can_be_suspended_it_is_careful_and_ends() -> None:
    for gib in (2, 4, 8):
        assert not any(ours(jobs(seed), gib * GIB, 8, holds=False).died for seed in SEEDS)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("limit", "cores"), [(650 * MIB, 4), (650 * MIB, 16), (4 * GIB, 8)])
def test_what_is_light_at_first_does_not_speak_for_the_heavy_rest(
    limit: int, cores: int, shape: Shape
) -> None:
    """As PyTorch compiles: protobuf and c10 first, then ATen; 650 MiB is a small container."""
    high = 500 if limit < GIB else 2000
    light = jobs(3, 40, 60, high // 4, shape, 2.0)
    heavy = [replace(job, pid=1000 + job.pid) for job in jobs(4, 12, high * 2 // 3, high, shape, 8.0)]
    assert not ours([*light, *heavy], limit, cores, counted=True).died
