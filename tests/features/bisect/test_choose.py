"""What a bisect remembers and how exit codes are read; git has the say in which commit comes next."""

from __future__ import annotations

import json

import pytest

from tests.support.for_each import each_case
from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.features.bisect.choose import (
    Bisection,
    Step,
    git_log,
    is_machines_fault,
    judge,
    log_text,
    read_bisection,
)
from torchbuild_tasks.values import dumps, replace

STEP = Step(commit="c" * 40, title="one", verdict="skip", because="no", seconds=1.5, finished="t", log="/l")
ONE = Bisection(
    good=("a" * 40,),
    bad="b" * 40,
    asked="--good x --bad y",
    command=("sh", "-c", "a b"),
    start="/",
    skip=("d",),
)


@each_case(
    ("code", "verdict"),
    [
        (0, "good"),
        (1, "bad"),
        (124, "bad"),
        (125, "skip"),
        (126, None),
        (127, None),
        (128, None),
        (255, None),
    ],
)
def test_exit_codes_mean_what_they_mean_to_git(code: int, verdict: str | None) -> None:
    said = judge(code)
    assert (said and said[0]) == verdict


def test_a_command_that_a_signal_ends_judges_nothing() -> None:
    assert judge(-9) is None


def test_git_gets_all_steps_each_time() -> None:
    steps = (STEP, replace(STEP, commit="e" * 40, verdict="bad"))
    assert git_log(replace(ONE, steps=steps)).splitlines() == [
        "git bisect start '--no-checkout'",
        f"git bisect good {ONE.good[0]}",
        f"git bisect bad {ONE.bad}",
        "git bisect skip d",
        f"git bisect skip {'c' * 40}",
        f"git bisect bad {'e' * 40}",
    ]


def test_the_memory_comes_back_as_it_was() -> None:
    memory = replace(ONE, steps=(STEP,), testing="f" * 40, request={"cuda": True})
    assert read_bisection(dumps(memory).encode(), "x") == memory
    assert "skip  cccccccccc  one" in log_text(memory)
    assert f"being tried: {'f' * 40}" in log_text(memory)


@each_case("data", [b"", b"{", b"[]", b'{"schema": "x"}', b'{"schema": 99}', b'{"schema": 1}'])
def test_a_memory_that_cannot_be_read_is_an_error_in_words(data: bytes) -> None:
    with pytest.raises(UsageError):
        read_bisection(data, "x")


def test_the_same_question_is_the_same_commits_and_the_same_command() -> None:
    assert ONE.asks_the_same(replace(ONE, asked="--good z", steps=(STEP,)))
    assert not ONE.asks_the_same(replace(ONE, command=("sh", "-c", "a", "b")))
    assert not ONE.asks_the_same(replace(ONE, bad="c" * 40))
    for other in ({"no_build": True}, {"target": ["c10"]}):
        assert not ONE.asks_the_same(replace(ONE, request=other)), other


def test_an_unfinished_bisect_goes_on_with_other_flags_and_a_finished_one_answers_for_its_own() -> None:
    ended = replace(ONE, first_bad=("b" * 40,), request={"preset": "minimal", "yes": True, "words": ["sh"]})
    same = replace(ONE, request={"preset": "minimal", "source": "/s", "words": ["/bin/sh"]})
    debug = replace(ONE, request={"preset": "minimal", "build_type": "Debug"})
    assert ended.asks_the_same(same)
    assert not ended.asks_the_same(debug)
    assert replace(ended, first_bad=()).asks_the_same(debug)


def test_memory_and_disk_are_no_commits_fault() -> None:
    assert is_machines_fault(["oom-killed", "other"])
    assert is_machines_fault(["disk-full"])
    assert not is_machines_fault(["missing-header", "oom-killed"])
    assert not is_machines_fault([])


def test_a_newer_memory_says_so() -> None:
    data = json.dumps({"schema": 99, "anything": 1}).encode()
    with pytest.raises(UsageError, match="newer"):
        read_bisection(data, "x")
