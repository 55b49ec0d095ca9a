"""The simulated schedule: what holds of every one, and where more cores do not help."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchbuild_tasks.ninja.schedule import Job, Machine, longest_chain, simulate
from torchbuild_tasks.values import replace

NEARLY = 1e-6


@st.composite
def some_jobs(draw: st.DrawFn) -> list[Job]:
    """Jobs of any graph: each waits for some of those before it, a few take nothing."""
    jobs: list[Job] = []
    for at in range(draw(st.integers(1, 24))):
        before = draw(st.sets(st.integers(0, at - 1), max_size=4)) if at else set()
        phony = draw(st.integers(0, 7)) == 0
        jobs.append(
            Job(
                name=f"{at}.o",
                order=draw(st.integers(0, 99)),
                before=tuple(sorted(before)),
                here=0.0 if phony else draw(st.integers(0, 9)) / 2,
                memory=0 if phony else draw(st.integers(0, 5)),
                pool="" if phony else draw(st.sampled_from(["", "", "links"])),
                phony=phony,
            )
        )
    return jobs


def machine(cores: int, **changes: Any) -> Machine:
    return Machine(**{"cores": cores, "jobs": cores, **changes})


@given(some_jobs(), st.integers(1, 8), st.booleans())
def test_between_both_bounds(jobs: list[Job], cores: int, chains: bool) -> None:
    """Never below the critical path or the work over the cores, nor above Graham's bound."""
    found = simulate(jobs, machine(cores, chains=chains))
    path, share = found.bounds["critical path"], found.bounds["cores"]
    assert max(path, share) - NEARLY <= found.wall <= share + path * (1 - 1 / cores) + NEARLY


@given(some_jobs())
def test_with_a_core_for_each_it_is_the_critical_path(jobs: list[Job]) -> None:
    found = simulate(jobs, machine(len(jobs)))
    assert found.wall == pytest.approx(found.bounds["critical path"])
    assert sum(jobs[each].seconds for each in longest_chain(jobs)) == pytest.approx(found.wall)


@given(some_jobs())
def test_one_core_does_one_after_the_other(jobs: list[Job]) -> None:
    assert simulate(jobs, machine(1)).wall == pytest.approx(sum(job.seconds for job in jobs))


@given(some_jobs(), st.integers(1, 8), st.integers(5, 12), st.integers(1, 3))
def test_never_more_memory_than_there_is_nor_more_in_a_pool(
    jobs: list[Job], cores: int, memory: int, depth: int
) -> None:
    """And everything is built all the same, each after what it waits for, and not below any bound."""
    limits = machine(cores, memory=memory, depths={"links": depth})
    found = simulate(jobs, limits)
    assert found.memory <= memory
    assert found.wall >= max(found.bounds.values()) - NEARLY
    starts = [end - job.seconds for end, job in zip(found.ends, jobs, strict=True)]
    for job, start in zip(jobs, starts, strict=True):
        assert all(found.ends[each] <= start + NEARLY for each in job.before)
    for at in starts:
        running = [
            job
            for job, start, end in zip(jobs, starts, found.ends, strict=True)
            if start <= at + NEARLY < end - NEARLY
        ]
        assert len(running) <= cores and sum(job.memory for job in running) <= memory
        assert sum(job.pool == "links" for job in running) <= depth


@given(some_jobs(), st.integers(1, 4), st.integers(1, 4))
def test_servers_take_their_part(jobs: list[Job], cores: int, servers: int) -> None:
    sent = [replace(job, here=job.here / 20, away=job.here) for job in jobs]
    found = simulate(sent, Machine(cores=cores, jobs=servers + 1, servers=servers))
    assert found.wall >= max(found.bounds.values()) - NEARLY
    assert found.bounds["servers"] == pytest.approx(sum(job.here for job in jobs) / servers)


def test_a_job_that_is_larger_than_the_memory_runs_alone() -> None:
    jobs = [
        Job(name="large.o", order=0, here=2.0, memory=9),
        Job(name="small.o", order=1, here=2.0, memory=1),
    ]
    assert simulate(jobs, machine(2, memory=4)).wall == 4.0


def test_what_most_waits_for_comes_first_since_ninja_1_12() -> None:
    jobs = [
        Job(name="a.o", order=0, here=4.0),
        Job(name="gen", order=1, here=1.0),
        Job(name="b.o", order=2, before=(1,), here=4.0),
    ]
    assert simulate(jobs, machine(1)).ends == (5.0, 1.0, 9.0)
    assert simulate(jobs, machine(1, chains=False)).ends == (4.0, 5.0, 9.0)


def test_more_cores_can_be_slower() -> None:
    """Graham's anomaly (1969) in Ninja's old order: nine jobs take 12 s on three cores and 15 on four."""
    seconds = (3, 2, 2, 2, 4, 4, 4, 4, 9)
    before = {4: (3,), 5: (3,), 6: (3,), 7: (3,), 8: (0,)}
    jobs = [
        Job(name=str(at), order=at, before=before.get(at, ()), here=float(each))
        for at, each in enumerate(seconds)
    ]
    assert [simulate(jobs, machine(cores, chains=False)).wall for cores in (3, 4)] == [12.0, 15.0]


def test_nothing_to_do() -> None:
    found = simulate([], machine(2))
    assert (found.wall, found.memory, found.chain) == (0.0, 0, ())
