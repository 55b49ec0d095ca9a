"""Decide how many compile jobs run: by the cores that may be used, the free memory, and what a job takes.

A job's size was measured on this machine, or else stands in memory.toml.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Final, Literal, NamedTuple

from torchbuild_tasks.catalog import GIB
from torchbuild_tasks.catalog.match import admits, memory_row, variable_row
from torchbuild_tasks.model import Choice, Cpu, Finding, Memory
from torchbuild_tasks.model.history import PastPeak, Peak
from torchbuild_tasks.plan.names import FLAG_VARIABLES
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.plan.variables import decide, is_cuda
from torchbuild_tasks.values import replace

POOL = "FLASH_ATTENTION_MAX_JOBS"
# The first torch with FlashAttention kernels; the ones before it have none that are as heavy.
FLASH_ATTENTION = ">=2.0.0a0"
# The kinds of memory.toml by the programs that are measured. Compiles by nvcc that are not heavy kernels
# cannot be told from those that are, so their size is the table's.
_MEASURED: Final = {"c++": "C++", "heavy kernel": "CUDA"}
_ENOUGH: Final = 50  # of fewer compiles the largest says little about the next one
_ENOUGH_ELSEWHERE: Final = 500  # the sample is elsewhere too, of 50 light compiles; a torch has thousands
_MARGIN: Final = 1.25  # what was taken after the last look was missed, and sources change
_LEAST: Final = 0.5  # GiB
_KEPT: Final = 200


def usable_cores(cpu: Cpu) -> tuple[int, str]:
    """Return cores that this process may keep busy, and why not more. At least 1."""
    cores, why = cpu.cores, f"{cpu.cores} cores"
    if cpu.affinity is not None and cpu.affinity < cores:
        cores, why = cpu.affinity, f"CPU affinity allows {cpu.affinity} of {cpu.cores} cores"
    if cpu.quota is not None and cpu.quota < cores:
        cores = max(1, math.floor(cpu.quota))
        why = f"cgroup quota of {cpu.quota:g} cores{f' ({cpu.quota_via})' if cpu.quota_via else ''}"
    return max(1, cores), why


def usable_memory(memory: Memory) -> tuple[int, str] | None:
    """Return bytes that new programs may take: what is free, within the tightest cgroup limit."""
    room, limit = _tightest(memory)
    via = f" ({memory.limit_via})" if memory.limit_via else ""
    why = f"left under the {limit} limit{via}" if limit else "free memory"
    return None if room is None else (room, why)


def _tightest(memory: Memory) -> tuple[int | None, Literal["", "commit", "cgroup"]]:
    """Return the bytes that new programs may take, and which limit leaves no more; "" for none."""
    room = memory.available
    if memory.limit is not None:
        inside = max(0, memory.limit - (memory.used_in_limit or 0))
        if room is None or inside < room:
            return inside, "commit" if str(memory.limit_via).startswith("commit") else "cgroup"
    return room, ""


def choose_jobs(question: Question, build_type: str, kind: str = "") -> Choice:
    """Decide the number of parallel compile jobs, with the arithmetic as the reason.

    `kind` is that of memory.toml which the heaviest of them are ("" for torch's own).
    """
    if asked := question.asked("jobs", *FLAG_VARIABLES["jobs"]):
        because = asked.because if asked.name == "jobs" else f"{asked.name}: {asked.because}"
        return replace(asked, name="jobs", because=because)
    number, why = _count_jobs(question, build_type, kind)
    return Choice(name="jobs", value=str(number), because=why)


def choose_heavy_jobs(question: Question, build_type: str) -> Choice | None:
    """Decide the size of Ninja's pool for the heaviest kernels; None where nothing reads it, or it is set.

    It follows the memory that is free just now, so it is not an input of the build: a tree that is
    configured keeps the pool that it has. One that the user sets is an input like any variable.
    """
    has_pool = variable_row(question.catalog, POOL, question.era, question.version) is not None
    if not is_cuda(question) or not has_pool or question.facts.tree.sample or decide(question, POOL):
        return None
    number, why = _count_jobs(question, build_type, "heavy kernel")
    return Choice(name=POOL, value=str(number), because=f"the heaviest kernels at once: {why}")


def nvcc_threads(question: Question) -> int:
    """Return how many threads each nvcc starts: --threads or -t in its flags, else one."""
    for name in ("TORCH_NVCC_FLAGS", "CMAKE_CUDA_FLAGS"):
        flags = decide(question, name)
        if flags and (found := re.search(r"(?:--threads|-t)[= ]\s*(\d+)", flags.value)):
            return max(1, int(found[1]))
    return 1


def gib_of_job(question: Question, build_type: str, kind: str = "") -> float:
    """Return the GiB that one job may take at its peak, of its kind (else of the heaviest in this build)."""
    kind = kind or _kind(question)
    return job_size(question, kind, build_type).gib * (1 if kind == "c++" else nvcc_threads(question))


def _kind(question: Question) -> str:
    """Return the kind of memory.toml whose size a job of this build has."""
    if not is_cuda(question) or question.facts.tree.sample:
        return "c++"
    has_pool = variable_row(question.catalog, POOL, question.era, question.version) is not None
    heavy = not has_pool and admits(FLASH_ATTENTION, question.version) is not False
    return "heavy kernel" if heavy else "nvcc"


def _count_jobs(question: Question, build_type: str, kind: str = "") -> tuple[int, str]:
    cores, why_cores = usable_cores(question.facts.cpu)
    memory = _count_fitting(question, build_type, kind or _kind(question))
    if memory is None:
        return cores, f"{why_cores}; free memory is not known"
    fitting, sums = memory
    return min(cores, fitting), f"the smaller of {why_cores} and {sums}"


def _count_fitting(question: Question, build_type: str, kind: str) -> tuple[int, str] | None:
    """Return how many jobs the memory holds, with the arithmetic; None where it is not known."""
    memory = usable_memory(question.facts.memory)
    if memory is None:
        return None
    room, why_room = memory
    threads = 1 if kind == "c++" else nvcc_threads(question)
    each = gib_of_job(question, build_type, kind)
    reserve = memory_row(question.catalog, "reserve").gib
    fitting = max(1, int((room / GIB - reserve) / each))
    per = {"c++": "a job", "nvcc": "a job with nvcc"}.get(kind, "a heavy kernel")
    per += f" of {threads} threads" if threads > 1 else ""
    if measured := job_size(question, kind, build_type).because:
        per += f" [{measured}]"
    return (
        fitting,
        f"({room / GIB:.1f} GiB {why_room} - {reserve:g} kept back) / {each:g} GiB {per} = {fitting}",
    )


def check_jobs(question: Question, jobs: str, build_type: str) -> tuple[Finding, ...]:
    """Warn when more jobs are asked for than the memory holds; they are obeyed all the same."""
    if not jobs.isdecimal() or int(jobs) < 1:
        text = f"MAX_JOBS={jobs} is not a number of jobs"
        return (Finding.error("jobs", text, "Unset MAX_JOBS or set it to 1 or more."),)
    memory = _count_fitting(question, build_type, _kind(question))
    if memory is None or int(jobs) <= memory[0]:  # more than there are cores is slower, and kills no compiler
        return ()
    number, why = _count_jobs(question, build_type)
    text = f"{jobs} jobs are asked for, and there is room for {number}: {why}"
    return (Finding.warn("jobs", text, f"If compilers are killed, use --jobs {number}."),)


def check_memory(question: Question, build_type: str) -> tuple[Finding, ...]:
    """Warn when not even one compile fits into memory and swap; a container's limit counts without swap."""
    memory = question.facts.memory
    usable = usable_memory(memory)
    if usable is None:
        return ()
    room, why = usable
    spare = 0 if _tightest(memory)[1] else memory.swap_free or 0
    each = gib_of_job(question, build_type)
    reserve = memory_row(question.catalog, "reserve").gib
    if (room + spare) / GIB >= each + reserve:
        return ()
    swap = f" and {spare / GIB:.1f} GiB of swap" if spare else ""
    text = f"{room / GIB:.1f} GiB {why}{swap}, one compile may take {each:g} GiB, and the system needs "
    text += f"{reserve:g}: compilers may be killed, or the machine stands still"
    return (Finding.warn("memory", text, f"{ways_to_memory(memory, question.facts.host.os)}."),)


def ways_to_memory(memory: Memory, system: str) -> str:
    """Say what gives a build more of the memory that `usable_memory` counts."""
    if _tightest(memory)[1] == "cgroup":  # other programs are outside of it, and swap does not count
        return "Give the container or the job more (docker run --memory, Slurm's --mem)"
    return f"Close other programs, or {'enlarge the page file' if system == 'windows' else 'add swap'}"


# ---------------- the memory of one job, and what this machine remembers of it


class Size(NamedTuple):
    """GiB of one process, and its source; "" for the table."""

    gib: float
    because: str = ""


def job_size(question: Question, kind: str, build_type: str) -> Size:
    """Return what a process of a kind of memory.toml may take at its peak.

    What builds here took with the same build type counts more than the table, if they had enough compiles.
    Of builds that were cut short it counts for the steps that ran, and the table for those to come: what is
    compiled first is the lightest (of 2.6.0's first 265 compiles the largest took half of a later one).
    """
    tabled = memory_row(question.catalog, kind).gib
    store = question.facts.store
    seen = [
        peak
        for peak in (store.peaks if store else ())
        if peak.kind == _MEASURED.get(kind) and _counts(peak, question.facts.tree.root, build_type)
    ]
    if not seen:
        return Size(tabled)
    own = [peak for peak in seen if peak.source == question.facts.tree.root]
    most = max(own or seen, key=lambda peak: peak.bytes)
    measured = most.bytes * _MARGIN / GIB
    weighed = measured * most.share + max(tabled, measured) * (1 - most.share)
    gib = max(_LEAST, math.ceil(weighed * 10) / 10)
    where = "this checkout" if own else most.source
    because = f"the largest of {most.count:,} in {where} took {most.bytes / GIB:.2f} GiB"
    part = f"; {most.left:,} of its steps are to come and count as tabled" if most.left else ""
    return Size(gib, f"{because}, {build_type}{part}; tabled: {tabled:g}")


def _counts(peak: PastPeak, source: str, build_type: str) -> bool:
    """Say whether a peak says something of a build of a checkout: of its build type, of enough compiles."""
    enough = _ENOUGH if peak.source == source else _ENOUGH_ELSEWHERE
    return peak.build_type == build_type and peak.count >= enough


def decisive_peaks(known: Sequence[PastPeak], source: str, build_type: str) -> tuple[PastPeak, ...]:
    """Return the peaks that `job_size` may take for a checkout: its own, else the largest of each kind."""
    fitting = [peak for peak in known if _counts(peak, source, build_type)]
    own = [peak for peak in fitting if peak.source == source]
    largest: dict[str, PastPeak] = {}
    for peak in sorted(fitting, key=lambda peak: peak.bytes):
        largest[peak.kind] = peak
    return (*own, *(peak for kind, peak in largest.items() if kind not in {each.kind for each in own}))


def add_peaks(
    known: Sequence[PastPeak],
    source: str,
    build_type: str,
    peaks: Iterable[Peak],
    done: int = 0,
    left: int = 0,
) -> tuple[PastPeak, ...]:
    """Return what is known of this machine, with the processes of one more build of a checkout.

    One that ran much less than those before it, or was cut short, can add to what is known, and takes nothing
    away.

    Args:
        known: the rows until now, the newest last.
        source, build_type: what was built.
        peaks: what its processes took, by kind.
        done, left: its steps that ran, and those that were to come when it ended.
    """
    before = {(row.source, row.build_type, row.kind): row for row in known}
    rows = {
        key: replace(row, seen=row.seen + done, left=left) if key[:2] == (source, build_type) else row
        for key, row in before.items()
    }
    for peak in peaks:
        key = (source, build_type, peak.kind)
        row = PastPeak(
            source=source, build_type=build_type, kind=peak.kind, bytes=peak.bytes, count=peak.count
        )
        new = replace(row, seen=done, left=left)
        rows.pop(key, None)
        rows[key] = _join_peaks(before.get(key), new)
    return tuple(rows.values())[-_KEPT:]


def _join_peaks(old: PastPeak | None, new: PastPeak) -> PastPeak:
    """Return the peak of two builds; a complete one with as many compiles replaces the other."""
    if old is None or not (new.left or old.left) and 2 * new.count >= old.count:
        return new
    count = old.count + (new.count if old.left else 0)
    return replace(old, bytes=max(old.bytes, new.bytes), count=count, seen=old.seen + new.seen, left=new.left)
