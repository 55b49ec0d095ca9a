"""Whether a build can work: every problem at once, with what to do, and an unknown is no problem."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.machines import (
    found,
    linux_facts,
    modern_tree,
    plan_of,
    python,
    statuses,
    tool,
    tree,
    with_tree,
)
from torchbuild_tasks.catalog import GIB, load_catalog
from torchbuild_tasks.model import Disk, Facts, Host, Memory, Previous
from torchbuild_tasks.values import replace


def with_disk(free: int | None, **changes: Any) -> Facts:
    return linux_facts(disk=Disk(path="/src/pytorch", mount="/src", free=free), **changes)


def test_a_sound_machine_is_ok() -> None:
    names = {"cmake": "3.28.1", "ninja": "1.13.2", "ccache": "4.7.5", "mold": "2.4.0"}
    plan = plan_of(linux_facts(tools=tuple(tool(*each) for each in names.items())))
    assert plan.verdict == "ok"
    assert {finding.status for finding in plan.findings} == {"ok"}


HOPELESS = linux_facts(
    host=Host(os="linux", arch="i686"),
    disk=Disk(path="/src/pytorch", mount="/src", free=GIB),
    compilers=(tool("g++", "7.5.0"),),
    pythons=(python(version="3.15.0", bits=32, headers=False, packages={"setuptools": "70"}),),
    memory=Memory(available=2 * GIB),
    environ={"MAX_JOBS": "abc", "PYTORCH_BUILD_NUMBER": "1"},
    tree=tree(empty=("third_party/fmt", "third_party/onnx"), writable=False),
)
PROBLEMS = (
    "arch",
    "compiler",
    "device",
    "disk",
    "jobs",
    "python",
    "python-bits",
    "python-headers",
    "python-pip",
    "submodules",
    "variable",
    "version-pair",
    "writable",
)


def test_all_problems_are_listed_together_each_with_what_to_do() -> None:
    plan = plan_of(HOPELESS, set=("CMAKE_INSTALL_PREFIX=/opt",), cpu=True, cuda=True)
    assert plan.verdict == "refuse"
    errors = [finding for finding in plan.findings if finding.status == "error"]
    assert sorted(finding.id for finding in errors) == list(PROBLEMS)
    assert [finding.id for finding in errors if not finding.fix] == []


def test_a_refused_plan_still_shows_its_choices() -> None:
    plan = plan_of(HOPELESS)
    assert plan.choices
    assert plan.compile.argv


@pytest.mark.parametrize("problem", ["no such folder", "no torch checkout, for it holds no c10"])
def test_a_tree_that_is_none_is_named_alone_and_once(problem: str) -> None:
    looked = ("/src/version.txt", "/src/c10")
    bad = replace(HOPELESS, tree=tree(root="/src", problem=problem, looked=looked, version=None, era=None))
    bad = replace(bad, host=Host(os="linux", arch="x86_64"))
    plan = plan_of(bad)
    (finding,) = plan.findings
    assert (finding.id, finding.status, plan.verdict) == ("source", "error", "refuse")
    assert finding.text == f"/src: {problem}"
    assert "--source" in finding.fix


def test_a_zip_download_that_lost_its_git_is_no_problem_by_itself() -> None:
    assert plan_of(with_tree(linux_facts(), git=False, commit=None)).verdict == "ok"


@pytest.mark.parametrize(
    ("arch", "status"), [("x86_64", []), ("aarch64", []), ("i686", ["error"]), ("armv7l", ["error"])]
)
def test_the_architecture(arch: str, status: list[str]) -> None:
    facts = linux_facts(host=Host(os="linux", arch=arch))
    assert statuses(plan_of(facts).findings, "arch") == status


@pytest.mark.parametrize("version", ["2.99.0", "3.0.0a0"])
def test_a_series_of_the_future_is_planned_like_the_newest(version: str) -> None:
    plan = plan_of(linux_facts(tree=modern_tree(version=version)))
    finding = found(plan.findings, "torch-version")
    assert finding.status == "unknown"
    assert version in finding.text
    assert f"planned like {load_catalog().torch[-1].version}" in finding.text
    assert plan.verdict == "ok"


def test_a_version_that_cannot_be_read_is_unknown() -> None:
    finding = found(plan_of(with_tree(linux_facts(), version="main")).findings, "torch-version")
    assert finding.status == "unknown"
    assert "'main'" in finding.text


def test_a_known_series_is_not_mentioned() -> None:
    assert statuses(plan_of().findings, "torch-version") == []


def test_a_tree_without_a_build_system_is_refused() -> None:
    assert found(plan_of(with_tree(linux_facts(), era=None)).findings, "era").status == "error"


@pytest.mark.parametrize(("writable", "status"), [(True, []), (None, []), (False, ["error"])])
def test_a_read_only_checkout(writable: bool | None, status: list[str]) -> None:
    plan = plan_of(with_tree(linux_facts(), writable=writable))
    assert statuses(plan.findings, "writable") == status


@pytest.mark.parametrize(
    ("version", "cmake", "status"),
    [
        ("2.5.1", "4.0.1", ["warn"]),
        ("2.8.0a0", "4.0.1", []),
        ("2.8.0a0", "3.20.0", ["warn"]),
        ("2.8.0a0", "3.28.1", []),
    ],
)
def test_a_cmake_that_does_not_fit_is_told_of(version: str, cmake: str, status: list[str]) -> None:
    facts = with_tree(linux_facts(tools=(tool("cmake", cmake), tool("ninja", "1.11.1"))), version=version)
    plan = plan_of(facts)
    assert statuses(plan.findings, "cmake") == status
    if status:
        assert cmake in found(plan.findings, "cmake").text
        assert plan.environment.install is not None


@pytest.mark.parametrize(
    ("preset", "free", "status"),
    [
        ("minimal", 9 * GIB, "ok"),
        ("minimal", 7 * GIB, "error"),
        ("dev", 9 * GIB, "error"),
        ("debug", 20 * GIB, "error"),
        ("debug", 90 * GIB, "ok"),
        ("dev", None, "unknown"),
        ("dev", 0, "error"),
    ],
)
def test_the_disk_by_preset(preset: str, free: int | None, status: str) -> None:
    finding = found(plan_of(with_disk(free), preset=preset).findings, "disk")
    assert finding.status == status
    assert finding.fix or status != "error"


def test_a_disk_that_nobody_could_read_does_not_refuse() -> None:
    assert plan_of(with_disk(None)).verdict == "ok"


def test_the_sample_needs_little_disk() -> None:
    assert found(plan_of(with_tree(with_disk(GIB), sample=True)).findings, "disk").status == "ok"


def test_a_tree_that_was_built_before_holds_most_of_what_it_needs() -> None:
    facts = with_tree(with_disk(2 * GIB), previous=Previous(result="ok"))
    assert found(plan_of(facts).findings, "disk").status == "warn"


@pytest.mark.parametrize("character", ";#,|\n")
def test_a_character_that_no_build_survives_is_named(character: str) -> None:
    facts = linux_facts(tree=tree(root=f"/src/py{character}torch"))
    (finding,) = [f for f in plan_of(facts).findings if f.id == "path"]
    assert finding.status == "error"
    assert repr(character) in finding.text


@pytest.mark.parametrize("character", " é&%$'!@^")
def test_other_characters_are_no_matter(character: str) -> None:
    facts = linux_facts(tree=tree(root=f"/src/py{character}torch"))
    assert "path" not in [finding.id for finding in plan_of(facts).findings]
