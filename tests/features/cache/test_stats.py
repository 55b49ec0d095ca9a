"""The difference of two answers of a cache, and what it says to a person."""

from __future__ import annotations

import json
from typing import Any

from tests.support.for_each import each_case
from torchbuild_tasks.features.cache.stats import (
    add_reports,
    ccache_difference,
    ccache_report,
    hint,
    hit_rate,
    recc_report,
    report_lines,
    sccache_report,
)
from torchbuild_tasks.model import CacheReport


def answer(**changes: Any) -> str:
    """sccache 0.16.0's, shortened to what is read."""
    stats: dict[str, Any] = {
        "cache_hits": {"counts": {}},
        "cache_misses": {"counts": {}},
        "cache_errors": {"counts": {}},
        "not_cached": {},
        "cache_write_errors": 0,
        "cache_timeouts": 0,
        "multi_level": None,
    }
    return json.dumps({"stats": {**stats, **changes}, "version": "0.16.0"})


def levels(disk: int, redis: int) -> list[dict[str, Any]]:
    return [{"name": "L0 (disk)", "hits": disk}, {"name": "L1 (redis)", "hits": redis}]


def test_sccache_is_counted_as_a_difference() -> None:
    before = answer(cache_hits={"counts": {"C/C++": 10}}, not_cached={"-E": 1}, multi_level=levels(9, 1))
    after = answer(
        cache_hits={"counts": {"C/C++": 15, "CUDA": 3}},
        cache_misses={"counts": {"C/C++": 2}},
        cache_errors={"counts": {"C/C++": 1}},
        cache_write_errors=2,
        not_cached={"-E": 1, "multiple input files": 4},
        multi_level=levels(12, 6),
    )
    report = sccache_report(before, after)
    assert report == CacheReport(
        tool="sccache",
        hits={"C/C++": 5, "CUDA": 3},
        misses={"C/C++": 2},
        not_cached={"multiple input files": 4},
        shared=5,
        errors=3,
    )


@each_case("text", ["", "null", "[]", '{"stats": 1}', '{"stats": {}}'])
def test_an_answer_that_cannot_be_read_is_none(text: str) -> None:
    assert sccache_report(answer(), text) is None


CCACHE_LOG = """\
# ../src/a.cpp
direct_cache_hit
local_storage_hit
local_storage_read_hit
# /src/b.cu
cache_miss
direct_cache_miss
local_storage_miss
local_storage_write
preprocessed_cache_miss
# /src/c.c
preprocessed_cache_hit
direct_cache_miss
remote_storage_hit
# conftest.c
called_for_link
# /src/d.cpp
could_not_use_precompiled_header
# /src/e.cpp
internal_error
"""


def test_ccaches_log_is_counted_by_language() -> None:
    report = ccache_report(CCACHE_LOG)
    assert (report.hits, report.misses) == ({"C/C++": 2}, {"CUDA": 1})
    assert report.not_cached == {"could not use precompiled header": 1}
    assert (report.shared, report.errors) == (1, 1)


def test_ccaches_counters_before_and_after() -> None:
    before = "direct_cache_hit\t10\ncache_miss\t5\ncache_size_kibibyte\t100\nfiles_in_cache\t9\n"
    after = (
        "direct_cache_hit\t14\ncache_miss\t6\npreprocessed_cache_hit\t2\ncompile_failed\t1\n"
        "cache_size_kibibyte\t200\nfiles_in_cache\t11\nstats_updated_timestamp\t1700000000\nlocal_storage_hit\t7\n"
    )
    report = ccache_difference(before, after)
    assert (sum(report.hits.values()), sum(report.misses.values())) == (6, 1)
    assert report.not_cached == {"compile failed": 1}


def test_two_servers_of_one_build_are_one_report() -> None:
    one = CacheReport(tool="sccache", hits={"C/C++": 1}, misses={"CUDA": 2}, shared=1)
    two = CacheReport(tool="sccache", hits={"C/C++": 2}, not_cached={"-E": 1}, errors=1)
    assert add_reports(one, two) == CacheReport(
        tool="sccache", hits={"C/C++": 3}, misses={"CUDA": 2}, not_cached={"-E": 1}, shared=1, errors=1
    )


def test_lines() -> None:
    report = CacheReport(
        tool="sccache",
        hits={"C/C++": 90, "CUDA": 5},
        misses={"C/C++": 5},
        not_cached={"-E": 2, "a": 9},
        shared=40,
        errors=1,
    )
    first, second, third = report_lines(report)
    assert first.startswith("sccache: 95 hits, 5 misses (95%)")
    assert "C/C++ 90 of 95, CUDA 5 of 5" in first
    assert "40 hits came from the shared cache" in first
    assert second == "sccache: not kept: 9 x a, 2 x -E"
    assert "1 of its own failures" in third
    assert report_lines(CacheReport(tool="ccache")) == ()
    assert hit_rate(CacheReport(tool="ccache")) is None


@each_case(
    ("report", "first", "drifted", "said"),
    [
        (CacheReport(tool="ccache", hits={"C/C++": 99}, misses={"C/C++": 1}), False, False, ""),
        (CacheReport(tool="ccache", misses={"C/C++": 99}), True, False, "has filled ccache"),
        (CacheReport(tool="ccache", misses={"C/C++": 99}), False, False, "--cache-size"),
        (CacheReport(tool="ccache", misses={"C/C++": 99}), False, True, ""),
        (CacheReport(tool="ccache", misses={"C/C++": 3}), False, False, ""),
        (CacheReport(tool="sccache", hits={"a": 9}, not_cached={"-Zi": 30, "-E": 2}), False, False, "-Zi"),
    ],
)
def test_the_hint(report: CacheReport, first: bool, drifted: bool, said: str) -> None:
    text = hint(report, first=first, drifted=drifted)
    assert said in text
    assert bool(text) is bool(said)
    assert "filled" not in hint(report, first=first, drifted=drifted, complete=False)


def test_recc_counts_each_process_for_itself() -> None:
    """Lines of 1.4.30: a miss, a hit, and a query that got no answer."""
    metrics = (
        "recc.action_cache_miss:1|c\nrecc.compiler_deps:542|ms\nrecc.query_action_cache:71|ms\n"
        "recc.action_cache_hit:1|c\nrecc.query_action_cache:74|ms\nrecc.download_blobs:48|ms\n"
        "recc.query_action_cache:20003|ms\nrecc.find_missing_blobs:15056|ms\nnonsense\n"
    )
    report = recc_report(metrics)
    assert report == CacheReport(tool="recc", hits={"other": 1}, misses={"other": 1}, shared=1, errors=1)
    assert recc_report("") == CacheReport(tool="recc")


def test_a_link_that_recc_finds_is_no_compile_and_no_failure() -> None:
    """Lines of 1.4.30 with RECC_LINK."""
    metrics = (
        "recc.action_cache_hit:1|c\nrecc.query_action_cache:74|ms\n"
        "recc.linker_deps:40|ms\nrecc.query_action_cache:9|ms\nrecc.link_action_cache_hit:1|c\n"
        "recc.linker_deps:41|ms\nrecc.query_action_cache:8|ms\nrecc.link_action_cache_miss:1|c\n"
    )
    report = recc_report(metrics)
    assert report == CacheReport(tool="recc", hits={"other": 1}, shared=1, links=1)
    assert report_lines(report) == (
        "recc: 1 hits, 0 misses (100%); 1 hits came from the shared cache; 1 links too",
    )
