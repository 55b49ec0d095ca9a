"""What a build sets so that it gives the same bytes, and what it says where that cannot be."""

from __future__ import annotations

from typing import Any

from tests.support.for_each import each_case
from tests.support.machines import ask, linux_facts, modern_tree, plan_of, python, statuses, tree
from torchbuild_tasks.features.reproducible.choose import (
    INCLUDE,
    MAPS,
    is_reproducible,
    lead_from_here,
    path_maps,
)
from torchbuild_tasks.model import Facts, Host, Store

WHEEL: dict[str, Any] = {"mode": "wheel", "reproducible": True}


def committed(**changes: Any) -> Facts:
    return linux_facts(tree=tree(committed=1_767_225_600, **changes))


def variables(facts: Facts, **flags: Any) -> dict[str, str]:
    return {op.name: op.value for op in plan_of(facts, **{**WHEEL, **flags}).env if op.op == "set"}


def test_times_come_from_the_commit_and_paths_are_mapped() -> None:
    made = variables(committed())
    assert made["SOURCE_DATE_EPOCH"] == "1767225600"
    assert made["PYTHONHASHSEED"] == "0"
    assert made[INCLUDE] == "/src/pytorch/.torchbuild/reproducible.cmake"
    assert made[MAPS] == "/src/pytorch=."
    assert made["CMAKE_BUILD_RPATH_USE_ORIGIN"] == "ON"
    assert made["CPPFLAGS"] == "-ffile-prefix-map=/src/pytorch=." and "CFLAGS" not in made
    assert made["LDSHARED"] == "/usr/bin/gcc -shared"


def test_a_plan_says_whether_it_is_for_the_same_bytes() -> None:
    assert is_reproducible(plan_of(committed(), **WHEEL))
    mine = ("CMAKE_PROJECT_INCLUDE=/my/own.cmake",)
    assert not is_reproducible(plan_of(committed(), mode="wheel", set=mine))


def test_without_the_flag_nothing_of_it_is_set() -> None:
    plan = plan_of(committed(), mode="wheel")
    assert not is_reproducible(plan)
    assert not {INCLUDE, MAPS, "SOURCE_DATE_EPOCH", "LDSHARED"} & {op.name for op in plan.env}


def test_the_new_build_system_needs_no_flags_of_setuptools() -> None:
    made = variables(linux_facts(tree=modern_tree(committed=1)))
    assert INCLUDE in made
    assert "LDSHARED" not in made and "CPPFLAGS" not in made


def test_what_the_user_sets_stays() -> None:
    made = variables(committed(), set=("SOURCE_DATE_EPOCH=7", "CPPFLAGS=-O1"))
    assert made["SOURCE_DATE_EPOCH"] == "7"
    assert made["CPPFLAGS"] == "-O1 -ffile-prefix-map=/src/pytorch=."


def test_a_path_with_a_space_is_one_word_to_setuptools() -> None:
    made = variables(committed(root="/src/my torch"))
    assert made["CPPFLAGS"] == "'-ffile-prefix-map=/src/my torch=.'"
    assert made[MAPS] == "/src/my torch=."


def test_a_folder_inside_another_is_mapped_after_it_and_the_systems_own_is_left() -> None:
    question = ask(linux_facts(store=Store(folder="/src/pytorch/store")))
    own = python(include="/home/me/py/include/python3.11")
    assert path_maps(question, own, "/usr/local/cuda") == (
        "/home/me/py=/python",
        "/src/pytorch=.",
        "/src/pytorch/store=/store",
    )


@each_case(
    ("facts", "flags", "said"),
    [
        (committed(), {}, []),
        (committed(), {"mode": "develop"}, ["error"]),
        (committed(), {"set": (f"{INCLUDE}=/x.cmake",)}, ["error"]),
        (committed(dirty=True), {}, ["warn"]),
        (linux_facts(tree=tree(commit=None)), {}, ["warn"]),
        (linux_facts(tree=tree(commit=None)), {"set": ("SOURCE_DATE_EPOCH=7",)}, []),
        (committed(), {"set": ("SOURCE_DATE_EPOCH=now",)}, ["error"]),
    ],
    ids=["fine", "editable", "the file is taken", "changed files", "no commit", "a time is said", "no time"],
)
def test_what_stands_in_the_way_is_reported(facts: Facts, flags: dict[str, Any], said: list[str]) -> None:
    assert statuses(plan_of(facts, **{**WHEEL, **flags}).findings, "reproducible") == said


def test_windows_is_refused() -> None:
    facts = linux_facts(host=Host(os="windows", arch="x86_64"), tree=tree(committed=1))
    assert "error" in statuses(plan_of(facts, **WHEEL).findings, "reproducible")


def test_a_cmake_file_of_a_wheel_leads_from_itself_and_not_into_the_checkout() -> None:
    text = b'set(A "/w/a/torch/include")\nset(B /w/a;/w/a-tree/x)\nset(C /w/a)\n'
    here = b"${CMAKE_CURRENT_LIST_DIR}/../../../.."
    assert lead_from_here("torch/share/cmake/ATen/ATenConfig.cmake", text, "/w/a") == (
        b'set(A "' + here + b'/torch/include")\nset(B ' + here + b";/w/a-tree/x)\nset(C " + here + b")\n"
    )
