"""Each way out that a fix names is taken, on machines with several toolkits, compilers and GPUs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.plan.cuda.test_advice import CAPABILITIES, DRIVERS, RELEASES, TORCHES, of_row, toolkit_findings
from tests.support.cuda import cuda_facts, driver, gpu
from tests.support.examples import examples
from tests.support.machines import plan_of, python, tool, tree
from tests.support.windows import toolset, windows, windows_facts
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.model import Cuda, Facts, GpuSeen, Host, Tool, Toolkit
from torchbuild_tasks.values import replace

ROWS = load_catalog()
SYSTEMS = ["Ubuntu 22.04.5 LTS", "Debian GNU/Linux 12", "Fedora Linux 42", "Rocky Linux 8.10", "Some Linux"]
GCC = ["7.5.0", "9.4.0", "10.2.1", "11.4.0", "12.2.0", "13.3.0", "15.1.0"]
CARDS = CAPABILITIES[1:]  # no driver serves the oldest beside one of today
PROGRAM_FILES = r"C:\Program Files\NVIDIA GPU Computing Toolkit\CUDA\v"
# What has become of a toolkit: whole, on PATH, with a cuDNN, in conda, without its runtime, without nvcc, or
# without what torch links with.
KINDS: dict[str, dict[str, Any]] = {
    "whole": {},
    "on PATH": {"found_via": "PATH"},
    "with cuDNN": {"cudnn": "9.8.0"},
    "of conda": {"path": "/env", "nvcc": "/env/bin/nvcc", "found_via": "CONDA_PREFIX"},
    "half": {"libraries": None},
    "without nvcc": {"nvcc": None},
    "lacking": {"lacks": ("cublas", "cufft")},
}
TOOLKIT = re.compile(r"--cuda-toolkit (\"[^\"]+\"|'[^']+'|[^\s;)]+)")


class Way(NamedTuple):
    """What a sentence says to do: the machine after it, and the flags."""

    words: str
    facts: Facts
    flags: dict[str, Any]


def ways(facts: Facts, fix: str) -> Iterator[Way]:
    """Yield the ways that name a toolkit, NVIDIA's archive, another torch or a driver."""
    for words in re.split(r"(?:; or,? |\. Or |\. )(?=[A-Za-z])", fix):
        if "nstall GCC" in words:  # tests/plan/test_make_advice_machine.py
            continue
        named = TOOLKIT.search(words)
        word = named[1].strip("\"'.") if named and "PATH" not in named[1] else None
        flags = {"cuda_toolkit": word} if word else {}
        now = facts
        if update := re.search(r"nstall driver (\d[\d.]*) or later", words):
            now = with_cuda(now, driver=driver(update[1].rstrip(".")))
        if torch := re.search(r"torch (\d+\.\d+): it fits with CUDA", words):
            row = next(row for row in ROWS.torch if row.version == torch[1])
            now = replace(now, tree=replace(now.tree, version=row.latest))
            if "(--python)" in words:
                now = replace(now, pythons=(python(version="3.12.3"),))
        if archive := re.search(r"CUDA (\d+\.\d+) \(http", words):
            kit = moved(of_row(archive[1])) if facts.host.os == "windows" else of_row(archive[1])
            kits = tuple(each for each in facts.cuda.toolkits if each.path != kit.path) if facts.cuda else ()
            now, flags = with_cuda(now, toolkits=(*kits, kit)), {"cuda_toolkit": kit.path}
        if now is not facts or flags:
            yield Way(words, now, flags)


def with_cuda(facts: Facts, **changes: Any) -> Facts:
    return replace(facts, cuda=replace(facts.cuda or Cuda(), **changes))


def moved(kit: Toolkit) -> Toolkit:
    root = PROGRAM_FILES + str(kit.version)
    return replace(kit, path=root, nvcc=rf"{root}\bin\nvcc.exe", libraries=rf"{root}\lib\x64")


