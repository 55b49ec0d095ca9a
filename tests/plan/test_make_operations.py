"""The operations of the env file by era: unset, prepend, set."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.machines import base_python, linux_facts, modern_tree, plan_of, settings
from torchbuild_tasks.model import EnvOp, Facts


def by_name(facts: Facts | None = None, **flags: Any) -> dict[str, EnvOp]:
    ops = plan_of(facts, **flags).env
    assert len(ops) == len({op.name for op in ops})
    return {op.name: op for op in ops}


@pytest.mark.parametrize("facts", [linux_facts(), linux_facts(tree=modern_tree())])
def test_every_operation_says_why(facts: Facts) -> None:
    plan = plan_of(facts, settings(variables={"BLAS": "MKL"}), set=("WERROR=0",))
    assert all(op.because for op in plan.env)


def test_the_python_that_gets_torch_comes_first_on_the_path() -> None:
    assert by_name()["PATH"] == EnvOp(
        op="prepend", name="PATH", value="/venv/bin", because=by_name()["PATH"].because
    )
    ours = by_name(linux_facts(pythons=(base_python(),)), machine_tools=True)["PATH"]
    assert ours.value == "/src/pytorch/.torchbuild/venv-3.11/bin"


def test_what_is_taken_out_comes_before_what_is_set() -> None:
    facts = linux_facts(environ={"CMAKE_INSTALL_PREFIX": "/opt", "USE_MKLDNN": "0"})
    kinds = [op.op for op in plan_of(facts).env]
    assert kinds == sorted(kinds, key=["unset", "prepend", "set"].index)
    assert kinds[0] == "unset"


def test_a_choice_and_its_operation_are_the_same_value() -> None:
    plan = plan_of(set=("USE_MKLDNN=0", "CFLAGS=-O1 -g"), jobs=3)
    chosen = {choice.name: choice.value for choice in plan.choices}
    for op in plan.env:
        if op.op == "set" and op.name in chosen:
            assert op.value == chosen[op.name]
    assert next(op.value for op in plan.env if op.name == "MAX_JOBS") == chosen["jobs"] == "3"


@pytest.mark.parametrize("build_type", ["Release", "Debug", "RelWithDebInfo", "MinSizeRel"])
def test_the_build_type_reaches_each_era(build_type: str) -> None:
    old = by_name(build_type=build_type)
    assert old["CMAKE_BUILD_TYPE"].value == build_type
    assert not [name for name in old if name.startswith("SKBUILD")]
    new = by_name(linux_facts(tree=modern_tree()), build_type=build_type)
    assert new["SKBUILD_CMAKE_BUILD_TYPE"].value == build_type
    assert new["DEBUG"].value == ("1" if build_type == "Debug" else "0")


@pytest.mark.parametrize(("build_dir", "wanted"), [(None, "/src/pytorch/build"), ("/src/pytorch/out", None)])
def test_the_newer_era_gets_a_build_tree_that_persists(build_dir: str | None, wanted: str | None) -> None:
    op = by_name(linux_facts(tree=modern_tree(build_dir=build_dir))).get("SKBUILD_BUILD_DIR")
    assert (op.value if op else None) == wanted


def test_no_compiler_is_not_set_to_nothing() -> None:
    assert not {"CC", "CXX"} & set(by_name(linux_facts(compilers=())))


def test_no_python_puts_nothing_on_the_path() -> None:
    assert "PATH" not in by_name(linux_facts(pythons=()))


@pytest.mark.parametrize("leftover", ["DEBUG", "REL_WITH_DEB_INFO"])
def test_a_leftover_build_type_of_the_users_is_not_listed_twice(leftover: str) -> None:
    ops = by_name(linux_facts(environ={leftover: "1"}), build_type="Release")
    assert ops["CMAKE_BUILD_TYPE"].value == "Release"
    assert leftover not in ops or ops[leftover].op == "unset" or ops[leftover].value == "0"
