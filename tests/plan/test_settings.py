"""torchbuild.toml: every bad key or value is refused with file, line and key."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import pytest

from tests.support.for_each import each_case
from tests.support.machines import linux_facts
from torchbuild_tasks.catalog import Catalog, load_catalog
from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.features.config.choose import schema
from torchbuild_tasks.fronts.parsing import flags, help_text
from torchbuild_tasks.options import BuildRequest, flag_name
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.plan.settings import check_settings, check_value, pick, read_size, split_assignment
from torchbuild_tasks.plan.variables import decide
from torchbuild_tasks.values import replace
from torchbuild_tasks.verbs import VERBS

FILE = "/src/torchbuild.toml"


def test_a_good_file_is_read_completely() -> None:
    data = {
        "preset": "minimal",
        "build-type": "Debug",
        "jobs": 3,
        "cuda": False,
        "set": {"USE_MKLDNN": "0", "BUILD_TEST": False, "USE_KINETO": True, "PYTORCH_BUILD_NUMBER": 1},
    }
    settings = check_settings(FILE, data, {})
    assert settings.path == FILE
    assert settings.values == {"preset": "minimal", "build_type": "Debug", "jobs": 3, "cuda": False}
    assert settings.variables == {
        "USE_MKLDNN": "0",
        "BUILD_TEST": "0",
        "USE_KINETO": "1",
        "PYTORCH_BUILD_NUMBER": "1",
    }


def test_the_file_takes_exactly_the_flags_that_say_so() -> None:
    every = {field.name: field for verb in VERBS for field in flags(verb)}
    del every["set"]  # a table in the file
    refused = set()
    for name in every:
        try:
            check_settings(FILE, {flag_name(name)[2:]: ()}, {})
        except UsageError as error:
            refused |= {name} if "unknown key" in error.what else set()
    assert refused == {name for name, field in every.items() if not field.metadata["in_file"]}


def test_a_name_may_be_written_with_either_dash() -> None:
    assert check_settings(FILE, {"build_type": "Debug"}, {}).values == {"build_type": "Debug"}


@each_case(
    ("data", "key", "says"),
    [
        ({"prest": "dev"}, "prest", "did you mean preset?"),
        ({"build-typ": "Debug"}, "build-typ", "did you mean build-type?"),
        ({"clean": True}, "clean", "unknown key"),
        ({"json": True}, "json", "unknown key"),
        ({"jobs": "four"}, "jobs", "it must be a whole number"),
        ({"jobs": True}, "jobs", "it must be a whole number"),
        ({"jobs": 0}, "jobs", "at least one job"),
        ({"jobs": -2}, "jobs", "at least one job"),
        ({"cuda": "yes"}, "cuda", "it must be true or false"),
        ({"source": 3}, "source", "it must be text in quotes"),
        ({"preset": "minimum"}, "preset", "did you mean minimal?"),
        ({"mode": "install"}, "mode", "cannot be 'install'"),
        ({"set": ["USE_CUDA=0"]}, "set", "it must be a table"),
        (
            {"set": {"USE_CUDA": [0]}},
            "set.USE_CUDA",
            "it must be text in quotes, a whole number, or true or false",
        ),
        ({"set": {"USE_NUMPY": 1.5}}, "set.USE_NUMPY", "a whole number, or true or false"),
        ({"set": {"CFLAGS": "a\0b"}}, "set.CFLAGS", "it has a NUL"),
        ({"source": "a\0b"}, "source", "it has a NUL"),
        ({"source": " "}, "source", "it is empty"),
        ({"with": "torchvision"}, "with", 'it must be a list of texts: ["torchvision"]'),
        ({"with": ["a\0b"]}, "with", "it has a NUL"),
        ({"set": {"USE CUDA": "0"}}, "set.USE CUDA", "USE CUDA"),
        ({"set": {"": "0"}}, "set.", ""),
    ],
    ids=str,
)
def test_what_is_wrong_is_named_with_file_line_and_key(data: dict[str, Any], key: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_settings(FILE, data, {key: 7})
    assert f"{FILE}, line 7: " in caught.value.what
    assert key in caught.value.what
    assert says in caught.value.what


def test_an_unknown_key_lists_the_known_ones() -> None:
    with pytest.raises(UsageError) as caught:
        check_settings(FILE, {"colour": "red"}, {})
    (keys,) = caught.value.looked
    assert "preset" in keys
    assert "set" in keys
    assert "dry-run" not in keys


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("preset", "mininal", "did you mean minimal?"),
        ("build_type", "release", "did you mean Release?"),
        ("mode", "editable", "--mode cannot be 'editable'"),
        ("env_shell", "bash", "--env-shell cannot be 'bash'"),
        ("jobs", 0, "--jobs cannot be 0"),
        ("jobs", -1, "--jobs cannot be -1"),
    ],
)
def test_values_that_no_machine_can_make_right(name: str, value: object, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_value(name, value)
    assert says in caught.value.what
    assert caught.value.next_step


@pytest.mark.parametrize(
    ("name", "value"), [("preset", None), ("preset", "full"), ("jobs", 1), ("jobs", None), ("source", "x")]
)
def test_good_values_pass(name: str, value: object) -> None:
    check_value(name, value)


BY_ROWS = [field for field in dataclasses.fields(BuildRequest) if isinstance(field.metadata["choices"], str)]


@pytest.mark.parametrize("field", BY_ROWS, ids=lambda field: field.name)
def test_a_new_choice_is_one_row(field: dataclasses.Field[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """A flag whose choices are rows takes, and shows in its help, exactly the names in the table."""
    table = field.metadata["choices"]
    rows = getattr(load_catalog(), table)
    new = "-".join(row.name for row in rows)
    with pytest.raises(UsageError, match="Choose one of|cannot be"):
        check_value(field.name, new)
    catalog = Catalog(**{table: (*rows, replace(rows[0], name=new))})
    monkeypatch.setattr("torchbuild_tasks.catalog.load_catalog", lambda: catalog)
    check_value(field.name, new)
    assert help_text(field).endswith(f"|{new}]")
    key = flag_name(field.name)[2:]
    assert check_settings(FILE, {key: new}, {}).values == {field.name: new}
    value = [value for value in schema()["properties"][key]["enum"] if value == new]
    assert value == [new]


def test_a_preset_of_a_new_row_is_planned() -> None:
    rows = load_catalog().preset
    new = replace(rows[0], name="-".join(row.name for row in rows), variables={"USE_MKLDNN": "0"})
    request = BuildRequest(preset=new.name)
    catalog = Catalog(preset=(*rows, new))
    question = Question(request, linux_facts(), catalog, check_settings(FILE, {}, {}))
    choice = decide(question, "USE_MKLDNN")
    assert choice is not None and (choice.value, choice.source) == ("0", "preset")


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("USE_CUDA=0", "USE_CUDA", "0"),
        ("CFLAGS=-O0 -DX=1", "CFLAGS", "-O0 -DX=1"),
        ("BLAS=", "BLAS", ""),
        ("_GLIBCXX_USE_CXX11_ABI=1", "_GLIBCXX_USE_CXX11_ABI", "1"),
    ],
)
def test_an_assignment_is_split_at_its_first_sign(text: str, name: str, value: str) -> None:
    assert split_assignment(text) == (name, value)


@pytest.mark.parametrize("text", ["USE_CUDA", "=1", "2USE=1", "USE-CUDA=1", "USE CUDA=1", "A\nB=1", ""])
def test_what_is_no_assignment_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not KEY=VALUE"):
        split_assignment(text)


def failure(**columns: Any) -> dict[str, Any]:
    row = {"id": "mine", "phase": "compile", "cause": "Ours.", "source": "us", "patterns": ["our proxy: 407"]}
    return {"failure": [{**row, **columns}]}


def test_rows_of_failures_may_be_of_ones_own() -> None:
    (row,) = check_settings(FILE, failure(fix=["Log in."]), {}).failures
    assert (row.id, row.patterns, row.fix) == ("mine", ("our proxy: 407",), ("Log in.",))


@each_case(
    ("columns", "says"),
    [
        ({"patern": ["x"]}, "failure.0 has an unknown key: patern; did you mean patterns?"),
        ({"patterns": "our proxy"}, "failure.0.patterns is .our proxy., not array"),
        ({"patterns": [3]}, r"failure.0.patterns\[0\] is 3, not str"),
        ({"cause": 3}, "failure.0.cause is 3, not str"),
        ({"phase": "lunch"}, "failure.0.phase is .lunch., not .*compile"),
        ({"patterns": ["(a+)+ for ever"]}, "can take for ever"),
        ({"patterns": ["("]}, "not a regular expression"),
        ({"patterns": ["x"]}, "4 letters"),
    ],
    ids=str,
)
def test_a_row_that_cannot_be_used_is_refused_with_its_line(columns: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says) as error:
        check_settings(
            FILE, failure(**columns), {"failure.0": 7, "failure.0.patterns": 9, "failure.0.cause": 8}
        )
    assert re.search(r"torchbuild.toml, line [789]", error.value.what)


def test_mirrors_of_hosts() -> None:
    table = {"https://github.com/": "https://git.example.org/"}
    assert check_settings("t.toml", {"mirrors": table}, {}).mirrors == tuple(table.items())


@pytest.mark.parametrize(
    "table", ["x", {"https://a/": 1}, {"https://a/": ""}, {"https://a/": "https://b/?x=1"}]
)
def test_a_mirror_that_git_cannot_use(table: object) -> None:
    with pytest.raises(UsageError, match="mirrors"):
        check_settings("t.toml", {"mirrors": table}, {})


@each_case(
    ("data", "key", "says", "advice"),
    [
        (
            {"USE_DISTRIBUTED": 0},
            "USE_DISTRIBUTED",
            "is a build variable and belongs",
            "USE_DISTRIBUTED = 0",
        ),
        ({"env": {"USE_CUDA": "1"}}, "env", "USE_CUDA are build variables", "[set]"),
        ({"build": {"jobs": 4}}, "build", "its keys stand under no table", "above the first [table]"),
        ({"set": {"USE_NCCL": 0, "jobs": 4}}, "set.jobs", "a key of its own", "above the first [table]"),
        ({"set": {"build-type": "Debug"}}, "set.build-type", "a key of its own", "above the first"),
        ({"set": {"build_type": "Debug"}}, "set.build_type", "a key of its own", "above the first"),
        ({"mirrors": {"preset": "dev"}}, "mirrors.preset", "a key of its own", "above the first"),
        ({"builds": {"a": {"set": {"jobs": 4}}}}, "builds.a.set.jobs", "a key of its own", "into [builds.a]"),
        ({"failure": [{"jobs": 4}]}, "failure.0.jobs", "a key of its own", "above the first"),
    ],
)
def test_a_key_in_the_wrong_table_is_sent_to_the_right_one(
    data: dict[str, Any], key: str, says: str, advice: str
) -> None:
    with pytest.raises(UsageError) as caught:
        check_settings("torchbuild.toml", data, {key: 7})
    assert "line 7" in caught.value.what and says in caught.value.what
    assert "did you mean" not in caught.value.what
    assert advice in caught.value.next_step


@each_case("name", ["../evil", "a/b", "con", "-x", "a b", "x" * 50])
def test_a_build_that_cannot_be_named_so_is_not_to_be_written(name: str) -> None:
    with pytest.raises(UsageError) as caught:
        pick({}, name, None)
    assert "cannot name a build" in caught.value.what
    assert "[builds." not in caught.value.next_step


@each_case(
    ("text", "size"),
    [("", 0), ("20G", 20 << 30), ("20GiB", 20 << 30), ("512m", 1 << 29), ("1T", 1 << 40), ("1000", 1000)],
)
def test_sizes(text: str, size: int) -> None:
    assert read_size(text, "--cache-size") == size


@each_case("text", ["much", "-5G", "0", "G", "5X"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(UsageError, match="--cache-size"):
        read_size(text, "--cache-size")
