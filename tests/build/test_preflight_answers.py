"""The outputs of the programs of a pre-flight; all are real, unless noted."""

from __future__ import annotations

import json
import struct
from typing import Any

from tests.support.for_each import each_case
from torchbuild_tasks.build.preflight import (
    cache_of,
    ccache_answer,
    read_listed_archs,
    read_object_archs,
    same_archs,
    sccache_answer,
)

# cuobjdump 13.5 on an object of nvcc 13.0
LISTING = """\
ELF file    1: k.1.sm_75.cubin
ELF file    2: k.2.sm_90a.cubin
ELF file    3: k.3.sm_120.cubin
PTX file    1: k.1.sm_90.ptx
PTX file    2: k.2.sm_120f.ptx
"""


def test_an_objects_architectures() -> None:
    assert read_listed_archs(LISTING) == ("sm_75", "sm_90a", "sm_120", "compute_90", "compute_120f")
    assert read_listed_archs(LISTING.replace("\n", "\r\n")) == read_listed_archs(LISTING)
    assert read_listed_archs("cuobjdump info    : File '/x/a.o' does not contain device code\n") == ()


def test_ptx_comes_last() -> None:
    listing = "ELF file    1: k.1.sm_86.cubin\nPTX file    1: k.1.sm_90.ptx\nELF file    2: k.2.sm_90.cubin\n"
    assert read_listed_archs(listing) == ("sm_86", "sm_90", "compute_90")


def test_a_file_name_is_no_architecture() -> None:
    assert read_listed_archs("ELF file    1: my.sm_70.kernel.1.sm_86.cubin\n") == ("sm_86",)


@each_case(
    ("planned", "found", "same"),
    [
        ("sm_86 compute_90", "sm_86 compute_90", True),
        ("sm_86 sm_90", "sm_86", False),
        ("sm_86", "sm_86 sm_90", False),
        ("sm_86", "compute_86", False),
        ("sm_86", "", False),
        ("sm_120f", "sm_120", True),
        ("sm_90a", "sm_90a", True),
        ("sm_90a", "sm_90", True),  # cuobjdump 12.4 on an object of nvcc 13.0
        ("sm_90", "sm_90a", False),
        ("compute_90a", "compute_90", False),
    ],
)
def test_the_same_architectures(planned: str, found: str, same: bool) -> None:
    assert same_archs(tuple(planned.split()), tuple(found.split())) is same


@each_case(
    ("launcher", "cache"),
    [
        (("/usr/bin/ccache",), "ccache"),
        ((r"C:\tools\SCCACHE.EXE", "--x"), "sccache"),
        (("distcc",), ""),
        (("/opt/ccache/icecc",), ""),
        ((), ""),
    ],
)
def test_caches_whose_hits_can_be_counted(launcher: tuple[str, ...], cache: str) -> None:
    assert cache_of(launcher) == cache


def ccache_log(*results: str) -> str:
    lines = "".join(f"[2026-11-21T09:44:22.059936 2983 ] Result: {result}\n" for result in results)
    return f"[2026-11-21T09:44:19.395669 2983 ] Result key: 95ffo1mmmvv1ufh9ot95jn7b4vhgj3rte\n{lines}"


def test_ccache_hits() -> None:
    assert ccache_answer(ccache_log("direct_cache_hit", "local_storage_hit", "local_storage_read_hit")).hit
    assert ccache_answer(ccache_log("direct_cache_miss", "preprocessed_cache_hit")).hit
    assert ccache_answer(ccache_log("cache hit (direct)")).hit  # 3.x; not said here, from its source


def test_ccache_says_why_not() -> None:
    missed = ccache_answer(ccache_log("cache_miss", "direct_cache_miss", "local_storage_read_hit"))
    assert missed == (False, "cache_miss, direct_cache_miss")
    assert ccache_answer(ccache_log("disabled")) == (False, "disabled")
    assert ccache_answer("") == (False, "its log says nothing")


def sccache_stats(hits: dict[str, int], misses: dict[str, int], not_cached: dict[str, int]) -> str:
    stats: dict[str, Any] = {
        name: {"counts": counts, "adv_counts": {}}
        for name, counts in (("cache_hits", hits), ("cache_misses", misses), ("cache_errors", {}))
    }
    return json.dumps({"stats": {**stats, "not_cached": not_cached}, "version": "0.16.0"})


BEFORE = sccache_stats({"C/C++": 4}, {"CUDA": 1}, {"-E": 2})


def test_sccache_hits() -> None:
    after = sccache_stats({"C/C++": 4, "CUDA": 1, "PTX": 2}, {"CUDA": 1}, {"-E": 2})
    assert sccache_answer(BEFORE, after).hit


@each_case(
    ("after", "reason"),
    [
        (sccache_stats({"C/C++": 4, "PTX": 1}, {"CUDA": 2}, {"-E": 2}), "1 hits and 1 misses"),
        (
            sccache_stats({"C/C++": 4}, {"CUDA": 1}, {"-E": 2, "multiple input files": 1}),
            "multiple input files",
        ),
        (BEFORE, "it was not asked for anything"),
        ("", "its statistics cannot be read"),
        ("[]", "its statistics cannot be read"),
        ('{"stats": {"cache_hits": 3}}', "its statistics cannot be read"),
    ],
)
def test_sccache_says_why_not(after: str, reason: str) -> None:
    assert sccache_answer(BEFORE, after) == (False, reason)


def fat_binary(*images: tuple[int, int, bytes]) -> bytes:
    """A fat binary as nvcc 12.4 and 13.0 write it; an image is its kind, its architecture and its bytes."""
    body = b"".join(
        struct.pack("<HHIQIIHHIIIQQQ", kind, 0x101, 64, len(data), 0, 0, 0, 0, arch, 0, 0, 0x11, 0, 0) + data
        for kind, arch, data in images
    )
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


def test_an_object_tells_its_architectures_without_a_program() -> None:
    data = b"ELF" + fat_binary((1, 90, b"ptx"), (2, 86, b"x" * 99)) + b"--" + fat_binary((2, 120, b""))
    assert read_object_archs(data) == ("sm_86", "sm_120", "compute_90")
    assert read_object_archs(data[:40]) == ()
    assert read_object_archs(b"\x50\xed\x55\xba" * 3) == ()
