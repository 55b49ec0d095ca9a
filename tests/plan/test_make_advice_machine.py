"""Advice on compilers and Pythons is followed: with what it installs, the finding is gone."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.version import Version

from tests.support.cuda import cuda_facts, gpu, toolkit
from tests.support.examples import examples
from tests.support.machines import linux_facts, plan_of, python, tool, tree
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.model import BuildPlan, Facts, Finding, Host, Tool, Toolkit
from torchbuild_tasks.values import replace

ROWS = load_catalog()
TORCHES = [row.latest for row in ROWS.torch]
SYSTEMS = ["Some Linux", *(name for row in ROWS.installer for name in row.distributions if name != "Windows")]
GCC = [
    "4.8.5",
    "5.4.0",
    "7.5.0",
    "8.5.0",
    "9.4.0",
    "10.2.1",
    "11.2.0",
    "11.5.0",
    "12.2.0",
    "13.3.0",
    "14.2.0",
    "15.2.1",
]
TOOLKIT_IDS = ("cuda-toolkit", "architectures", "cuda-libc", "host-compiler")
LAST = {
    4: 9,
    5: 5,
    6: 5,
    7: 5,
    8: 5,
    9: 5,
    10: 5,
    11: 5,
    12: 5,
    13: 4,
    14: 3,
    15: 2,
    16: 1,
}  # minor releases of each
# As apt, dnf (three ways), pacman, zypper and conda call a GCC.
PACKAGE = re.compile(r"(?:\bg\+\+-|toolset-|\bgcc|gxx_linux-\w+=|for g\+\+-)(\d+)")
# A host compiler and the toolkit that takes it.
BOTH = re.compile(r"Install GCC (\d+), which CUDA (\S+) takes \((.+?)\), (?:then CUDA \S+ \(http|then take)")
CLANG = re.compile(r"\bclang-?(\d+)")


def machine(torch: str, system: str, gcc: list[str], cuda: str) -> Facts:
    compilers = [
        each for version in gcc for each in gnu(version, "" if version == gcc[0] else f"-{major(version)}")
    ]
    facts = linux_facts() if not cuda else cuda_facts(of_row(cuda), gpus=(gpu("7.0"),))
    host = Host(os="linux", arch="x86_64", distribution=system, libc="glibc 2.31")
    return replace(facts, host=host, compilers=tuple(compilers), tree=tree(version=torch))


def of_row(version: str) -> Toolkit:
    row = next(row for row in ROWS.cuda if row.version == version)
    return toolkit(version, archs=row.archs, gcc=row.gcc, clang=row.clang)


def gnu(version: str, suffix: str = "") -> tuple[Tool, Tool]:
    return tool("g++", version, f"/usr/bin/g++{suffix}"), tool("gcc", version, f"/usr/bin/gcc{suffix}")


def major(version: str) -> int:
    return Version(version).major


def told(plan: BuildPlan, *ids: str) -> list[Finding]:
    return [finding for finding in plan.findings if finding.id in ids and finding.status in ("warn", "error")]


@settings(max_examples=examples(12, 300))
@given(
    torch=st.sampled_from(TORCHES),
    system=st.sampled_from(SYSTEMS),
    gcc=st.lists(st.sampled_from(GCC), max_size=2, unique_by=major),
    cuda=st.sampled_from(["", *(row.version for row in ROWS.cuda)]),
    named=st.sampled_from(["", "", "g++"]),
)
def test_a_compiler_that_is_advised_ends_the_finding(
    torch: str, system: str, gcc: list[str], cuda: str, named: str
) -> None:
    facts = machine(torch, system, gcc, cuda)
    facts = replace(facts, environ={"CXX": named} if named and gcc else {})
    for finding in told(plan_of(facts, cuda=bool(cuda)), "compiler", "host-compiler"):
        if BOTH.search(finding.fix):  # a toolkit, too: followed below
            continue
        if at := re.search(r"--set CXX=(/\S+?)\.?$", finding.fix):
            after = plan_of(facts, cuda=bool(cuda), set=(f"CXX={at[1]}",))
        else:
            package = PACKAGE.search(finding.fix)
            if package is None:  # the system's own, whichever that is; or only another toolkit helps
                assert not gcc or re.search(r"CUDA toolkit|cuda-toolkit", finding.fix), finding
                continue
            version = f"{package[1]}.{LAST[int(package[1])]}.0"
            more = gnu(version, f"-{package[1]}")
            given = (f"CXX={more[0].path}",) if "--set CXX" in finding.fix else ()
            given = given or ((f"CUDAHOSTCXX={more[0].path}",) if named else ())
            after = plan_of(replace(facts, compilers=(*facts.compilers, *more)), cuda=bool(cuda), set=given)
        left = told(after, finding.id)
        assert not [each for each in left if each.status == finding.status], (finding, left)


@settings(max_examples=examples(25, 300))
@given(torch=st.sampled_from(TORCHES), minor=st.integers(4, 15))
def test_a_python_that_is_advised_ends_the_finding(torch: str, minor: int) -> None:
    facts = linux_facts(pythons=(python(version=f"3.{minor}.0"),), tree=tree(version=torch))
    for finding in told(plan_of(facts), "python"):
        said = re.search(r"python install (\S+), and name it: --python (\S+)$", finding.fix)
        old = re.search(r"conda-forge python=(\S+), and name the one in it: --python PATH$", finding.fix)
        assert said is None or said[1] == said[2], finding
        series = said[1] if said else old[1] if old else ""
        one = python(version=f"{series}.9", executable=f"/home/me/py{series}/bin/python")
        after = plan_of(
            replace(facts, pythons=(*facts.pythons, one)), python=said[2] if said else one.executable
        )
        assert not told(after, "python"), (finding, told(after, "python"))


def test_where_no_gcc_compiles_torch_and_is_taken_by_nvcc_a_toolkit_is_advised() -> None:
    plan = plan_of(machine("2.3.1", "Ubuntu 24.04", ["10.2.1"], "9.2"), cuda=True)
    (finding,) = told(plan, "host-compiler")
    assert "CUDA 9.2 takes GCC up to 7" in finding.text
    assert finding.fix.startswith("Take --cuda-toolkit pypi:12.")


def errors(plan: BuildPlan) -> list[Finding]:
    return [each for each in told(plan, *TOOLKIT_IDS) if each.status == "error"]


def with_both(facts: Facts, fix: str) -> BuildPlan:
    """Plan with the compiler and the toolkit that a fix says to install and to name."""
    match = BOTH.search(fix)
    assert match, fix
    (gcc, version), name = match.group(1, 2), re.search(r"--set (\w+)=PATH", fix)
    assert name, fix
    more = gnu(f"{gcc}.{LAST[int(gcc)]}.0", f"-{gcc}")
    word = re.search(r"take --cuda-toolkit (\S+)", fix)
    assert facts.cuda
    kits = facts.cuda.toolkits if word else (*facts.cuda.toolkits, of_row(version))
    after = replace(facts, compilers=(*facts.compilers, *more), cuda=replace(facts.cuda, toolkits=kits))
    return plan_of(
        after, cuda=True, cuda_toolkit=word[1] if word else version, set=(f"{name[1]}={more[0].path}",)
    )


@pytest.mark.parametrize(
    ("torch", "system", "gcc", "cuda", "fix"),
    [
        ("1.6.0", "Ubuntu 22.04", "11.2.0", "11.3", "Install GCC 8, which CUDA 10.2 takes (conda create"),
        ("1.2.0", "Ubuntu 20.04", "9.4.0", "11.0", "(sudo apt install g++-7), then CUDA 10.0 (http"),
    ],
)
def test_a_toolkit_and_its_host_compiler_are_advised_together(
    torch: str, system: str, gcc: str, cuda: str, fix: str
) -> None:
    """No toolkit of this torch takes the compiler that is here, and none that is here builds this torch."""
    facts = machine(torch, system, [gcc], cuda)
    findings = errors(plan_of(facts, cuda=True))
    assert len(findings) >= 1
    for finding in findings:
        assert fix in finding.fix, finding
        assert not errors(with_both(facts, finding.fix))


def test_a_host_compiler_that_is_named_by_itself_is_named_anew() -> None:
    facts = machine("1.6.0", "Ubuntu 22.04", ["11.2.0"], "11.3")
    facts = replace(facts, environ={"CUDAHOSTCXX": "/usr/bin/g++"})
    for finding in errors(plan_of(facts, cuda=True)):
        assert finding.fix.endswith("--set CUDAHOSTCXX=PATH."), finding
        assert not errors(with_both(facts, finding.fix))


@settings(max_examples=examples(12, 300))
@given(
    torch=st.sampled_from(TORCHES),
    system=st.sampled_from(SYSTEMS),
    gcc=st.lists(st.sampled_from(GCC), min_size=1, max_size=2, unique_by=major),
    cuda=st.sampled_from([row.version for row in ROWS.cuda]),
)
def test_a_toolkit_and_a_compiler_that_are_advised_end_the_finding(
    torch: str, system: str, gcc: list[str], cuda: str
) -> None:
    facts = machine(torch, system, gcc, cuda)
    for finding in errors(plan_of(facts, cuda=True)):
        if finding.fix.startswith("Install GCC "):
            left = errors(with_both(facts, finding.fix))
            assert not [each for each in left if each.id == finding.id], (finding, left)
