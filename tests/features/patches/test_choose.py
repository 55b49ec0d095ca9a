"""Which patches a build gets, and that their rows are such as can be applied."""

from __future__ import annotations

import re
from typing import Any

from packaging.specifiers import SpecifierSet

from tests.support.for_each import each_case
from tests.support.jetsons import BOARDS, nano, orin_nano, tx2, with_tegra
from tests.support.machines import ask, found, linux_facts, plan_of, statuses, tool, with_tree
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.catalog.cuda import PatchRow
from torchbuild_tasks.catalog.match import admits
from torchbuild_tasks.features.patches.choose import check_patches, choose_patches
from torchbuild_tasks.model import Facts, Host, OwnPatch, Tool

CATALOG = load_catalog()


def chosen(facts: Facts, **flags: Any) -> list[str]:
    return [patch.id for patch in choose_patches(ask(facts, cuda=True, **flags))]


@each_case("row", CATALOG.patch, ids=lambda row: row.id)
def test_patch_rows(row: PatchRow) -> None:
    SpecifierSet(row.torch)
    assert row.because
    assert row.source
    assert row.os in ("", "linux", "windows")
    assert row.arch in ("", "x86_64", "aarch64")
    assert row.needs in ("", "launch-bounds")
    assert "\r" not in row.text
    assert row.text.endswith("\n")


@each_case("row", CATALOG.patch, ids=lambda row: row.id)
def test_a_diff_changes_files_that_exist_and_nothing_else(row: PatchRow) -> None:
    """No file is added, removed or renamed, so a file's hash alone shows whether a patch is applied."""
    old = re.findall(r"^--- (.*)$", row.text, re.MULTILINE)
    new = re.findall(r"^\+\+\+ (.*)$", row.text, re.MULTILINE)
    assert old
    assert [name.removeprefix("a/") for name in old] == [name.removeprefix("b/") for name in new]
    for name in old:
        assert name.startswith("a/")
        assert ".." not in name.split("/")
    assert not re.search(r"^(diff|index|new|deleted|rename|similarity|old mode)", row.text, re.MULTILINE)


def test_one_patch_of_a_kind_for_each_version() -> None:
    for version in ("1.1.0", "1.8.1", "1.9.0", "1.10.0a0", "1.13.1", "2.8.0a0", "2.15.0a0"):
        rows = [row for row in CATALOG.patch if not row.of and admits(row.torch, version)]
        assert len(rows) == 1, version


@each_case(
    ("version", "patch"),
    [("1.1.0", "launch-bounds-thcunn"), ("1.9.0a0", "launch-bounds-thcunn"), ("1.13.0a0", "launch-bounds")],
)
def test_small_register_files_get_their_patch(version: str, patch: str) -> None:
    for facts in (tx2(), nano()):
        assert chosen(with_tree(facts, version=version)) == [patch]
    (made,) = choose_patches(ask(with_tree(tx2(), version=version), cuda=True))
    assert made.diff.startswith("--- a/aten/")
    assert "Jetson TX2" in made.because


@each_case("name", sorted(set(BOARDS) - {"tx2", "nano"}))
def test_other_boards_get_none(name: str) -> None:
    assert chosen(BOARDS[name]()) == []
    assert check_patches(ask(BOARDS[name](), cuda=True)) == ()


def test_a_strange_board_with_that_chip_gets_it_too() -> None:
    facts = with_tegra(nano(), model="Acme", compatible=("acme,edge", "nvidia,tegra210"))
    assert chosen(facts) == ["launch-bounds"]


@each_case(("count", "end"), [(1, ": f0"), (3, ": f0, f1, f2"), (4, ": f0, f1, f2 and 1 more")])
def test_at_most_three_files_are_named(count: int, end: str) -> None:
    text = "".join(f"--- a/f{number}\n+++ b/f{number}\n@@ -1 +1 @@\n-1\n+2\n" for number in range(count))
    (finding,) = check_patches(ask(with_own(own("x.patch", text))))
    assert finding.status == "ok"
    assert finding.text.endswith(end)


def test_no_patch_for_what_it_is_not_for() -> None:
    assert choose_patches(ask(nano())) == (), "a CPU build"
    assert chosen(linux_facts()) == [], "a workstation"
    assert chosen(nano(host=Host(os="linux", arch="x86_64"))) == []
    assert chosen(with_tree(nano(), version="1.0.1")) == []
    assert chosen(with_tree(nano(), version=None)) == []
    assert chosen(with_tree(nano(), sample=True)) == []
    assert chosen(orin_nano()) == []


def test_the_plan_says_what_will_be_changed() -> None:
    findings = check_patches(ask(nano(), cuda=True))
    assert found(findings, "patch").status == "ok"
    assert "launch-bounds" in found(findings, "patch").text


@each_case("tools", [(), (Tool(name="git"),)])
def test_without_git_nothing_can_be_patched(tools: tuple[Tool, ...]) -> None:
    facts = nano(tools=(tool("cmake", "3.28.1"), *tools))
    findings = check_patches(ask(facts, cuda=True))
    assert statuses(findings, "patch") == ["ok", "error"]
    assert findings[-1].fix


# ---------------------------------------------------------------- the user's own

DIFF = "--- a/c10/a.h\n+++ b/c10/a.h\n@@ -1 +1 @@\n-x\n+y\n"


def with_own(*patches: OwnPatch, **changes: Any) -> Facts:
    git = tool("git", "2.39.2")
    facts = linux_facts(tools=(tool("cmake", "3.28.1"), tool("ninja", "1.11.1"), git), patches=patches)
    return with_tree(facts, **changes)


def own(name: str, text: str = DIFF, problem: str = "") -> OwnPatch:
    return OwnPatch(name=name, path=f"/home/me/patches/{name}", text=text, problem=problem)


def test_own_patches_come_after_ours_in_their_order_and_also_into_the_sample() -> None:
    facts = nano(patches=(own("1.patch"), own("2.patch")))
    assert chosen(facts) == ["launch-bounds", "1.patch", "2.patch"]
    assert chosen(with_own(own("1.patch"), sample=True)) == ["1.patch"]
    assert chosen(with_own(own("1.patch")), no_patches=True) == []


def test_the_plan_names_own_patches_their_file_and_what_they_change() -> None:
    plan = plan_of(with_own(own("1.patch")))
    text = found(plan.findings, "patch").text
    assert "1.patch" in text and "/home/me/patches" in text and "c10/a.h" in text
    edited = plan_of(with_own(own("1.patch", DIFF.replace("+y", "+z"))))
    assert plan.inputs["patch 1.patch"] != edited.inputs["patch 1.patch"]
    assert plan.verdict != "refuse"


@each_case(
    ("patches", "told"),
    [
        ((own("1.patch", "hello"),), "contains no change"),
        ((own("1.patch", "", problem="cannot be read"),), "cannot be read"),
        ((own("1.patch"), own("1.patch")), "has the name of"),
    ],
)
def test_own_patches_that_are_none_refuse_the_plan(patches: tuple[OwnPatch, ...], told: str) -> None:
    plan = plan_of(with_own(*patches))
    assert plan.verdict == "refuse"
    fine = {patch.name for patch in patches if patch.text == DIFF}
    assert statuses(plan.findings, "patch").count("ok") == len(fine)
    assert any(told in finding.text for finding in plan.findings if finding.status == "error")
    assert plan_of(with_own(*patches), no_patches=True).verdict != "refuse"
