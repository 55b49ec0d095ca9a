"""When a build uses the jobserver, and the reasons when it does not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.machines import linux_facts, modern_tree, plan_of, python, settings, tool, tree
from torchbuild_tasks.catalog import GIB
from torchbuild_tasks.model import BuildPlan, Choice, Cpu, Facts, Host, Memory

NEW = (tool("cmake", "3.28.1"), tool("ninja", "1.13.2"))


def facts(**changes: Any) -> Facts:
    return linux_facts(**{"tools": NEW, **changes})


def said(plan: BuildPlan) -> Choice:
    (choice,) = [choice for choice in plan.choices if choice.name == "jobserver"]
    assert (choice.value == "on") == (plan.jobserver is not None)
    return choice


def jobs(plan: BuildPlan) -> list[str]:
    return [op.value for op in plan.env if op.name == "MAX_JOBS"]


@pytest.mark.parametrize("checkout", [tree(), modern_tree(), tree(version="1.13.0a0")])
def test_a_new_ninja_takes_jobs_while_the_memory_lasts(checkout: Any) -> None:
    plan = plan_of(facts(tree=checkout, cpu=Cpu(cores=32)))
    because = said(plan).because
    assert said(plan).value == "on"
    assert "ninja 1.13.2 (/usr/bin/ninja)" in because and "32 cores" in because
    assert plan.jobserver is not None
    assert (plan.jobserver.cores, plan.jobserver.largest) == (32, 2 * GIB)


def test_the_number_stays_in_the_env_file_for_builds_by_hand() -> None:
    plan = plan_of(facts(memory=Memory(available=9 * GIB)))
    assert said(plan).value == "on" and jobs(plan) == ["4"]
    assert "instead of 4" in said(plan).because


def test_a_number_that_is_the_same_is_not_named() -> None:
    plan = plan_of(facts(memory=Memory(available=64 * GIB)))
    assert said(plan).value == "on" and "instead of" not in said(plan).because


@pytest.mark.parametrize("version", ["1.11.1", "1.12.99"])
def test_an_old_ninja_gets_the_number(version: str) -> None:
    plan = plan_of(facts(tools=(NEW[0], tool("ninja", version))))
    assert (said(plan).value, said(plan).source) == ("off", "default")
    assert version in said(plan).because and ">=1.13" in said(plan).because
    assert jobs(plan) == ["8"] and plan.verdict == "ok"


def test_the_ninja_of_the_builds_python_is_found_first() -> None:
    own = {"pip": "24.0", "setuptools": "69.5", "wheel": "0.43", "numpy": "1.26.4"}
    old = plan_of(facts(pythons=(python(packages={**own, "ninja": "1.11.1.4"}),)))
    assert said(old).value == "off" and "1.11.1.4 (of /venv/bin/python)" in said(old).because
    new = plan_of(linux_facts(pythons=(python(packages={**own, "ninja": "1.13.0"}),)))
    assert said(new).value == "on"


def test_one_that_is_still_to_be_installed_is_new() -> None:
    plan = plan_of(facts(tools=(NEW[0],)))
    assert said(plan).value == "on" and "from PyPI" in said(plan).because


@pytest.mark.parametrize(
    ("flags", "environ", "values", "source"),
    [
        ({"jobs": 3}, {}, {}, "flag"),
        ({"set": ("MAX_JOBS=6",)}, {}, {}, "flag"),
        ({}, {"MAX_JOBS": "4"}, {}, "environment"),
        ({}, {"CMAKE_BUILD_PARALLEL_LEVEL": "4"}, {}, "environment"),
        ({}, {}, {"jobs": 5}, "torchbuild.toml"),
    ],
)
def test_a_number_of_the_users_is_the_end_of_it(
    flags: dict[str, Any], environ: dict[str, str], values: dict[str, Any], source: str
) -> None:
    choice = said(plan_of(facts(environ=environ), settings(values), **flags))
    assert (choice.value, choice.source) == ("off", source)
    assert choice.because.startswith("you set a number of jobs")


def test_it_can_be_switched_off() -> None:
    assert said(plan_of(facts(), jobserver="off")).source == "flag"
    assert said(plan_of(facts(), settings({"jobserver": "off"}))).source == "torchbuild.toml"
    assert said(plan_of(facts(), settings({"jobserver": "off"}), jobserver="auto")).value == "on"


def test_more_jobs_than_the_memory_holds_switch_it_off_are_warned_of_and_obeyed() -> None:
    plan = plan_of(facts(memory=Memory(available=5 * GIB)), jobs=8)
    assert said(plan).value == "off" and plan.verdict == "warn" and jobs(plan) == ["8"]


def test_unknown_memory_cannot_be_watched() -> None:
    assert "not known" in said(plan_of(facts(memory=Memory()))).because


@pytest.mark.parametrize(
    ("checkout", "environ", "make", "because"),
    [
        (tree(version="1.10.0"), {}, "4.4", "always passes a -j"),
        (tree(version=None), {}, "4.4", ""),
        (tree(), {"CMAKE_GENERATOR": "Unix Makefiles"}, "4.4", "always passes a -j to make"),
        (modern_tree(), {"CMAKE_GENERATOR": "Unix Makefiles"}, "4.3", "make 4.3"),
        (modern_tree(), {"CMAKE_GENERATOR": "Unix Makefiles"}, "4.4.1", ""),
        (modern_tree(), {"CMAKE_GENERATOR": "Ninja Multi-Config"}, "4.4", "Ninja Multi-Config"),
    ],
)
def test_what_each_era_and_generator_can(
    checkout: Any, environ: dict[str, str], make: str, because: str
) -> None:
    choice = said(plan_of(facts(tree=checkout, environ=environ, tools=(*NEW, tool("make", make)))))
    assert (choice.value == "off") == bool(because) and because in choice.because


def test_an_sccache_of_the_users_cannot_be_watched() -> None:
    own = {"CMAKE_CXX_COMPILER_LAUNCHER": "/opt/bin/sccache"}
    assert "sccache" in said(plan_of(facts(environ=own))).because
    ours = facts(tools=(*NEW, tool("sccache", "0.16.0")))
    assert said(plan_of(ours)).value == "on"
    windows = facts(tools=(*NEW, tool("sccache", "0.16.0")), host=Host(os="windows", arch="x86_64"))
    assert "sccache" in said(plan_of(windows)).because


def test_cuda_counts_by_its_threads() -> None:
    plan = plan_of(facts(), cuda=True, set=("TORCH_NVCC_FLAGS=--threads 2",))
    assert plan.jobserver is not None and plan.jobserver.largest == 8 * GIB
