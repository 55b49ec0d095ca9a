"""What the programs of a pre-flight said; every text here was said by one, unless noted."""

from __future__ import annotations

import json
from typing import Any

import pytest

from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.core.cuda.preflight_answers import (
    cache_of,
    ccache_answer,
    find_cause,
    listed_archs,
    same_archs,
    sccache_answer,
)

ROWS = load_catalog().toolchain

# cuobjdump 13.5 on an object of nvcc 13.0
LISTING = """\
ELF file    1: k.1.sm_75.cubin
ELF file    2: k.2.sm_90a.cubin
ELF file    3: k.3.sm_120.cubin
PTX file    1: k.1.sm_90.ptx
PTX file    2: k.2.sm_120f.ptx
"""


def test_an_objects_architectures() -> None:
    assert listed_archs(LISTING) == ("sm_75", "sm_90a", "sm_120", "compute_90", "compute_120f")
    assert listed_archs(LISTING.replace("\n", "\r\n")) == listed_archs(LISTING)
    assert listed_archs("cuobjdump info    : File '/x/a.o' does not contain device code\n") == ()


def test_ptx_comes_last() -> None:
    listing = "ELF file    1: k.1.sm_86.cubin\nPTX file    1: k.1.sm_90.ptx\nELF file    2: k.2.sm_90.cubin\n"
    assert listed_archs(listing) == ("sm_86", "sm_90", "compute_90")


def test_a_file_name_is_no_architecture() -> None:
    assert listed_archs("ELF file    1: my.sm_70.kernel.1.sm_86.cubin\n") == ("sm_86",)


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
    ("launcher", "cache"),
    [
        (("/usr/bin/ccache",), "ccache"),
        ((r"C:\tools\SCCACHE.EXE", "--x"), "sccache"),
        (("distcc",), ""),
        (("/opt/ccache/icecc",), ""),
        ((), ""),
    ],
)
def test_which_caches_can_be_asked(launcher: tuple[str, ...], cache: str) -> None:
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
        for name, counts in (("cache_hits", hits), ("cache_misses", misses))
    }
    return json.dumps({"stats": {**stats, "not_cached": not_cached}, "version": "0.16.0"})


BEFORE = sccache_stats({"C/C++": 4}, {"CUDA": 1}, {"-E": 2})


def test_sccache_hits() -> None:
    after = sccache_stats({"C/C++": 4, "CUDA": 1, "PTX": 2}, {"CUDA": 1}, {"-E": 2})
    assert sccache_answer(BEFORE, after).hit


@pytest.mark.parametrize(
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


# What was said, and what the cause has to name. Those marked * were not said here but stand in the
# row's source.
CAUSES = {
    "host_config.h:137:2: error: #error -- unsupported GNU version! gcc versions later than 15 are not "
    "supported! The nvcc flag ...": "gcc up to 15",
    "host_config.h:151:2: error: #error -- unsupported clang version! clang version must be less than 21 and "
    "greater than 3.2 .": "older than 21",
    # *
    "C:\\CUDA\\include\\crt/host_config.h(153): fatal error C1189: #error:  -- unsupported Microsoft Visual "
    "Studio version! Only the versions between 2017 and 2022 (inclusive) are supported!": "2017 and 2022",
    "nvcc fatal   : Unsupported gpu architecture 'compute_120'": "compute_120",
    "ptxas fatal   : Value 'sm_35' is not defined for option 'gpu-name'": "ptxas knows no sm_35",
    "<command-line>: fatal error: cuda_runtime.h: No such file or directory": "headers",
    "../include/cuda_fp16.h:4100:10: fatal error: nv/target: No such file or directory": "headers",
    # *
    "fatal error C1083: Cannot open include file: 'cuda_runtime.h': No such file or directory": "headers",
    "sh: 1: cicc: not found": "a program of its own toolkit",
    "sh: 1: ptxas: not found": "a program of its own toolkit",
    # *
    "'cicc' is not recognized as an internal or external command,": "a program of its own toolkit",
    # *
    "nvcc fatal   : Cannot find compiler 'cl.exe' in PATH": "does not find cl.exe",
    "/usr/bin/nix: No such file or directory\n"
    "nvcc fatal   : Failed to preprocess host compiler properties.": "cannot run its host compiler",
    # *
    "/c++/11/bits/std_function.h:435:145: error: parameter packs not expanded with '...':": "libstdc++",
    "preflight.cpp:29:1: fatal error: writing to /tmp/ccq7EBD6.s: No space left on device": "disk is full",
    "Killed": "memory runs out",
    "nvcc was ended by signal 9": "memory runs out",
    # *
    "nvcc error   : 'cicc' died due to signal 9 (Kill signal)": "memory runs out",
    # *
    "g++: fatal error: Killed signal terminated program cc1plus": "memory runs out",
    "Segmentation fault": "crashed",
    "cannot start /opt/sccache: [Errno 2] No such file or directory: '/opt/sccache'": "cache does not run",
    "ccache: error: Failed to create directory /proc/nix/tmp: No such file": "cache does not run",
    'ccache: error: Could not find compiler "nix" in PATH': "does not find the compiler",
    "ccache: error: execute_noreturn of /nix failed: No such file or directory": "does not find the compiler",
    "sccache: error: failed to execute compile\n"
    "sccache: caused by: cannot find binary path": "the compiler behind",
    "g++: error: unrecognized command-line option \u2018-std=c++99\u2019; did you mean": ": -std=c++99",
    "nvcc fatal   : Unknown option '-foo'": ": -foo",
    "nvcc fatal   : Value 'c++99' is not defined for option 'std'": ": std",
}


@pytest.mark.parametrize(("said", "cause"), CAUSES.items())
def test_a_failure_is_explained(said: str, cause: str) -> None:
    found = find_cause(f"In file included from preflight.cu:2:\n{said}\ncompilation terminated.", ROWS)
    assert found is not None
    assert cause in found[0]
    assert "{1}" not in found[0] + found[1]


def test_every_row_explains_something() -> None:
    explained = {found[0].partition("{")[0] for said in CAUSES if (found := find_cause(said, ROWS))}
    for row in ROWS:
        first = row.cause.partition("{1}")[0]
        assert any(cause.startswith(first) for cause in explained), row.pattern


def test_the_number_of_the_limit_is_in_the_fix() -> None:
    found = find_cause("unsupported GNU version! gcc versions later than 13 are not supported!", ROWS)
    assert found is not None
    assert "CUDAHOSTCXX=/usr/bin/g++-13" in found[1]


def test_not_every_failure_is_known() -> None:
    assert find_cause("preflight.cu:3:1: error: expected unqualified-id", ROWS) is None
    # A path that holds such words is none of them.
    assert find_cause("/home/Killed/cicc: error: nothing", ROWS) is None
