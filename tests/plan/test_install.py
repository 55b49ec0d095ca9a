"""The way of a build, and the changes for which the front end runs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.for_each import each_case
from tests.support.machines import (
    ROOT,
    ask,
    base_python,
    built,
    found,
    linux_facts,
    modern_tree,
    plan_of,
    python,
    tree,
    with_tree,
)
from torchbuild_tasks.model import Facts, Host, Tree
from torchbuild_tasks.plan.install import feeds_front_end
from torchbuild_tasks.text.show import commands, plan_text
from torchbuild_tasks.values import replace

SETUPTOOLS = built()
MODERN = built(linux_facts(tree=modern_tree()))


@pytest.mark.parametrize("facts", [SETUPTOOLS, MODERN], ids=["setuptools", "scikit-build-core"])
def test_an_up_to_date_tree_is_left_to_ninja(facts: Facts) -> None:
    plan = plan_of(facts)
    assert plan.way.name == "install"
    assert plan.way.ninja is not None
    assert plan.way.ninja.argv == ("ninja", "-C", plan.build_dir)


@each_case(
    ("facts", "flags", "because"),
    [
        (linux_facts(), {}, "nothing was built here yet"),
        (built(), {"set": ("USE_MKLDNN=0",)}, "USE_MKLDNN"),
        (built(result="failed"), {}, "no editable install by this tool"),
        (built(), {"clean": True}, "--clean"),
        (built(), {"mode": "wheel"}, "wheel"),
        (with_tree(built(), commit="f" * 40), {}, "changed since the last install: commit"),
        (replace(built(), pythons=linux_facts().pythons), {}, "nowhere yet"),
        (
            built(set=("CMAKE_GENERATOR=Unix Makefiles",)),
            {"set": ("CMAKE_GENERATOR=Unix Makefiles",)},
            "the generator is Unix Makefiles",
        ),
        (replace(built(), pythons=(base_python(),)), {}, "made by another Python"),
    ],
    ids=["first", "variable", "failed", "clean", "wheel", "commit", "not installed", "no ninja", "no Python"],
)
def test_what_needs_the_front_end(facts: Facts, flags: dict[str, Any], because: str) -> None:
    way = plan_of(facts, **flags).way
    assert way.name == "front end"
    assert way.ninja is None
    assert because in way.because


@pytest.mark.parametrize("wanted", ["/usr/bin/python3", "python3"])
def test_what_counts_is_the_venv_on_the_python_that_was_asked_for(wanted: str) -> None:
    own = python(executable=f"{ROOT}/.torchbuild/venv-3.11/bin/python", managed=True)
    facts = built(linux_facts(pythons=(own,)))
    plan = plan_of(replace(facts, pythons=(base_python(), *facts.pythons)), python=wanted)
    assert plan.environment.python == own.executable
    assert plan.way.name == "install", plan.way.because


def test_an_install_of_another_checkout_needs_it_too() -> None:
    other = replace(SETUPTOOLS.pythons[0], torch_from="/other/pytorch")
    way = plan_of(replace(SETUPTOOLS, pythons=(other,))).way
    assert "/other/pytorch" in way.because


def test_a_prefix_elsewhere_is_the_making_of_a_wheel() -> None:
    cache = MODERN.tree.cache
    assert cache is not None
    elsewhere = with_tree(MODERN, cache=replace(cache, prefix="/tmp/x/wheel/platlib/torch"))
    assert "/tmp/x/wheel/platlib/torch" in plan_of(elsewhere).way.because


def digests(own: Tree, **changes: str) -> Tree:
    return replace(own, digests={**own.digests, **changes})


@each_case(
    ("own", "name", "way"),
    [
        (tree(), "setup.py", "front end"),
        (tree(), "tools/setup_helpers/env.py", "front end"),
        (tree(), "CMakeLists.txt", "install"),
        (tree(), "aten/src/ATen/native/native_functions.yaml", "front end"),
        (modern_tree(), "aten/src/ATen/native/native_functions.yaml", "install"),
        (modern_tree(), "pyproject.toml", "front end"),
        (modern_tree(), "tools/metadata/version.py", "front end"),
        (tree(version="1.13.1"), "tools/autograd/derivatives.yaml", "install"),
        (tree(version="2.3.0"), "tools/autograd/derivatives.yaml", "front end"),
    ],
)
def test_which_files_the_front_end_reads(own: Tree, name: str, way: str) -> None:
    facts = built(linux_facts(tree=digests(own, **{name: "before"})))
    assert plan_of(with_tree(facts, digests={**facts.tree.digests, name: "after"})).way.name == way


def test_a_failed_build_in_between_changes_nothing() -> None:
    """Only the last complete install counts, not the inputs of the build that failed."""
    assert SETUPTOOLS.tree.previous is not None
    failed = replace(SETUPTOOLS.tree.previous, result="failed", verified=False)
    assert plan_of(with_tree(SETUPTOOLS, previous=failed)).way.name == "install"
    newer = replace(failed, inputs={**failed.inputs, "file setup.py": "cc"})
    changed = with_tree(SETUPTOOLS, previous=newer, digests={**SETUPTOOLS.tree.digests, "setup.py": "cc"})
    assert plan_of(changed).way.because == "changed since the last install: setup.py"


def test_a_given_version_holds_no_commit() -> None:
    assert not feeds_front_end(ask(), "commit", {"variable PYTORCH_BUILD_VERSION": "2.8.0"})
    assert feeds_front_end(ask(), "commit", {})


# ---------------------------------------------------------------- the editable install


def editable(facts: Facts, **flags: Any) -> dict[str, str]:
    return {
        choice.name: choice.value
        for choice in plan_of(facts, **flags).choices
        if choice.name.startswith("SKBUILD_")
    }


def test_the_libraries_stay_out_of_the_wheel() -> None:
    assert editable(linux_facts(tree=modern_tree())) == {
        "SKBUILD_EDITABLE_REBUILD_DIR": "/src/pytorch/build/editable",
        "SKBUILD_EDITABLE_REBUILD": "false",
        "SKBUILD_INSTALL_STRIP": "false",
    }
    windows = linux_facts(
        tree=modern_tree(build_dir="D:\\{p}\\build"), host=Host(os="windows", arch="x86_64")
    )
    assert editable(windows)["SKBUILD_EDITABLE_REBUILD_DIR"] == "D:\\{{p}}\\build\\editable"


def test_not_for_a_wheel_nor_setuptools_nor_a_scikit_build_core_that_would_build_at_every_import() -> None:
    old = python(packages={"scikit-build-core": "1.0.3"})
    modern = linux_facts(tree=modern_tree())
    assert not editable(linux_facts())
    assert not editable(modern, mode="wheel")
    assert not editable(replace(modern, pythons=(old,)))
    assert editable(replace(modern, pythons=(python(packages={"scikit-build-core": "1.1"}),)))


def test_the_user_has_the_last_word() -> None:
    assert (
        editable(linux_facts(tree=modern_tree()), set=("SKBUILD_EDITABLE_REBUILD=true",))[
            "SKBUILD_EDITABLE_REBUILD"
        ]
        == "true"
    )


# ---------------------------------------------------------------- --target, --watch


@pytest.mark.parametrize(
    ("facts", "flags", "told"),
    [
        (SETUPTOOLS, {"mode": "wheel"}, "--mode wheel"),
        (SETUPTOOLS, {"clean": True}, "--clean"),
        (SETUPTOOLS, {"target": "all"}, "all is what"),
        (SETUPTOOLS, {"target": "-k"}, "that is an option"),
        (replace(MODERN, tree=replace(MODERN.tree, previous=None)), {}, "has to be made first"),
        (
            built(set=("CMAKE_GENERATOR=Unix Makefiles",)),
            {"set": ("CMAKE_GENERATOR=Unix Makefiles",)},
            "Ninja",
        ),
    ],
    ids=["wheel", "clean", "all", "an option", "no tree", "make"],
)
def test_when_one_target_cannot_be_built(facts: Facts, flags: dict[str, Any], told: str) -> None:
    plan = plan_of(facts, **{"target": "c10", **flags})
    assert plan.verdict == "refuse"
    assert told in found(plan.findings, "target").text


def test_one_target_of_a_tree_that_is_still_to_be_made() -> None:
    plan = plan_of(linux_facts(), target="c10")
    assert plan.verdict != "refuse"
    assert plan.way.configure and plan.way.configure.argv[1:] == ("setup.py", "build", "--cmake-only")
    assert plan_of(linux_facts()).way.configure is None


@pytest.mark.parametrize("facts", [linux_facts(), built()])
def test_a_plan_for_one_target_shows_that_and_promises_no_import(facts: Facts) -> None:
    plan = plan_of(facts, target="c10")
    last = tuple(commands(plan))[-1]
    assert last.argv == ("ninja", "-C", plan.build_dir, "c10")
    assert plan.compile not in commands(plan)
    assert plan.expectations == ()
    assert "Verification" not in plan_text(plan)


def test_one_target_of_a_tree_that_the_front_end_has_still_to_see() -> None:
    assert plan_of(with_tree(SETUPTOOLS, commit="f" * 40), target="c10").verdict != "refuse"


def test_watching_is_for_an_editable_install() -> None:
    assert plan_of(SETUPTOOLS, watch=True).verdict != "refuse"
    assert plan_of(SETUPTOOLS, watch=True, mode="wheel").verdict == "refuse"
