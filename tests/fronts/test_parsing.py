"""Flags: every one of every verb is taken, everything else is refused with the nearest name."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import pytest

from tests.support.for_each import each_case
from tests.support.machines import actions, example, request_of, spelled
from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.fronts.invoke_tasks import words_by_verb
from torchbuild_tasks.fronts.parsing import SHORT, flags, help_text, parse, spellings, unknown_verb
from torchbuild_tasks.options import BuildRequest, choices_of, flag_name
from torchbuild_tasks.verbs import VERBS

pytestmark = pytest.mark.one_system

FIELDS = dataclasses.fields(BuildRequest)


@each_case("verb", VERBS)
def test_every_flag_of_a_verb_is_taken(verb: str) -> None:
    for name in (field.name for field in flags(verb)):
        values = {**actions(verb), name: example(name, verb)}
        words = [word for field, value in values.items() for word in spelled(field, value, verb)]
        assert parse(verb, words) == request_of(verb, **values)


@each_case("verb", ["plan", "env", "verify", "replay"])
def test_a_plan_is_shown_as_build_would_make_it(verb: str) -> None:
    """Both decide what comes from PyPI, also where they stand in the environment."""
    assert parse(verb, [*actions(verb).values(), "--offline", "--machine-tools"]).machine_tools


@each_case("verb", VERBS)
def test_all_flags_of_a_verb_at_once(verb: str) -> None:
    values = {field.name: example(field.name, verb) for field in flags(verb)}
    words = [word for name, value in values.items() for word in spelled(name, value, verb)]
    assert parse(verb, words) == request_of(verb, **values)
    first: dict[str, Any] = actions(verb)
    assert parse(verb, list(first.values())) == request_of(verb, **first)


@each_case(
    ("words", "wanted"),
    [
        (["--jobs=4"], {"jobs": 4}),
        (["-j", "4"], {"jobs": 4}),
        (["-j4"], {"jobs": 4}),
        (["--set=CFLAGS=-O0 -g"], {"set": ("CFLAGS=-O0 -g",)}),
        (
            ["--set", "A=1", "--cpu", "--set", "A=2", "--set", "B="],
            {"set": ("A=1", "A=2", "B="), "cpu": True},
        ),
        (["--source", "a b&c%d/ü"], {"source": "a b&c%d/ü"}),
        (["--source", "build"], {"source": "build"}),
        (["-qv"], {"quiet": True, "verbose": True}),
        (["--jobs", "2", "-j3"], {"jobs": 3}),
        (["--notify", "say it's done"], {"notify": "say it's done"}),
        (["--set", "-1"], {"set": ("-1",)}),
    ],
)
def test_ways_to_write_them(words: list[str], wanted: dict[str, Any]) -> None:
    assert parse("build", words) == BuildRequest(**wanted)


@each_case("short", sorted(SHORT))
def test_short_forms_mean_the_long_ones(short: str) -> None:
    value = example(short)
    words = spelled(short, value)
    assert parse("build", [f"-{SHORT[short]}", *words[1:]]) == parse("build", words)


@each_case(
    ("verb", "words", "says"),
    [
        ("build", ["--cuad"], "--cuda"),
        ("build", ["--job", "3"], "--jobs"),
        ("build", ["--build_type", "Debug"], "--build-type"),
        ("build", ["--Source", "x"], "--source"),
        ("build", ["--sorce=x"], "--source"),
        ("plan", ["--cpu", "--dryrun"], "no flag --dryrun"),
        ("clean", ["--preset", "dev"], "clean has no flag --preset"),
        ("build", ["--facts", "x.json"], "build has no flag --facts, which is one of doctor"),
        ("plan", ["--fix"], "plan has no flag --fix, which is one of doctor"),
        ("plan", ["--yes"], "plan has no flag --yes"),
        ("build", ["--zzzzzz"], "--zzzzzz"),
        ("build", ["-x"], "-x"),
        ("build", ["stray"], "stray"),
        ("build", ["--source"], "--source"),
        ("build", ["--jobs", "--cpu"], "--jobs"),
        ("build", ["--cpu=1"], "--cpu takes no value"),
        ("plan", ["--cpu", "build"], "plan does not know what to do with the word 'build'"),
        ("diagnose", ["a.log", "b.log"], "diagnose does not know what to do with the word 'b.log'"),
        ("source", ["status", "v2.9"], "source status does not know what to do with the word 'v2.9'"),
        ("source", ["get", "v2.9", "v2.8"], "source get does not know what to do with the word 'v2.8'"),
        ("build", ["--jobs", "abc"], "--jobs 'abc' is not a whole number"),
        ("build", ["--jobs", "1.5"], "--jobs '1.5'"),
        ("build", ["--jobs", ""], "--jobs needs a value, and it is empty"),
        ("plan", ["--source="], "--source needs a value, and it is empty"),
        ("build", ["--set", ""], "--set needs a value, and it is empty"),
        ("build", ["--set"], "--set needs a value such as USE_DISTRIBUTED=0"),
    ],
)
def test_what_is_refused_is_named(verb: str, words: list[str], says: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(verb, words)
    assert says in caught.value.what
    assert caught.value.exit_code == 2


@each_case(("verb", "words"), [("python", ["-c", "pass"]), ("run", ["ls", "/"])])
def test_words_for_a_program_are_told_where_they_stand(verb: str, words: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        parse(verb, words)
    assert f"stands behind two dashes: {verb} [FLAGS] -- WORDS\n" in caught.value.next_step


def test_a_refused_flag_lists_those_of_the_verb() -> None:
    with pytest.raises(UsageError) as caught:
        parse("versions", ["--prest", "dev"])
    listed = caught.value.next_step.split()
    assert {flag_name(field.name) for field in flags("versions")} <= set(listed)
    assert "--preset" not in listed


def test_the_words_of_a_verb_are_not_listed_as_its_flags() -> None:
    with pytest.raises(UsageError) as caught:
        parse("cluster", ["--zzzzzz"])
    listed = caught.value.next_step.split()
    assert "--token-file" in listed and not {"--action", "--scheduler"}.intersection(listed)


def test_where_the_nearest_is_known_the_others_are_not_listed() -> None:
    with pytest.raises(UsageError) as caught:
        parse("build", ["--josb", "3"])
    assert caught.value.what.endswith("did you mean --jobs?")
    assert caught.value.next_step == "All of its flags: torchbuild build --help"


@each_case("flag", ["--dry", "--debug", "--echo", "--list"])
def test_a_flag_of_the_runner_is_no_flag_of_a_verb(flag: str) -> None:
    """`nox -s build_cpu -- --dry` must not build; Invoke has flags of these names."""
    with pytest.raises(UsageError) as caught:
        parse("build", [flag])
    assert flag in caught.value.what
    assert caught.value.next_step


def test_the_nearest_verb() -> None:
    assert "did you mean build?" in unknown_verb("biuld", tuple(VERBS)).what
    error = unknown_verb("xyzzy", tuple(VERBS))
    assert "did you mean" not in error.what
    assert all(verb in error.next_step for verb in VERBS)


def test_help_shows_the_choices() -> None:
    for field in FIELDS:
        text = help_text(field)
        assert text.startswith(field.metadata["help"])
        assert all(choice in text for choice in choices_of(field))


@each_case("verb", VERBS)
def test_no_two_flags_share_a_name(verb: str) -> None:
    names = [name for field in flags(verb) for name in spellings(field)]
    assert len(names) == len(set(names))


@each_case(
    ("words", "says"),
    [
        ([], "helpers needs an action"),
        (["--offline"], "helpers needs an action"),
        (["fetsch"], "helpers has no action fetsch; did you mean fetch?"),
        (["--with-helper", "list"], "helpers needs an action"),
    ],
)
def test_a_verb_with_actions_needs_one(words: list[str], says: str) -> None:
    with pytest.raises(UsageError, match=re.escape(says)) as error:
        parse("helpers", words)
    assert "helpers fetch" in error.value.next_step


def test_a_log_may_be_called_anything() -> None:
    for name in ("-", "build.log", "build", "a b/ü.log"):
        assert parse("diagnose", ["--json", name]) == request_of("diagnose", log=name, json=True)
        assert words_by_verb(["diagnose", name, "--json"]) == [("diagnose", [name, "--json"])]
    assert parse("diagnose", ["--json"]) == request_of("diagnose", json=True)  # that of the last build


def test_an_action_may_be_called_like_a_verb() -> None:
    assert words_by_verb(["helpers", "verify", "--offline", "doctor", "-q"]) == [
        ("helpers", ["verify", "--offline"]),
        ("doctor", ["-q"]),
    ]
    assert words_by_verb(["helpers", "--with-helper", "plan", "fetch", "plan"]) == [
        ("helpers", ["--with-helper", "plan", "fetch"]),
        ("plan", []),
    ]
    assert parse("helpers", ["--offline", "verify"]).action == "verify"


# ---------------------------------------------------------------- actions that take a further word


@each_case(
    "words",
    [
        ["join", "big:10600", "--token-file", "t"],
        ["join", "--token-file", "t", "big:10600"],
        ["--token-file", "t", "join", "big:10600"],
        ["join", "--scheduler", "big:10600", "--token-file=t"],
    ],
)
def test_the_word_after_an_action(words: list[str]) -> None:
    wanted = request_of("cluster", action="join", scheduler="big:10600", token_file="t")
    assert parse("cluster", words) == wanted


def test_an_action_without_its_word() -> None:
    with pytest.raises(UsageError, match="cluster join needs to be told which scheduler"):
        parse("cluster", ["--verbose", "join"])


def test_an_empty_word_is_none() -> None:
    """It comes of a variable that is not set; as a folder it would be the one where one stands."""
    with pytest.raises(UsageError, match="publish needs to be told which folder"):
        parse("publish", ["", "--yes"])


def test_what_follows_the_further_word_is_the_next_task() -> None:
    words = ["cluster", "join", "build", "plan", "cluster", "status", "build", "--cpu"]
    assert words_by_verb(words) == [
        ("cluster", ["join", "build"]),
        ("plan", []),
        ("cluster", ["status"]),
        ("build", ["--cpu"]),
    ]


@each_case(
    ("words", "ref"),
    [
        (["get", "2.9"], "2.9"),
        (["get"], None),
        (["update", "--source", "x"], None),
        (["mirror", "main", "--full"], "main"),
    ],
)
def test_a_word_that_may_be_left_out(words: list[str], ref: str | None) -> None:
    assert parse("source", words).ref == ref


def test_the_next_verb_is_no_ref() -> None:
    assert words_by_verb(["source", "update", "plan"]) == [("source", ["update"]), ("plan", [])]
    assert words_by_verb(["source", "update", "main", "plan"]) == [
        ("source", ["update", "main"]),
        ("plan", []),
    ]


def test_what_follows_two_dashes_is_a_command_word_for_word() -> None:
    words = ["--good", "a", "--bad", "b", "--", "python", "-c", "import torch; torch.x( 1 )", "--", "--cpu"]
    request = parse("bisect", words)
    assert request == request_of(
        "bisect", good=("a",), bad="b", words=("python", "-c", "import torch; torch.x( 1 )", "--", "--cpu")
    )
    with pytest.raises(UsageError, match="--"):
        parse("build", ["--cpu", "--", "python"])


@pytest.mark.parametrize("verb", VERBS)
def test_the_help_of_a_verb(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        parse(verb, ["--help"], f"nox -s {verb} --")
    assert end.value.code == 0
    text = capsys.readouterr().out
    asked = request_of(verb)
    lines = text.splitlines()
    usage = lines[: lines.index("")]
    assert [line.removeprefix("usage:").split()[:4] for line in usage] == [
        ["nox", "-s", verb, "--"] for _ in asked.actions or ("",)
    ]
    for action, line in zip(asked.actions, usage, strict=bool(asked.actions)):
        assert action in line.split()
    for action, what in asked.actions.items():
        assert re.search(rf"^  {action} +{re.escape(what)}$", text, re.MULTILINE)
    own = {flag_name(field.name): field.metadata["metavar"] or "" for field in flags(verb)}
    assert all(flag in text or (metavar and metavar in text) for flag, metavar in own.items())
    assert set(re.findall(r"^  (?:-\w.*, )?(--[\w-]+)", text, re.MULTILINE)) <= own.keys()
    assert not [line for line in lines if line.startswith(("  --log", "  --action", "  --manifest"))]
