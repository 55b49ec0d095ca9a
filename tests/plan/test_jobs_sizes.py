"""The size of a job: measured where there are enough compiles, else by the table; and what is remembered."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.machines import ask, linux_facts
from torchbuild_tasks.catalog import GIB
from torchbuild_tasks.model import Cpu, Memory, Store
from torchbuild_tasks.model.history import PastPeak, Peak
from torchbuild_tasks.plan.jobs import add_peaks, choose_jobs, job_size
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.values import replace

HERE = linux_facts().tree.root
TABLED = 2.0


def past(**changes: Any) -> PastPeak:
    values = {"source": HERE, "build_type": "Release", "kind": "C++", "bytes": GIB, "count": 1200}
    return PastPeak(**{**values, **changes})


def question(*peaks: PastPeak, **flags: Any) -> Question:
    facts = linux_facts(
        cpu=Cpu(cores=64), memory=Memory(available=41 * GIB), store=Store(folder="/cache", peaks=peaks)
    )
    return ask(facts, build_type="Release", **flags)


def test_what_was_measured_counts_with_a_margin() -> None:
    size = job_size(question(past()), "c++", "Release")
    assert size.gib == 1.3
    assert "1,200 in this checkout took 1.00 GiB, Release; tabled: 2" in size.because
    choice = choose_jobs(question(past()), "Release")
    assert choice.value == str(int(40 / 1.3)) and "1.3 GiB a job [the largest of 1,200" in choice.because


def test_larger_than_tabled_counts_too() -> None:
    assert job_size(question(past(bytes=3 * GIB)), "c++", "Release").gib == 3.8


@pytest.mark.parametrize(
    "changes",
    [
        {"count": 49},
        {"build_type": "Debug"},
        {"kind": "link"},
        {"kind": "CUDA"},
        {"source": "/other", "count": 60, "bytes": GIB // 20},  # the sample, which a newcomer builds first
    ],
)
def test_what_says_nothing_of_this_build_does_not_count(changes: dict[str, Any]) -> None:
    assert job_size(question(past(**changes)), "c++", "Release") == (TABLED, "")


def test_few_compiles_of_this_checkout_count() -> None:
    assert job_size(question(past(count=60)), "c++", "Release").gib == 1.3


def test_another_checkout_counts_while_this_one_has_nothing() -> None:
    other = past(source="/other", bytes=2 * GIB)
    assert "/other" in job_size(question(other), "c++", "Release").because
    assert job_size(question(other, past()), "c++", "Release").gib == 1.3


def test_a_tiny_size_is_not_believed() -> None:
    assert job_size(question(past(bytes=GIB // 20)), "c++", "Release").gib == 0.5


def test_heavy_kernels_are_measured_and_other_kernels_tabled() -> None:
    measured = question(past(kind="CUDA", bytes=6 * GIB), cuda=True)
    assert job_size(measured, "heavy kernel", "Release").gib == 7.5
    assert job_size(measured, "nvcc", "Release").because == ""


def test_without_a_store_the_table_counts() -> None:
    assert job_size(ask(replace(linux_facts(), store=None)), "c++", "Release") == (TABLED, "")


@pytest.mark.parametrize(
    ("bytes_now", "count", "kept"),
    [(5, 1200, (5, 1200)), (5, 600, (5, 600)), (5, 3, (GIB, 1200)), (2 * GIB, 3, (2 * GIB, 1200))],
)
def test_a_small_build_takes_nothing_away(bytes_now: int, count: int, kept: tuple[int, int]) -> None:
    (row,) = add_peaks([past()], HERE, "Release", [Peak(kind="C++", bytes=bytes_now, count=count)])
    assert (row.bytes, row.count) == kept


def test_a_part_of_a_build_counts_for_that_part() -> None:
    """2.6.0, cut short after protobuf and c10: 0.27 GiB, and half a GiB and more were to come."""
    light = Peak(kind="C++", bytes=int(0.27 * GIB), count=265)
    rows = add_peaks((), HERE, "Release", [light], 256, 1510)
    size = job_size(question(*rows), "c++", "Release")
    assert 1.7 <= size.gib <= TABLED and "1,510 of its steps are to come and count as tabled" in size.because
    rows = add_peaks(rows, HERE, "Release", [Peak(kind="C++", bytes=GIB, count=600)], 700, 810)
    assert (rows[0].bytes, rows[0].count, rows[0].seen, rows[0].left) == (GIB, 865, 956, 810)
    rows = add_peaks(rows, HERE, "Release", [light], 810, 0)
    assert (rows[0].bytes, rows[0].share) == (GIB, 1.0)  # the second half took less, and was not all
    assert job_size(question(*rows), "c++", "Release").gib == 1.3
    rows = add_peaks(rows, HERE, "Release", [], 3, 37)  # an edit that failed
    assert job_size(question(*rows), "c++", "Release").gib == 1.3
    heavy = past(bytes=3 * GIB, seen=1, left=99)
    assert job_size(question(heavy), "c++", "Release").gib == 3.8


def test_what_is_kept_does_not_grow_for_ever() -> None:
    rows: tuple[PastPeak, ...] = ()
    for number in range(500):
        rows = add_peaks(rows, f"/tree/{number}", "Release", [Peak(kind="C++", bytes=1, count=1)])
    assert len(rows) == 200 and rows[-1].source == "/tree/499"
