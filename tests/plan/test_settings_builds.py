"""[builds.NAME] of torchbuild.toml: inheritance, and errors with file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.machines import linux_facts, plan_of
from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.facts.settings import read_settings
from torchbuild_tasks.plan.settings import Settings, check_settings, pick

FAMILY = """\
preset = "dev"
cuda = true

[set]
USE_MKLDNN = 1

[builds.base]
jobs = 3
with-helper = ["mkl"]
folder = "../base"

[builds.base.set]
USE_MKLDNN = 0
BUILD_TEST = 0

[builds.middle]
extends = "base"
build-type = "RelWithDebInfo"
ref = "v2.9.1"

[builds.debug]
extends = "middle"
build-type = "Debug"
cpu = true
set.BUILD_TEST = 1
"""


def read(folder: Path, text: str) -> Settings:
    path = folder / "torchbuild.toml"
    path.write_text(text, "utf-8")
    found = read_settings(path)
    return check_settings(found.path, found.data, found.lines)


def test_the_child_wins_over_its_parents_and_all_over_the_file(tmp_path: Path) -> None:
    settings = read(tmp_path, FAMILY)
    seen = settings.of(settings.builds["debug"])
    assert seen.values == {
        "preset": "dev",
        "jobs": 3,
        "with_helper": ("mkl",),
        "build_type": "Debug",
        "cpu": True,
    }
    assert seen.variables == {"USE_MKLDNN": "0", "BUILD_TEST": "1"}
    assert (seen.build, settings.builds["debug"].parents) == (settings.builds["debug"], ("middle", "base"))
    assert settings.values == {"preset": "dev", "cuda": True}


def test_a_ref_is_inherited_and_a_folder_is_not(tmp_path: Path) -> None:
    builds = read(tmp_path, FAMILY).builds
    assert [build.ref for build in builds.values()] == [None, "v2.9.1", "v2.9.1"]
    assert [build.folder for build in builds.values()] == ["../base", None, None]


def test_every_value_says_which_table_it_is_from(tmp_path: Path) -> None:
    settings = read(tmp_path, FAMILY)
    seen = settings.of(settings.builds["debug"])
    places = {name: seen.place(name).split(" in ")[0] for name in ("build_type", "jobs", "set.USE_MKLDNN")}
    assert places == {
        "build_type": "[builds.debug]",
        "jobs": "[builds.base]",
        "set.USE_MKLDNN": "[builds.base]",
    }
    assert seen.place("preset") == str(tmp_path / "torchbuild.toml")


def test_the_plan_says_where_a_value_is_from(tmp_path: Path) -> None:
    settings = read(tmp_path, FAMILY)
    plan = plan_of(linux_facts(), settings.of(settings.builds["debug"]))
    choices = {choice.name: choice for choice in plan.choices}
    assert choices["build type"].because.startswith("build-type in [builds.debug] in ")
    assert choices["BUILD_TEST"].because.startswith("[set] in [builds.debug] in ")
    assert choices["USE_CUDA"].value == "0"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[builds.a]\nextends = "b"\n[builds.b]\nextends = "a"', r"line 4: .* circle: a -> b -> a"),
        ('[builds.a]\nextends = "a"', r"line 2: .* circle: a -> a"),
        ('[builds.debug]\n[builds.a]\nextends = "debgu"', r"line 3: .*'debgu'.*did you mean debug\?"),
        ("[builds.a]\nUSE_CUDA = 0", r"line 2: .* and belongs under \[builds\.a\.set\]"),
        ("[builds.a.set]\njobs = 3", r"line 2: jobs is a key of its own, and it stands under"),
        ("[builds]\njobs = 3", r"line 2: jobs is a key of its own, and it stands under \[builds\]"),
        ("[builds.a]\njbos = 3", r"line 2: unknown key 'builds.a.jbos'; did you mean jobs\?"),
        ('[builds.a]\njobs = "3"', r"line 2: builds.a.jobs = '3' cannot be read"),
        ('[builds.a]\n[builds.a.set]\n"USE X" = 1', r"line 3: builds.a.set.USE X"),
        ("[builds.a]\n[builds.a.builds.b]", r"line 2: unknown key 'builds.a.builds'"),
        ('[builds.a]\nref = ""', r"line 2: builds.a.ref must be text"),
        ('[builds."../a"]', r"line 1: '\.\./a' cannot name a build"),
        ("[builds.con]", r"line 1: 'con' cannot name a build"),
        ("[builds]\na = 1", r"line 2: builds.a must be a table"),
        ("builds = 1", r"line 1: builds = 1 cannot be read"),
        ("[builds.a]\ndry-run = true", r"line 2: unknown key 'builds.a.dry-run'"),
    ],
)
def test_what_cannot_be_is_refused_with_file_and_line(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says) as raised:
        read(tmp_path, text)
    assert str(tmp_path / "torchbuild.toml") in raised.value.what


def test_an_unknown_name_gets_the_nearest(tmp_path: Path) -> None:
    settings = read(tmp_path, FAMILY)
    with pytest.raises(UsageError, match=r"no build 'debgu'; did you mean debug\?"):
        pick(settings.builds, "debgu", settings.path)
    with pytest.raises(UsageError) as raised:
        pick({}, "debug", None)
    assert raised.value.looked == ("no torchbuild.toml",)


def test_a_wrong_word_is_answered_by_the_right_ones() -> None:
    for data in ({"preset": "fast"}, {"builds": {"a": {"preset": "fast"}}}):
        with pytest.raises(UsageError) as caught:
            check_settings("x.toml", data, {})
        assert "Choose one of" in caught.value.next_step and "minimal" in caught.value.next_step
