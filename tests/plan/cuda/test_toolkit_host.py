"""Host compilers that nvcc takes, and what happens when the first one is too new."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.cuda import cuda_facts, toolkit
from tests.support.machines import found, plan_of, statuses, tool, tree
from torchbuild_tasks.model import BuildPlan, Tool
from torchbuild_tasks.values import replace

GXX_14, GCC_14 = tool("g++", "14.2.0", "/usr/bin/g++"), tool("gcc", "14.2.0", "/usr/bin/gcc")
GXX_13, GCC_13 = tool("g++", "13.3.0", "/usr/bin/g++-13"), tool("gcc", "13.3.0", "/usr/bin/gcc-13")


def plan(*compilers: Tool, version: str = "12.4", **flags: Any) -> BuildPlan:
    facts = cuda_facts(toolkit(version), compilers=compilers)
    return plan_of(facts, cuda=True, **{"arch": "8.6", **flags})


def env(made: BuildPlan) -> dict[str, str]:
    return {op.name: op.value for op in made.env if op.op == "set"}


def test_the_first_compiler_when_nvcc_takes_it() -> None:
    made = plan(GXX_14, GCC_14, GXX_13, GCC_13, version="12.8")
    assert {env(made)[name] for name in ("CXX", "CUDAHOSTCXX")} == {"/usr/bin/g++"}


def test_a_fitting_one_elsewhere_is_chosen_with_the_reason() -> None:
    made = plan(GXX_14, GCC_14, GXX_13, GCC_13)
    values = env(made)
    assert (values["CXX"], values["CC"], values["CUDAHOSTCXX"]) == (
        "/usr/bin/g++-13",
        "/usr/bin/gcc-13",
        "/usr/bin/g++-13",
    )
    (choice,) = [choice for choice in made.choices if choice.name == "CXX"]
    assert "g++ 14.2.0 comes first but CUDA 12.4 takes GCC up to 13" in choice.because


def test_a_cpu_build_takes_the_first() -> None:
    made = plan_of(cuda_facts(toolkit("12.4"), compilers=(GXX_14, GCC_14, GXX_13, GCC_13)))
    assert env(made)["CXX"] == "/usr/bin/g++"
    assert "CUDAHOSTCXX" not in env(made)


def test_none_that_fits_is_refused_with_what_to_install() -> None:
    made = plan(GXX_14, GCC_14)
    finding = found(made.findings, "host-compiler")
    assert (finding.status, made.verdict) == ("error", "refuse")
    assert "g++ 14.2.0, and CUDA 12.4 takes GCC up to 13" in finding.text
    assert "g++-12" in finding.fix  # of Debian 12


def test_one_named_by_the_user_is_kept_and_nvcc_gets_another() -> None:
    made = plan(GXX_14, GCC_14, GXX_13, GCC_13, set=("CXX=/usr/bin/g++",))
    assert (env(made)["CXX"], env(made)["CUDAHOSTCXX"]) == ("/usr/bin/g++", "/usr/bin/g++-13")
    assert found(made.findings, "host-compiler").fix == "To have one for both: --set CXX=/usr/bin/g++-13"


def test_the_c_compiler_is_named_with_it_where_it_is_named_already() -> None:
    made = plan(GXX_14, GCC_14, GXX_13, GCC_13, set=("CXX=/usr/bin/g++", "CC=/usr/bin/gcc"))
    fix = found(made.findings, "host-compiler").fix
    assert fix.endswith("--set CC=/usr/bin/gcc-13 --set CXX=/usr/bin/g++-13")


def test_a_package_that_brings_a_doubted_release_is_not_advised() -> None:
    """gcc-toolset-10 of RHEL 8 is GCC 10.3, which stops in its own <chrono> with CUDA."""
    facts = cuda_facts(toolkit("11.8"), compilers=(tool("g++", "8.5.0"), tool("gcc", "8.5.0")))
    host = replace(facts.host, distribution="Rocky Linux 8.10")
    made = plan_of(replace(facts, host=host, tree=tree(version="2.4.0")), cuda=True)
    assert "gcc-toolset-11" in found(made.findings, "compiler").fix
    made = plan_of(replace(facts, host=host, tree=tree(version="2.4.0")))
    assert "gcc-toolset-10" in found(made.findings, "compiler").fix


def test_a_host_compiler_named_by_the_user_that_nvcc_refuses() -> None:
    """One that fits and is here is named; installing one changes nothing while the variable names another."""
    made = plan(GXX_13, GCC_13, GXX_14, set=("CUDAHOSTCXX=/usr/bin/g++",))
    finding = found(made.findings, "host-compiler")
    assert finding.status == "error" and finding.fix.endswith("--set CUDAHOSTCXX=/usr/bin/g++-13")
    followed = plan(GXX_13, GCC_13, GXX_14, set=("CUDAHOSTCXX=/usr/bin/g++-13",))
    assert not {"warn", "error"}.intersection(statuses(followed.findings, "host-compiler"))
    alone = found(plan(GXX_14, GCC_14, set=("CUDAHOSTCXX=/usr/bin/g++",)).findings, "host-compiler")
    assert "Install" in alone.fix and "name it: --set CUDAHOSTCXX=PATH" in alone.fix


def test_a_host_compiler_in_nvccs_flags_is_taken_out_of_them() -> None:
    flags = ("CMAKE_CUDA_FLAGS=-ccbin=/usr/bin/g++",)
    assert found(plan(GXX_13, GXX_14, set=flags).findings, "host-compiler").fix.startswith("Take -ccbin out")
    alone = found(plan(GXX_14, GCC_14, set=flags).findings, "host-compiler")
    assert "take -ccbin out of CMAKE_CUDA_FLAGS" in alone.fix


def test_nvcc_accepts_any_with_its_switch() -> None:
    made = plan(GXX_14, GCC_14, set=("TORCH_NVCC_FLAGS=-allow-unsupported-compiler",))
    assert statuses(made.findings, "host-compiler") == ["warn"]
    assert env(made)["CUDAHOSTCXX"] == "/usr/bin/g++"


@pytest.mark.parametrize(("limit", "status"), [(12, ["error"]), (13, [])])
def test_the_header_of_the_toolkit_beats_the_table(limit: int, status: list[str]) -> None:
    facts = cuda_facts(toolkit("12.4", gcc=limit), compilers=(GXX_13, GCC_13))
    assert statuses(plan_of(facts, cuda=True, arch="8.6").findings, "host-compiler") == status


def test_clang_has_a_limit_of_its_own() -> None:
    clang = (tool("clang++", "21.0.0", "/usr/bin/clang++"), tool("clang", "21.0.0", "/usr/bin/clang"))
    facts = cuda_facts(toolkit("13.0", clang=20), compilers=clang)
    finding = found(plan_of(facts, cuda=True, arch="8.6").findings, "host-compiler")
    assert "takes clang up to 20" in finding.text
    assert "g++-" in finding.fix  # of which every system has one that fits
