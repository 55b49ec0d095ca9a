"""What the user sets is obeyed, or the plan says that it is not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.machines import linux_facts, modern_tree, plan_of, tool, tree
from tests.support.windows import windows_facts
from torchbuild_tasks.model import BuildPlan
from torchbuild_tasks.values import replace

VISUAL_STUDIO = "CMAKE_GENERATOR=Visual Studio 17 2022"


def told(plan: BuildPlan, word: str) -> list[str]:
    findings = (each for each in plan.findings if each.status in ("warn", "error"))
    return [each.status for each in findings if word in each.text]


def operation(plan: BuildPlan, name: str) -> str | None:
    return next((each.value for each in plan.env if each.name == name and each.op == "set"), None)


def test_ninja_switched_off_is_make() -> None:
    facts = linux_facts(tree=tree(version="2.6.0"))
    plan = plan_of(facts, set=("USE_NINJA=0",))
    assert operation(plan, "CMAKE_GENERATOR") == "Unix Makefiles"
    assert not told(plan, "USE_NINJA")
    assert told(plan_of(facts, set=("USE_NINJA=0", "CMAKE_GENERATOR=Ninja")), "has no effect") == ["warn"]
    assert told(plan_of(windows_facts(), set=("USE_NINJA=0",)), "USE_NINJA=0") == ["warn"]


@pytest.mark.parametrize(("environ", "status"), [({}, "error"), ({"LDFLAGS": "-fuse-ld=bfd"}, "warn")])
def test_two_linkers_are_told(environ: dict[str, str], status: str) -> None:
    here = (*linux_facts().tools, tool("mold", "2.30.0"))
    facts = linux_facts(tools=here, environ=environ)
    given = () if environ else ("LDFLAGS=-fuse-ld=bfd",)
    assert told(plan_of(facts, linker="mold", set=given), "-fuse-ld=bfd") == [status]
    assert not told(plan_of(facts, linker="mold", set=("LDFLAGS=-fuse-ld=mold",)), "-fuse-ld")


def test_the_jobs_by_cmakes_variable() -> None:
    level = "CMAKE_BUILD_PARALLEL_LEVEL"
    facts = linux_facts(tree=modern_tree())
    assert told(plan_of(facts, jobs=8, set=(f"{level}=3",)), "contradict") == ["error"]
    alone = plan_of(facts, set=(f"{level}=3",))
    assert (operation(alone, "MAX_JOBS"), operation(alone, level)) == ("3", "3")
    below = plan_of(replace(facts, environ={level: "3"}), jobs=8)
    assert (operation(below, "MAX_JOBS"), operation(below, level)) == ("8", "8")


def test_libtorch_alone_is_refused() -> None:
    facts = linux_facts(tree=tree(version="2.6.0"))
    assert told(plan_of(facts, set=("BUILD_LIBTORCH_WHL=1",)), "BUILD_LIBTORCH_WHL=1") == ["error"]
    assert not told(plan_of(facts, set=("BUILD_LIBTORCH_WHL=0",)), "BUILD_LIBTORCH_WHL")


def test_a_variable_beside_a_wheel_is_told() -> None:
    facts = linux_facts()
    assert told(plan_of(facts, from_wheel="auto", set=("USE_DISTRIBUTED=0",)), "no effect") == ["warn"]
    assert not told(plan_of(facts, from_wheel="auto"), "no effect")


@pytest.mark.parametrize("flags", [{}, {"cache": "sccache"}])
def test_visual_studio_gets_no_launcher_and_no_ninja(flags: dict[str, Any]) -> None:
    plan = plan_of(windows_facts(), set=(VISUAL_STUDIO,), **flags)
    assert not [each for each in plan.env if "LAUNCHER" in each.name]
    assert not [each for each in plan.artifacts if "sccache" in each.id]
    assert told(plan, "calls no compiler launcher") == (["warn"] if flags else [])
    assert "ninja>=" not in " ".join(choice.value for choice in plan.choices)


def test_a_wheel_of_another_series_is_refused() -> None:
    facts = linux_facts(tree=tree(version="2.6.0a0", commit="1" * 40))
    for wheel, status in (("9.9.9", ["error"]), ("1.0", ["error"]), ("2.6.0", []), ("2.6.1+cpu", [])):
        assert told(plan_of(facts, from_wheel=wheel), "another series") == status


def test_what_asked_for_cuda_is_named_where_no_toolkit_is() -> None:
    facts = linux_facts(environ={"USE_CUDA": "1"})
    finding = next(each for each in plan_of(facts).findings if each.id == "cuda-toolkit")
    assert "USE_CUDA in the environment" in finding.text
    assert "--cpu" in finding.fix
    plain = next(each for each in plan_of(cuda=True).findings if each.id == "cuda-toolkit")
    assert "--cpu" not in plain.fix
