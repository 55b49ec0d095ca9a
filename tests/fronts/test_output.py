"""Printed commands name the checkout of the run that printed them."""

from __future__ import annotations

import shlex

from tests.support.for_each import each_case
from torchbuild_tasks.fronts.output import complete_commands
from torchbuild_tasks.fronts.parsing import parse
from torchbuild_tasks.options import BuildRequest


@each_case(
    ("text", "becomes"),
    [
        ("Build it: torchbuild build --mode wheel", "Build it: torchbuild build --source /co --mode wheel"),
        (
            "torchbuild plan, or: torchbuild verify",
            "torchbuild plan --source /co, or: torchbuild verify --source /co",
        ),
        ("torchbuild plan\ntorchbuild env", "torchbuild plan --source /co\ntorchbuild env --source /co"),
        ("torchbuild helpers build magma --cuda", "torchbuild helpers build --source /co magma --cuda"),
        ("torchbuild source update --source /other", "torchbuild source update --source /other"),
        ("torchbuild source get v2.9.1", "torchbuild source get v2.9.1"),
        ("torchbuild trust /co/torchbuild.toml", "torchbuild trust /co/torchbuild.toml"),
        ("torchbuild did not put there", "torchbuild did not put there"),
    ],
)
def test_a_command_is_for_the_checkout_of_this_run(text: str, becomes: str) -> None:
    assert complete_commands(text, BuildRequest(source="/co")) == becomes
    assert (
        complete_commands(text, BuildRequest()) == complete_commands(text, BuildRequest(source=".")) == text
    )
    assert complete_commands(becomes, BuildRequest(source="/co")) == becomes


def test_a_place_with_a_space_is_one_word() -> None:
    request = BuildRequest(source="/my co", config="a.toml", name="mine")
    line = complete_commands("torchbuild build", request)
    assert shlex.split(line)[2:] == ["--source", "/my co", "--name", "mine", "--config", "a.toml"]


def test_a_completed_command_is_understood() -> None:
    line = complete_commands("torchbuild helpers build magma --cuda", BuildRequest(source="/co"))
    verb, *words = shlex.split(line)[1:]
    request = parse(verb, words)
    assert (request.source, request.cuda) == ("/co", True)


@each_case(
    ("words", "advice", "becomes"),
    [
        (
            "--cuda --preset minimal",
            "torchbuild build --clean",
            "torchbuild build --cuda --preset minimal --clean",
        ),
        ("--cpu --arch 8.6", "torchbuild build --cuda", "torchbuild build --arch 8.6 --cuda"),
        ("--cuda --arch 8.6", "torchbuild plan --cpu", "torchbuild plan --cpu"),
        ("--cuda", "torchbuild build --cuda-toolkit 12.6", "torchbuild build --cuda --cuda-toolkit 12.6"),
        ("--preset minimal", "torchbuild build --preset debug", "torchbuild build --preset debug"),
        (
            "--mode wheel",
            "torchbuild build, or --mode develop",
            "torchbuild build --mode wheel, or --mode develop",
        ),
        ("--set A=1 --set B=2", "torchbuild build --set B=3", "torchbuild build --set A=1 --set B=3"),
        (
            "--set A=1 --set B=2",
            "A does nothing\n -> torchbuild plan",
            "A does nothing\n -> torchbuild plan --set B=2",
        ),
        ("--preset minimal --set A=1", "torchbuild report", "torchbuild report"),
        ("--preset minimal --jobs 2 --yes", "torchbuild verify", "torchbuild verify --preset minimal"),
    ],
)
def test_a_command_is_for_the_same_build(words: str, advice: str, becomes: str) -> None:
    request = parse("build", words.split())
    assert complete_commands(advice, request) == becomes
    assert complete_commands(becomes, request) == becomes


def test_what_the_environment_says_is_not_repeated() -> None:
    request = BuildRequest(preset="minimal", from_environment=("preset",))
    assert complete_commands("torchbuild build", request) == "torchbuild build"