def follow_all(facts: Facts) -> None:
    """Hold each way against the plan that it leads to: its finding is gone, and nothing new is an error."""
    before = toolkit_findings(plan_of(facts, cuda=True))
    known = {each.id for each in before}
    for finding in before:
        for way in ways(facts, finding.fix):
            if "this may stay" in way.words:  # and another torch, if one is known, is named beside it
                continue
            after = toolkit_findings(plan_of(way.facts, cuda=True, **way.flags))
            same = [each for each in after if each.id == finding.id]
            left = [each for each in same if each.status in (finding.status, "error")]
            assert not left, (finding, way.words, left)
            worse = [each for each in after if each.status == "error" or each.id == "gpu-code"]
            new = [each for each in worse if each.id not in known and "take torch" not in finding.fix]
            assert not new, (finding, way.words, new)


def cards(capabilities: list[str]) -> tuple[GpuSeen, ...]:
    return tuple(
        gpu(each, bus=f"0000:0{place}:00.0", uuid=f"GPU-{place}") for place, each in enumerate(capabilities)
    )


def gnu(versions: list[str]) -> tuple[Tool, ...]:
    found: list[Tool] = []
    for version in versions:
        suffix = f"-{version.partition('.')[0]}" if found else ""
        found += (
            tool("g++", version, f"/usr/bin/g++{suffix}"),
            tool("gcc", version, f"/usr/bin/gcc{suffix}"),
        )
    return tuple(found)


@settings(max_examples=examples(6, 300))
@given(
    torch=st.sampled_from(TORCHES),
    kits=st.lists(
        st.tuples(st.sampled_from(RELEASES), st.sampled_from(sorted(KINDS))),
        max_size=3,
        unique_by=lambda each: each[0],
    ),
    capabilities=st.lists(st.sampled_from(CARDS), max_size=2, unique=True),
    loaded=st.sampled_from(DRIVERS),
    gcc=st.lists(st.sampled_from(GCC), min_size=1, max_size=2, unique=True),
    glibc=st.sampled_from(["2.28", "2.36", "2.41", "2.42"]),
    system=st.sampled_from(SYSTEMS),
    arch=st.sampled_from(["x86_64", "aarch64"]),
)
def test_each_way_leads_out(
    torch: str,
    kits: list[tuple[str, str]],
    capabilities: list[str],
    loaded: str,
    gcc: list[str],
    glibc: str,
    system: str,
    arch: str,
) -> None:
    here = tuple(replace(of_row(version), **KINDS[kind]) for version, kind in kits)
    host = Host(os="linux", arch=arch, libc=f"glibc {glibc}", distribution=system)
    facts = cuda_facts(
        *{kit.path: kit for kit in here}.values(), gpus=cards(capabilities), compilers=gnu(gcc), host=host
    )
    facts = replace(facts, tree=tree(version=torch))
    follow_all(with_cuda(facts, driver=driver(loaded)) if capabilities else facts)


@settings(max_examples=examples(4, 200))
@given(
    torch=st.sampled_from(TORCHES),
    kits=st.lists(st.sampled_from(RELEASES), max_size=2, unique=True),
    capabilities=st.lists(st.sampled_from(CARDS), max_size=2, unique=True),
    sets=st.lists(
        st.sampled_from(["14.29.30133", "14.38.33130", "14.44.35207", "14.50.35717"]),
        min_size=1,
        max_size=3,
        unique=True,
    ),
    loaded=st.sampled_from(["472.12", "551.61", "572.16", "581.10"]),
)
def test_and_on_windows(
    torch: str, kits: list[str], capabilities: list[str], sets: list[str], loaded: str
) -> None:
    seen = Cuda(toolkits=tuple(moved(of_row(each)) for each in kits), gpus=cards(capabilities))
    seen = replace(seen, driver=driver(loaded) if capabilities else None)
    facts = windows_facts(cuda=seen, windows=windows(*map(toolset, sets)))
    follow_all(replace(facts, tree=replace(facts.tree, version=torch)))
