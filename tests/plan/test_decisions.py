"""The choices that are fields of the plan: preset, build type, mode, generator, and what is built."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from packaging.version import Version

from tests.support.cuda import cuda_facts, gpu, toolkit
from tests.support.for_each import each_case
from tests.support.jetsons import orin_nano
from tests.support.machines import ask, linux_facts, modern_tree, plan_of, settings, statuses, with_tree
from torchbuild_tasks.model import Previous
from torchbuild_tasks.plan.cuda import choose
from torchbuild_tasks.plan.decisions import choose_generator, choose_mode, decide_build, in_last_mode
from torchbuild_tasks.plan.jetson import check_jetson
from torchbuild_tasks.plan.settings import NamedBuild
from torchbuild_tasks.plan.variables import choose_build_type
from torchbuild_tasks.values import replace


@pytest.mark.parametrize(
    ("seen", "because"),
    [
        ("", "the build one"),
        ("/src/pytorch", "the build one; its worktree is not there yet, seen from /src/pytorch"),
    ],
)
def test_a_named_build_says_what_is_looked_at(seen: str, because: str) -> None:
    said = replace(settings(), build=NamedBuild(name="one", line=1), seen_from=seen)
    source = next(choice for choice in plan_of(said=said).choices if choice.name == "source")
    assert source.because == because


@pytest.mark.parametrize(
    ("flags", "said", "value", "source"),
    [
        ({"preset": "full"}, {"preset": "minimal"}, "full", "flag"),
        ({}, {"preset": "minimal"}, "minimal", "torchbuild.toml"),
        ({}, {}, "dev", "default"),
    ],
)
def test_the_preset(flags: dict[str, Any], said: dict[str, str], value: str, source: str) -> None:
    choice = decide_build(ask(said=settings(said), **flags)).preset
    assert (choice.value, choice.source) == (value, source)


@each_case(
    ("flags", "environ", "said", "variables", "value", "source"),
    [
        ({}, {}, {}, {}, "Release", "preset"),
        ({"preset": "debug"}, {}, {}, {}, "Debug", "preset"),
        ({"preset": "debug"}, {}, {"build_type": "MinSizeRel"}, {}, "MinSizeRel", "torchbuild.toml"),
        ({}, {}, {"build_type": "Debug"}, {}, "Debug", "torchbuild.toml"),
        ({}, {}, {}, {"DEBUG": "1"}, "Debug", "torchbuild.toml"),
        ({}, {"DEBUG": "1"}, {}, {}, "Debug", "environment"),
        ({}, {"DEBUG": "0"}, {}, {}, "Release", "preset"),
        ({}, {"DEBUG": "OFF"}, {}, {}, "Release", "preset"),
        ({}, {"DEBUG": ""}, {}, {}, "Release", "preset"),
        ({}, {"REL_WITH_DEB_INFO": "1"}, {}, {}, "RelWithDebInfo", "environment"),
        ({}, {"DEBUG": "1", "REL_WITH_DEB_INFO": "1"}, {}, {}, "Debug", "environment"),
        ({}, {"DEBUG": "0", "REL_WITH_DEB_INFO": "1"}, {}, {}, "RelWithDebInfo", "environment"),
        ({}, {"CMAKE_BUILD_TYPE": "MinSizeRel", "DEBUG": "1"}, {}, {}, "MinSizeRel", "environment"),
        ({"set": ("DEBUG=1",)}, {}, {"build_type": "Release"}, {}, "Debug", "flag"),
        ({"set": ("CMAKE_BUILD_TYPE=Debug",)}, {"CMAKE_BUILD_TYPE": "Release"}, {}, {}, "Debug", "flag"),
        ({"set": ("DEBUG=1",)}, {"CMAKE_BUILD_TYPE": "Release"}, {}, {}, "Debug", "flag"),
        ({}, {"DEBUG": "1"}, {}, {"CMAKE_BUILD_TYPE": "Release"}, "Debug", "environment"),
        ({}, {"DEBUG": "1"}, {"build_type": "Release"}, {}, "Debug", "environment"),
        ({"build_type": "Release"}, {"DEBUG": "1"}, {}, {}, "Release", "flag"),
        ({"build_type": "Debug", "set": ("CMAKE_BUILD_TYPE=Release",)}, {}, {}, {}, "Debug", "flag"),
    ],
)
def test_the_build_type(
    flags: dict[str, Any],
    environ: dict[str, str],
    said: dict[str, str],
    variables: dict[str, str],
    value: str,
    source: str,
) -> None:
    choice = choose_build_type(ask(linux_facts(environ=environ), settings(said, variables), **flags))
    assert (choice.value, choice.source) == (value, source)
    assert choice.because


@pytest.mark.parametrize("mode", ["develop", "wheel"])
def test_the_mode(mode: str) -> None:
    assert plan_of(mode=mode).mode == mode
    assert plan_of(said=settings({"mode": mode})).mode == mode


@pytest.mark.parametrize(
    ("result", "last", "asked", "mode"),
    [
        ("ok", "wheel", None, "wheel"),
        ("ok", "wheel", "develop", "develop"),
        ("ok", "develop", "wheel", "wheel"),
        ("failed", "wheel", None, "develop"),
        ("ok", "nonsense", None, "develop"),
    ],
)
def test_what_is_verified_is_what_was_built_last(
    result: str, last: str, asked: str | None, mode: str
) -> None:
    previous = Previous(result=result, inputs={"mode": last})
    question = in_last_mode(ask(with_tree(linux_facts(), previous=previous), mode=asked))
    assert choose_mode(question).value == mode


def test_the_generator_is_ninja_unless_another_is_named() -> None:
    assert choose_generator(ask()).value == "Ninja"
    named = choose_generator(ask(linux_facts(environ={"CMAKE_GENERATOR": "Unix Makefiles"})))
    assert (named.value, named.source) == ("Unix Makefiles", "environment")


def test_every_choice_has_value_reason_and_a_name_of_its_own() -> None:
    facts = linux_facts(environ={"USE_MKLDNN": "0", "MAX_JOBS": "3"})
    choices = plan_of(facts, settings({"mode": "wheel"}, {"BLAS": "MKL"}), set=("WERROR=0",)).choices
    assert all(choice.value and choice.because for choice in choices)
    names = [choice.name for choice in choices]
    assert len(names) == len(set(names))
    assert {"flag", "environment", "torchbuild.toml", "preset", "default"} == {c.source for c in choices}


def test_what_is_built_is_shown_first() -> None:
    facts = linux_facts(tree=modern_tree())
    source, torch, era = plan_of(facts, source="pytorch").choices[:3]
    assert (source.value, source.source) == ("/src/pytorch", "flag")
    assert torch.value == "2.14.0a0"
    assert "0123456789" in torch.because
    assert era.value == "scikit-build-core"
    assert "pytorch_build_backend" in era.because


def test_the_sample_says_that_it_is_one() -> None:
    torch = plan_of(with_tree(linux_facts(), sample=True, commit=None)).choices[1]
    assert "sample" in torch.because
    assert "commit" not in torch.because


@pytest.mark.parametrize(
    "name",
    [
        "choose_toolkit",
        "choose_python",
        "choose_build_type",
        "choose_generator",
        "choose_mode",
        "choose_archs",
        "choose_toolset",
        "choose_compilers",
        "choose_linker",
        "choose_helpers",
        "choose_cache",
        "choose_jobs",
        "devices",
    ],
)
@pytest.mark.parametrize("machine", ["gpu", "jetson"])
def test_a_plan_decides_each_thing_once(machine: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A decision is made once: made again with other arguments it could differ."""
    assert choose.__name__ in sys.modules  # only a build with CUDA imports it
    checkout = modern_tree()  # fits, so that no other toolkit is held against it
    facts = (
        orin_nano()
        if machine == "jetson"
        else cuda_facts(toolkit(cudnn="9.13.0"), gpus=(gpu(),), tree=checkout)
    )
    calls = []
    for module in [each for key, each in sys.modules.items() if key.startswith("torchbuild_tasks.")]:
        if callable(real := getattr(module, name, None)):

            def counted(*args: Any, _real: Any = real, **words: Any) -> Any:
                calls.append(args)
                return _real(*args, **words)

            monkeypatch.setattr(module, name, counted)
    plan_of(facts, cuda=True)
    assert len(calls) == 1


@pytest.mark.parametrize("wanted", ["12.6", "11.8"])
def test_a_jetson_is_checked_with_the_chosen_toolkit(wanted: str) -> None:
    question = ask(orin_nano(), cuda=True)
    decided = replace(decide_build(question).cuda.toolkit, version=Version(wanted))
    told = statuses(check_jetson(question, decided), "jetpack-cuda")
    assert told == ([] if wanted == "12.6" else ["warn"])
