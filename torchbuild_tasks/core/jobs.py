"""How many compile jobs: the cores that may be used, and the memory that is free."""

from __future__ import annotations

import math
from dataclasses import replace

from torchbuild_tasks.catalog import GIB
from torchbuild_tasks.core.question import Question
from torchbuild_tasks.core.rows import memory_row
from torchbuild_tasks.core.variables import decide
from torchbuild_tasks.model import Choice, Cpu, Finding, Memory


def usable_cores(cpu: Cpu) -> tuple[int, str]:
    """Cores that this process may keep busy, and why not more. At least 1."""
    cores, why = cpu.cores, f"{cpu.cores} cores"
    if cpu.affinity is not None and cpu.affinity < cores:
        cores, why = cpu.affinity, f"CPU affinity allows {cpu.affinity} of {cpu.cores} cores"
    if cpu.quota is not None and cpu.quota < cores:
        cores, why = max(1, math.floor(cpu.quota)), f"cgroup quota of {cpu.quota:g} cores ({cpu.quota_via})"
    return max(1, cores), why


def usable_memory(memory: Memory) -> tuple[int, str] | None:
    """Bytes that new programs may take: what is free, within the tightest cgroup limit."""
    room, why = memory.available, "free memory"
    if memory.limit is not None:
        inside = max(0, memory.limit - (memory.used_in_limit or 0))
        if room is None or inside < room:
            kind = "commit limit" if str(memory.limit_via).startswith("commit") else "cgroup limit"
            room, why = inside, f"left under the {kind} ({memory.limit_via})"
    return None if room is None else (room, why)


def choose_jobs(question: Question) -> Choice:
    """Decide the number of parallel compile jobs, with the arithmetic as the reason."""
    if question.request.jobs is not None:
        return Choice(
            name="jobs", value=str(question.request.jobs), because="--jobs on the command line", source="flag"
        )
    if (asked := decide(question, "MAX_JOBS")) and asked.value:
        return replace(asked, name="jobs", because=f"MAX_JOBS: {asked.because}")
    number, why = _reckon(question)
    return question.choose("jobs", "jobs", str(number), why)


def _reckon(question: Question) -> tuple[int, str]:
    cores, why_cores = usable_cores(question.facts.cpu)
    memory = usable_memory(question.facts.memory)
    if memory is None:
        return cores, f"{why_cores}; free memory is not known"
    room, why_room = memory
    each = memory_row(question.catalog, "c++").gib
    reserve = memory_row(question.catalog, "reserve").gib
    fitting = max(1, int((room / GIB - reserve) / each))
    sums = f"({room / GIB:.1f} GiB {why_room} - {reserve:g} kept back) / {each:g} GiB a job = {fitting}"
    return min(cores, fitting), f"the smaller of {why_cores} and {sums}"


def check_jobs(question: Question, jobs: str) -> tuple[Finding, ...]:
    """Warn when more jobs are asked for than the memory holds; they are obeyed all the same."""
    if not jobs.isdecimal() or int(jobs) < 1:
        text = f"MAX_JOBS={jobs} is not a number of jobs"
        return (Finding(id="jobs", status="error", text=text, fix="Unset MAX_JOBS or set it to 1 or more."),)
    number, why = _reckon(question)
    memory = usable_memory(question.facts.memory)
    if memory is None or int(jobs) <= number or int(jobs) <= usable_cores(question.facts.cpu)[0] == number:
        return ()
    text = f"{jobs} jobs are asked for, but {why}, hence {number}"
    return (
        Finding(id="jobs", status="warn", text=text, fix=f"If compilers are killed, use --jobs {number}."),
    )
