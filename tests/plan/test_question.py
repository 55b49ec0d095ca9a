"""Flags before the settings file before the default, for fields that are not variables."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import pytest

from tests.support.machines import ask, linux_facts, modern_tree, settings, with_tree
from torchbuild_tasks.model import Cuda, Host, Toolkit
from torchbuild_tasks.plan.question import LAYERS, Question


def test_the_layers_stand_in_the_order_of_the_design() -> None:
    assert LAYERS == ("flag", "environment", "torchbuild.toml", "preset", "helper", "default")


@pytest.mark.parametrize(
    ("flags", "said", "value", "source", "because"),
    [
        ({"mode": "wheel"}, {"mode": "develop"}, "wheel", "flag", "--mode on the command line"),
        ({}, {"mode": "wheel"}, "wheel", "torchbuild.toml", "mode in /src/torchbuild.toml"),
        ({}, {}, "develop", "default", "the reason"),
    ],
)
def test_a_field_comes_from_the_first_layer_that_names_it(
    flags: dict[str, Any], said: dict[str, Any], value: str, source: str, because: str
) -> None:
    choice = ask(said=settings(said), **flags).choose("mode", "mode", "develop", "the reason")
    assert (choice.name, choice.value, choice.source, choice.because) == ("mode", value, source, because)


def test_a_switch_that_is_off_says_nothing() -> None:
    assert ask(said=settings({"cuda": False}), cuda=False).given("cuda") is None


def test_the_era_is_that_of_the_checkout_and_not_of_its_version() -> None:
    assert ask(linux_facts(tree=modern_tree(version="2.13.0"))).era == "scikit-build-core"
    assert ask(with_tree(linux_facts(), version="2.99.0")).era == "setuptools"
    assert ask(with_tree(linux_facts(), era=None)).era == "setuptools"


@pytest.mark.parametrize(
    ("os", "root", "joined"),
    [
        ("linux", "/src/pytorch", "/src/pytorch/build/x"),
        ("linux", "/src/pytorch/", "/src/pytorch/build/x"),
        ("windows", "C:\\src\\pytorch", "C:\\src\\pytorch\\build\\x"),
    ],
)
def test_paths_are_joined_in_the_style_of_the_host(os: str, root: str, joined: str) -> None:
    facts = with_tree(linux_facts(host=Host(os=os, arch="x86_64")), root=root)
    assert ask(facts).join("build", "x") == joined


@pytest.mark.parametrize(
    ("flags", "said", "environ", "asked"),
    [
        ({}, {"arch": "8.6"}, {"TORCH_CUDA_ARCH_LIST": "8.9"}, ("8.9", "environment")),
        ({"arch": "9.0"}, {"arch": "8.6"}, {"TORCH_CUDA_ARCH_LIST": "8.9"}, ("9.0", "flag")),
        ({}, {"arch": "8.6"}, {}, ("8.6", "torchbuild.toml")),
        ({}, {}, {}, None),
    ],
)
def test_of_a_key_and_a_variable_that_say_the_same_the_stronger_layer_counts(
    flags: dict[str, Any], said: dict[str, Any], environ: dict[str, str], asked: tuple[str, str] | None
) -> None:
    found = ask(linux_facts(environ=environ), settings(said), **flags).asked("arch", "TORCH_CUDA_ARCH_LIST")
    assert (found and (found.value, found.source)) == asked


@pytest.mark.parametrize("kept", [("CC=gcc",), ()])
def test_what_is_derived_for_another_toolkit_is_as_if_asked_anew(
    kept: tuple[str, ...],
) -> None:
    first = ask(with_tree(linux_facts(), version="2.6.0"), set=("CC=gcc",), cuda=True)
    cuda = Cuda(toolkits=(Toolkit(path="/cuda", found_via="tests", version="12.4"),))
    others = first.with_cuda(cuda), first.with_toolkit("/cuda", kept)
    assert others[0].facts.cuda == cuda and others[1].request.cuda_toolkit == "/cuda"
    derived = [name for name, each in vars(Question).items() if isinstance(each, cached_property)]
    assert {"decided", "version", "cuda", "assignments"} <= {*derived}
    for each in others:
        fresh = Question(each.request, each.facts, each.catalog, each.settings)
        assert {name: getattr(each, name) for name in derived} == {
            name: getattr(fresh, name) for name in derived
        }
