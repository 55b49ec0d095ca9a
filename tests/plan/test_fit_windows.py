"""Checks of a Windows machine before a build."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.machines import found, linux_facts, plan_of, statuses, tree
from tests.support.windows import windows, windows_facts, windows_python
from torchbuild_tasks.model import Windows


def machine(**changes: Any) -> Windows:
    return windows(**changes)


def test_a_sound_machine_gets_advice_and_no_warning() -> None:
    findings = plan_of(windows_facts()).findings
    assert found(findings, "antivirus").status == "ok"
    for id in ("long-paths", "path-length", "git-long-paths", "python-debug"):
        assert statuses(findings, id) == []


def test_nothing_of_it_on_linux() -> None:
    ids = {finding.id for finding in plan_of(linux_facts()).findings}
    assert ids.isdisjoint({"antivirus", "toolset", "long-paths", "git-long-paths"})


def test_a_path_near_the_longest_line_of_cmd() -> None:
    for characters, told in ((None, False), (4_000, False), (6_500, True), (9_000, True)):
        findings = plan_of(windows_facts(windows=machine(path_characters=characters))).findings
        found_here = [each for each in findings if each.id == "path-list"]
        assert bool(found_here) is told
        assert all(f"{characters:,}" in each.text and each.status == "warn" for each in found_here)


@pytest.mark.parametrize(("long_paths", "word"), [(False, "off"), (None, "not known")])
def test_long_paths_that_are_not_on(long_paths: bool | None, word: str) -> None:
    finding = found(plan_of(windows_facts(windows=machine(long_paths=long_paths))).findings, "long-paths")
    assert (finding.status, word in finding.text) == ("warn", True)
    assert "LongPathsEnabled /t REG_DWORD /d 1" in finding.fix


@pytest.mark.parametrize(("length", "told"), [(52, []), (53, ["warn"])])
def test_a_long_checkout_path(length: int, told: list[str]) -> None:
    root = "C:\\" + "p" * (length - 3)
    facts = windows_facts(tree=tree(root=root, build_dir=rf"{root}\build"))
    assert statuses(plan_of(facts).findings, "path-length") == told


@pytest.mark.parametrize(
    ("git", "setting", "told"), [(True, None, ["warn"]), (True, True, []), (False, None, [])]
)
def test_gits_long_paths(git: bool, setting: bool | None, told: list[str]) -> None:
    facts = windows_facts(tree=tree(root=r"C:\pt", git=git), windows=machine(git_long_paths=setting))
    assert statuses(plan_of(facts).findings, "git-long-paths") == told


@pytest.mark.parametrize(
    ("library", "build_type", "told"),
    [(False, "Debug", ["error"]), (False, "RelWithDebInfo", []), (True, "Debug", []), (None, "Debug", [])],
)
def test_the_debug_library_of_python(library: bool | None, build_type: str, told: list[str]) -> None:
    facts = windows_facts(pythons=(windows_python(debug_library=library),))
    findings = plan_of(facts, build_type=build_type).findings
    assert statuses(findings, "python-debug") == told
    if told:
        assert "python311_d.lib" in found(findings, "python-debug").text


def test_shells_of_another_system_only_warn() -> None:
    """sh separates lists with the colon of C:, so its file cannot be written; the build does not need it."""
    plan = plan_of(windows_facts(), env_shell="all")
    assert plan.verdict == "warn"
    assert {env_file.shell for env_file in plan.env_files} == {"bat", "ps1"}


@pytest.mark.parametrize(("active", "status"), [(None, "error"), ("14.44.35207", "warn")])
def test_a_missing_sdk_is_reported(active: str | None, status: str) -> None:
    """Nothing compiles without one; an active environment may have it from elsewhere."""
    facts = windows_facts(windows=machine(sdks=(), active=active))
    assert found(plan_of(facts).findings, "windows-sdk").status == status
