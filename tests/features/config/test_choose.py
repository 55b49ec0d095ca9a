"""Every key of the settings with its value and source, and the file and the schema generated from them."""

from __future__ import annotations

import dataclasses
import json
import re
import tomllib
from pathlib import Path

import pytest

from bin.write_pages import SCHEMA
from tests.support.for_each import each_case
from torchbuild_tasks.features.config.choose import file_text, keys, keys_text, schema
from torchbuild_tasks.fronts import console
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.plan.settings import Settings, check_settings
from torchbuild_tasks.text.page import plain

FILE = check_settings("t.toml", {"preset": "full", "jobs": 4, "set": {"USE_MKL": 1}}, {})
WIDE = check_settings("wide.toml", {"jobs": 2, "offline": True, "cuda": True, "set": {"BUILD_TEST": 0}}, {})
BOTH = FILE.over(WIDE)


@each_case(
    ("request_", "key", "value", "source"),
    [
        (BuildRequest(), "jobs", "4", "t.toml"),
        (BuildRequest(), "offline", "true", "wide.toml"),
        (BuildRequest(), "mode", "", "default: develop"),
        (BuildRequest(), "installer", "", "default: auto"),
        (BuildRequest(jobs=8), "jobs", "8", "--jobs"),
        (BuildRequest(jobs=8, from_environment=("jobs",)), "jobs", "8", "TORCHBUILD_JOBS"),
        (BuildRequest(denied_by_environment=("offline",)), "offline", "false", "TORCHBUILD_OFFLINE"),
        (BuildRequest(with_helper=("mkl",)), "with-helper", '["mkl"]', "--with-helper"),
        (BuildRequest(), "set.USE_MKL", '"1"', "t.toml"),
        (BuildRequest(), "set.BUILD_TEST", '"0"', "wide.toml"),
    ],
)
def test_where_each_value_comes_from(request_: BuildRequest, key: str, value: str, source: str) -> None:
    (found,) = [each for each in keys(request_, BOTH) if each.key == key]
    assert (found.value, found.source) == (value, source)


def test_a_project_that_names_a_device_silences_the_users_other() -> None:
    assert "cuda" not in check_settings("t.toml", {"cpu": True}, {}).over(WIDE).values


def test_the_list_has_every_key_once() -> None:
    text = plain(keys_text(keys(BuildRequest(), BOTH), {"t.toml": True, "wide.toml": False}))
    listed = [line.split()[0] for line in text.splitlines() if line.startswith("  ")]
    for field in dataclasses.fields(BuildRequest):
        if field.metadata["in_file"]:
            assert listed.count(field.name.rstrip("_").replace("_", "-")) == 1
    assert "wide.toml (does not exist)" in text


def test_the_file_lists_the_values_of_a_key_that_has_few() -> None:
    text = file_text(keys(BuildRequest(), Settings()), "x")
    by_key = {key: meaning for meaning, key in re.findall(r"(?m)^# (.*)\n#: ([\w-]+) =", text)}
    assert by_key["mode"].endswith(": develop, wheel")
    assert not by_key["jobs"].endswith(": ")


@each_case("settings", [Settings(), BOTH])
def test_the_file_says_what_counts_and_can_be_read_again(settings: Settings) -> None:
    text = file_text(keys(BuildRequest(), settings), "x")
    again = check_settings("t.toml", tomllib.loads(text), {})
    assert again.values == settings.values
    assert again.variables == settings.variables
    samples = "".join(line.removeprefix("#: ") for line in text.splitlines(keepends=True) if "[]" not in line)
    shown = tomllib.loads(samples.replace('= ""', '= "x"'))
    assert set(shown) >= {"jobs", "preset", "set", "mirrors"}
    assert shown["set"] and shown["mirrors"]
    titles = [line for line in text.splitlines() if line.startswith("# -----")]
    assert len(titles) == len(set(titles)) > 2


def test_the_schema_is_printed_as_it_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    assert console.run(["config", "--schema"]) == 0
    assert capsys.readouterr().out == json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def test_the_schema_is_that_of_the_keys_and_is_current() -> None:
    made = json.loads(json.dumps(schema()))
    in_file = [field for field in dataclasses.fields(BuildRequest) if field.metadata["in_file"]]
    assert made["properties"].keys() >= {field.name.rstrip("_").replace("_", "-") for field in in_file}
    assert made["properties"]["preset"]["enum"][0] == "dev"
    written = Path(__file__).parents[3] / "docs" / SCHEMA
    assert json.loads(written.read_text("utf-8")) == made, "run: nox -s docs"
