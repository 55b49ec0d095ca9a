"""A complete plan: its commands, env files and verdict; and that it is deterministic."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.for_each import each_case
from tests.support.machines import base_python, built, linux_facts, modern_tree, plan_of, settings, tool, tree
from torchbuild_tasks.catalog import GIB
from torchbuild_tasks.model import BuildPlan, Cpu, Facts, Finding, Host, Memory, verdict
from torchbuild_tasks.values import dumps, from_json

PIP = ("-m", "pip", "install", "--no-build-isolation", "-v", "-e", ".")


@each_case(
    ("own", "mode", "words"),
    [
        (tree(), "develop", ("setup.py", "develop")),
        (tree(version="1.13.1"), "develop", ("setup.py", "develop")),
        (tree(version="2.9.1"), "develop", PIP),
        (tree(version="2.13.0"), "develop", PIP),
        (tree(), "wheel", ("setup.py", "bdist_wheel")),
        (tree(version="2.13.0"), "wheel", ("setup.py", "bdist_wheel")),
        (modern_tree(), "develop", PIP),
        (modern_tree(version="2.15.0"), "wheel", ("-m", "build", "--wheel", "--no-isolation")),
        (modern_tree(version="2.99.0"), "develop", PIP),
    ],
)
def test_how_it_is_built(own: Any, mode: str, words: tuple[str, ...]) -> None:
    plan = plan_of(linux_facts(tree=own), mode=mode)
    assert plan.compile.argv == ("/venv/bin/python", *words)
    assert plan.compile.cwd == "/src/pytorch"
    assert plan.compile.because


def test_the_build_runs_with_the_python_that_gets_torch() -> None:
    plan = plan_of(linux_facts(pythons=(base_python(),)))
    assert plan.compile.argv[0] == plan.environment.python == "/src/pytorch/.torchbuild/venv-3.11/bin/python"


# ---------------------------------------------------------------- env files


@pytest.mark.parametrize(
    ("os", "asked", "shells"),
    [
        ("linux", None, ["sh"]),
        ("linux", "sh", ["sh"]),
        ("linux", "fish", ["sh", "fish"]),
        ("linux", "all", ["sh", "bat", "ps1", "fish"]),
        ("windows", None, ["bat"]),
        ("windows", "ps1", ["bat", "ps1"]),
        ("windows", "all", ["bat", "sh", "ps1", "fish"]),
    ],
)
def test_the_hosts_own_shell_is_always_written_first(os: str, asked: str | None, shells: list[str]) -> None:
    facts = linux_facts(host=Host(os=os, arch="x86_64"))
    plan = plan_of(facts, env_shell=asked)
    assert [env_file.shell for env_file in plan.env_files] == shells


def test_the_settings_file_can_name_the_shells() -> None:
    plan = plan_of(said=settings({"env_shell": "fish"}))
    assert [env_file.path for env_file in plan.env_files] == [
        "/src/pytorch/env_set.sh",
        "/src/pytorch/env_set.fish",
    ]


def test_the_files_stand_in_the_plan_as_they_will_be_written() -> None:
    (env_file,) = plan_of(set=("USE_MKLDNN=0",)).env_files
    assert "export USE_MKLDNN='0'" in env_file.text
    assert "/venv/bin" in env_file.text


@pytest.mark.parametrize("flags", [{"env_shell": "all"}, {}])
def test_a_value_that_a_shell_cannot_carry_is_refused_and_not_written(flags: dict[str, Any]) -> None:
    plan = plan_of(set=("CFLAGS=a\0b",), **flags)
    assert plan.verdict == "refuse"
    refused = [finding for finding in plan.findings if finding.id == "env-file"]
    assert len(refused) == (4 if flags else 1)
    assert all("CFLAGS" in finding.text and finding.fix for finding in refused)
    assert plan.env_files == ()


CARET = 'CFLAGS=-DNAME="^"'  # which cmd does not carry


def test_of_all_shells_one_that_cannot_carry_it_is_left_out() -> None:
    plan = plan_of(set=(CARET,), env_shell="all")
    assert "bat" not in [env_file.shell for env_file in plan.env_files]
    assert "sh" in [env_file.shell for env_file in plan.env_files]
    assert plan.verdict == "warn"


def test_a_shell_asked_for_by_name_has_to_carry_it() -> None:
    assert plan_of(set=(CARET,), env_shell="bat").verdict == "refuse"


# ---------------------------------------------------------------- the verdict


@pytest.mark.parametrize(
    ("states", "wanted"),
    [
        ((), "ok"),
        (("ok", "unknown"), "ok"),
        (("ok", "warn", "unknown"), "warn"),
        (("warn", "error"), "refuse"),
        (("error",), "refuse"),
    ],
)
def test_the_verdict(states: tuple[Any, ...], wanted: str) -> None:
    assert verdict(tuple(Finding(id="x", status=state, text="x") for state in states)) == wanted


# ---------------------------------------------------------------- always


@pytest.mark.parametrize("own", [tree(), tree(build_dir=None), modern_tree(build_dir=None)])
def test_the_build_tree_is_in_the_checkout_by_default(own: Any) -> None:
    assert plan_of(linux_facts(tree=own)).build_dir == "/src/pytorch/build"


def test_the_same_facts_give_the_same_plan() -> None:
    assert plan_of(preset="minimal", jobs=2) == plan_of(preset="minimal", jobs=2)


def test_a_plan_comes_back_equal_from_json() -> None:
    plan = plan_of(built(), env_shell="all", set=("BLAS=MKL",))
    assert from_json(BuildPlan, json.loads(dumps(plan))) == plan


VERSIONS = st.sampled_from(
    ["1.8.0", "1.13.1", "2.5.1", "2.8.0a0", "2.9.1", "2.13.0", "2.14.0a0", "2.99", "main"]
)
NAMES = st.sampled_from(
    ["USE_CUDA", "USE_NINJA", "BLAS", "CC", "CXX", "DEBUG", "MAX_JOBS", "CMAKE_FRESH", "QQQ"]
)
VALUES = st.sampled_from(["", "0", "1", "abc", "g++", "ccache g++", "/x/y z", "Release", "a'b\"c$d%e\nf"])
MACHINES = st.builds(
    linux_facts,
    host=st.builds(Host, os=st.sampled_from(["linux", "windows"]), arch=st.sampled_from(["x86_64", "i686"])),
    cpu=st.builds(Cpu, cores=st.integers(1, 256), quota=st.none() | st.floats(0.1, 64)),
    memory=st.builds(Memory, available=st.none() | st.integers(0, 512 * GIB)),
    compilers=st.sampled_from([(), (tool("g++", "12.2.0"),), (tool("clang++", "17.0"), tool("gcc", "9.1"))]),
    tools=st.sampled_from([(), (tool("cmake", "4.0.0"),), (tool("cmake", "3.28.1"), tool("ninja", "1.12"))]),
    pythons=st.sampled_from([(), (base_python(),), (base_python(version="3.15.1"),), linux_facts().pythons]),
    tree=st.builds(
        tree,
        version=VERSIONS,
        era=st.sampled_from(["setuptools", "scikit-build-core", None]),
        sample=st.booleans(),
        commit=st.none() | st.just("f" * 40),
    ),
    environ=st.dictionaries(NAMES, VALUES, max_size=4),
)


@given(
    facts=MACHINES,
    assignments=st.lists(st.builds("{}={}".format, NAMES, VALUES), max_size=3),
    mode=st.sampled_from([None, "develop", "wheel"]),
    preset=st.sampled_from([None, "minimal", "debug"]),
)
def test_any_machine_can_be_planned_for(
    facts: Facts, assignments: list[str], mode: str | None, preset: str | None
) -> None:
    plan = plan_of(facts, set=tuple(assignments), mode=mode, preset=preset, env_shell="all")
    errors = [finding for finding in plan.findings if finding.status == "error"]
    assert (plan.verdict == "refuse") == bool(errors)
    assert all(finding.fix for finding in errors)
    assert all(choice.because for choice in plan.choices)
    said = [*(f"{f.text} {f.fix}" for f in plan.findings), *(choice.because for choice in plan.choices)]
    assert not [text for text in said if re.search(r"\bNone\b", text)]
    names = [op.name for op in plan.env if op.op != "prepend"]
    assert len(names) == len(set(names))
    assert from_json(Facts, json.loads(dumps(facts))) == facts
    assert from_json(BuildPlan, json.loads(dumps(plan))) == plan
