"""The number of jobs: usable cores, free memory, and the user's own number."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.for_each import each_case
from tests.support.machines import ask, found, linux_facts, plan_of, settings, statuses
from tests.support.windows import windows_facts
from torchbuild_tasks.catalog import GIB
from torchbuild_tasks.model import Cpu, Memory
from torchbuild_tasks.plan.jobs import check_jobs, choose_jobs, usable_cores, usable_memory

PLENTY = Memory(total=256 * GIB, available=250 * GIB)


@each_case(
    ("cpu", "cores", "says"),
    [
        (Cpu(cores=8), 8, "8 cores"),
        (Cpu(cores=8, affinity=8), 8, "8 cores"),
        (Cpu(cores=64, affinity=4), 4, "CPU affinity allows 4 of 64 cores"),
        (Cpu(cores=64, quota=1.5, quota_via="cpu.max"), 1, "cgroup quota of 1.5 cores (cpu.max)"),
        (Cpu(cores=64, quota=0.3, quota_via="cpu.max"), 1, "cgroup quota of 0.3 cores"),
        (Cpu(cores=64, quota=12.0), 12, "cgroup quota of 12 cores"),
        (Cpu(cores=64, affinity=2, quota=12.0), 2, "CPU affinity"),
        (Cpu(cores=64, affinity=12, quota=2.9), 2, "cgroup quota"),
        (Cpu(cores=4, quota=16.0), 4, "4 cores"),
    ],
)
def test_cores_that_may_be_used(cpu: Cpu, cores: int, says: str) -> None:
    number, why = usable_cores(cpu)
    assert number == cores
    assert says in why


@pytest.mark.parametrize(
    ("memory", "room", "says"),
    [
        (Memory(total=64 * GIB, available=50 * GIB), 50, "free memory"),
        (
            Memory(available=50 * GIB, limit=8 * GIB, used_in_limit=2 * GIB, limit_via="memory.max"),
            6,
            "cgroup",
        ),
        (Memory(available=4 * GIB, limit=8 * GIB), 4, "free memory"),
        (Memory(limit=8 * GIB, limit_via="memory.max"), 8, "memory.max"),
        (Memory(available=50 * GIB, limit=2 * GIB, used_in_limit=3 * GIB), 0, "cgroup"),
    ],
)
def test_memory_that_may_be_used(memory: Memory, room: int, says: str) -> None:
    usable = usable_memory(memory)
    assert usable is not None
    assert usable[0] == room * GIB
    assert says in usable[1]


def test_unreadable_memory_is_unknown() -> None:
    assert usable_memory(Memory(total=8 * GIB)) is None


@each_case(
    ("cpu", "memory", "jobs"),
    [
        (Cpu(cores=8), PLENTY, 8),
        (Cpu(cores=8), Memory(available=9 * GIB), 4),
        (Cpu(cores=64, quota=1.5), PLENTY, 1),
        (Cpu(cores=64, affinity=6), PLENTY, 6),
        (Cpu(cores=8), Memory(available=60 * GIB, limit=6 * GIB, used_in_limit=GIB), 2),
        (Cpu(cores=8), Memory(available=GIB // 2), 1),
        (Cpu(cores=8), Memory(available=0), 1),
        (Cpu(cores=8), Memory(), 8),
    ],
)
def test_the_smaller_of_cores_and_memory(cpu: Cpu, memory: Memory, jobs: int) -> None:
    choice = choose_jobs(ask(linux_facts(cpu=cpu, memory=memory)), "Release")
    assert (choice.value, choice.source) == (str(jobs), "default")


def test_the_reason_holds_the_arithmetic() -> None:
    because = choose_jobs(ask(linux_facts(memory=Memory(available=9 * GIB))), "Release").because
    assert "8 cores" in because
    assert "9.0 GiB free memory" in because
    assert because.endswith("= 4")


def test_unknown_memory_is_named_in_the_reason() -> None:
    assert "not known" in choose_jobs(ask(linux_facts(memory=Memory())), "Release").because


@pytest.mark.parametrize(
    ("flags", "environ", "said", "value", "source"),
    [
        ({"jobs": 3}, {"MAX_JOBS": "4"}, {"jobs": 5}, "3", "flag"),
        ({"set": ("MAX_JOBS=6",)}, {"MAX_JOBS": "4"}, {"jobs": 5}, "6", "flag"),
        ({}, {"MAX_JOBS": "4"}, {"jobs": 5}, "4", "environment"),
        ({"jobs": 7, "from_environment": ("jobs",), "set": ("MAX_JOBS=6",)}, {}, {}, "6", "flag"),
        ({"jobs": 7, "from_environment": ("jobs",)}, {"MAX_JOBS": "4"}, {}, "7", "environment"),
        ({}, {"MAX_JOBS": ""}, {"jobs": 5}, "5", "torchbuild.toml"),
        ({}, {}, {"jobs": 5}, "5", "torchbuild.toml"),
        ({}, {}, {}, "8", "default"),
    ],
)
def test_who_is_obeyed(
    flags: dict[str, object], environ: dict[str, str], said: dict[str, object], value: str, source: str
) -> None:
    choice = choose_jobs(ask(linux_facts(environ=environ), settings(said), **flags), "Release")
    assert (choice.value, choice.source) == (value, source)
    assert choice.because


def test_max_jobs_in_the_set_table_is_obeyed() -> None:
    choice = choose_jobs(ask(said=settings(variables={"MAX_JOBS": "2"})), "Release")
    assert (choice.value, choice.source) == ("2", "torchbuild.toml")


def test_more_jobs_than_the_memory_holds_are_warned_of_and_obeyed() -> None:
    plan = plan_of(linux_facts(memory=Memory(available=5 * GIB)), jobs=8)
    finding = found(plan.findings, "jobs")
    assert (finding.status, plan.verdict) == ("warn", "warn")
    assert "--jobs 2" in finding.fix
    assert next(op.value for op in plan.env if op.name == "MAX_JOBS") == "8"


@pytest.mark.parametrize("memory", [PLENTY, Memory(), Memory(available=17 * GIB)])
def test_jobs_that_fit_are_not_warned_of(memory: Memory) -> None:
    facts = linux_facts(memory=memory)
    assert statuses(check_jobs(ask(facts), choose_jobs(ask(facts), "Release").value, "Release"), "jobs") == []


@pytest.mark.parametrize(("jobs", "said"), [(16, []), (32, ["warn"])])
def test_more_jobs_than_cores_are_warned_of_by_the_memory_alone(jobs: int, said: list[str]) -> None:
    """Of 2 GiB each, 20 of them fit; there are 8 cores."""
    facts = linux_facts(memory=Memory(available=41 * GIB))
    assert statuses(plan_of(facts, jobs=jobs).findings, "jobs") == said


@pytest.mark.parametrize("asked", ["abc", "0", "-3", "1.5", "4 ", "²"])
def test_max_jobs_that_is_no_number_is_an_error(asked: str) -> None:
    plan = plan_of(linux_facts(environ={"MAX_JOBS": asked}))
    finding = found(plan.findings, "jobs")
    assert (finding.status, plan.verdict) == ("error", "refuse")
    assert f"MAX_JOBS={asked}" in finding.text
    assert finding.fix


SIZES = st.none() | st.integers(min_value=0, max_value=4096 * GIB)
CPUS = st.builds(
    Cpu,
    cores=st.integers(min_value=1, max_value=512),
    affinity=st.none() | st.integers(min_value=1, max_value=512),
    quota=st.none() | st.floats(min_value=0.01, max_value=600),
)
MEMORIES = st.builds(Memory, available=SIZES, limit=SIZES, used_in_limit=SIZES)


def count(cpu: Cpu, memory: Memory) -> int:
    return int(choose_jobs(ask(linux_facts(cpu=cpu, memory=memory)), "Release").value)


@given(CPUS, MEMORIES)
def test_never_below_one_and_never_above_what_may_run(cpu: Cpu, memory: Memory) -> None:
    allowed = min(x for x in (cpu.cores, cpu.affinity, cpu.quota) if x is not None)
    assert 1 <= count(cpu, memory) <= max(1, allowed)


@given(CPUS, st.integers(0, 64 * GIB), st.integers(0, 64 * GIB))
def test_more_memory_never_means_fewer_jobs(cpu: Cpu, one: int, other: int) -> None:
    less, more = sorted((one, other))
    assert count(cpu, Memory(available=less)) <= count(cpu, Memory(available=more))


@given(CPUS, MEMORIES)
def test_what_is_chosen_is_never_warned_of(cpu: Cpu, memory: Memory) -> None:
    question = ask(linux_facts(cpu=cpu, memory=memory))
    assert check_jobs(question, choose_jobs(question, "Release").value, "Release") == ()


@pytest.mark.parametrize(
    ("memory", "told"),
    [
        (Memory(available=int(1.6 * GIB), swap_free=0), ["warn"]),
        (Memory(available=int(1.6 * GIB), swap_free=2 * GIB), []),
        (Memory(available=64 * GIB, swap_free=8 * GIB, limit=GIB, limit_via="cgroup v1"), ["warn"]),
        (Memory(), []),
    ],
)
def test_memory_that_holds_not_one_compile(memory: Memory, told: list[str]) -> None:
    assert statuses(plan_of(linux_facts(memory=memory)).findings, "memory") == told


@pytest.mark.parametrize(("via", "way"), [("memory.max", "Slurm"), (None, "swap")])
def test_what_gives_more_memory_follows_from_what_limits_it(via: str | None, way: str) -> None:
    """Swap and other programs do not count under a limit of a container."""
    memory = Memory(available=GIB, limit=GIB if via else None, limit_via=via, used_in_limit=GIB // 2)
    fix = found(plan_of(linux_facts(memory=memory)).findings, "memory").fix
    assert way in fix and ("swap" in fix) == (via is None)
    fix = found(plan_of(windows_facts(memory=Memory(available=GIB))).findings, "memory").fix
    assert "page file" in fix and "swap" not in fix
