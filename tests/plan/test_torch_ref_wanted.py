"""--torch compared with the checkout; without both, the newest torch that fits the machine."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.for_each import each_case
from tests.support.machines import ask, linux_facts, plan_of, python, settings, tool, with_tree
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.model import Facts, Finding, Tree
from torchbuild_tasks.plan.torch_ref import check_torch, wanted_torch
from torchbuild_tasks.values import replace

NEWEST = load_catalog().torch[-1].latest
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def checked(word: str, **tree: Any) -> Finding:
    (finding,) = check_torch(ask(with_tree(linux_facts(), **tree), torch=word))
    return finding


def nowhere(**changes: Any) -> Facts:
    return linux_facts(tree=Tree(root="/src", problem="no torch checkout, for it holds no c10"), **changes)


@each_case(
    ("word", "tree", "status"),
    [
        ("2.8", {"version": "2.8.0a0"}, "ok"),
        ("2.8.0", {"version": "2.8.0a0", "tags": ("ciflow/x", "v2.8.0")}, "ok"),
        ("2.8.0", {"version": "2.8.0"}, "ok"),
        ("2.8.0", {"version": "2.8.0a0", "tags": ()}, "unknown"),
        ("2.7.1", {"version": "2.7.0a0", "tags": ("v2.7.0",)}, "error"),
        ("2.7.1", {"version": "2.7.0"}, "error"),
        ("2.9.1", {"version": "2.8.0a0", "tags": ("v2.9.1",)}, "error"),
        ("2.9", {"version": "2.8.0a0"}, "error"),
        ("latest", {"version": "2.8.0a0"}, "error"),
        ("latest", {"version": f"{NEWEST}a0", "tags": (f"v{NEWEST}",)}, "ok"),
        ("main", {"version": "2.99.0a0"}, "ok"),
        ("main", {"version": "2.8.0a0"}, "error"),
        ("main", {"version": "2.99.0"}, "error"),
        (COMMIT[:8], {"commit": COMMIT}, "ok"),
        ("2.8.0a0+git0123456", {"commit": COMMIT}, "ok"),
        ("fedcba9", {"commit": COMMIT}, "error"),
        ("fedcba9", {"commit": None}, "unknown"),
        ("release/2.8", {}, "unknown"),
        ("2.8", {"version": "no version"}, "unknown"),
    ],
)
def test_the_checkout_is_compared_with_the_flag(word: str, tree: dict[str, Any], status: str) -> None:
    assert checked(word, **tree).status == status


def test_another_version_refuses_the_plan_and_names_the_ways_out() -> None:
    plan = plan_of(torch="2.9.1")
    (finding,) = [each for each in plan.findings if each.id == "torch"]
    assert plan.verdict == "refuse"
    assert "/src/pytorch is torch 2.8.0a0, and --torch asks for 2.9.1" in finding.text
    assert "source get 2.9.1" in finding.fix
    assert "source update v2.9.1 --source /src/pytorch" in finding.fix
    assert "leave --torch out" in finding.fix


@each_case(
    ("flags", "told"),
    [
        ({"url": "https://host/x.git"}, ["flags"]),
        ({"url": "https://host/x.git", "torch": "2.8"}, ["torch", "flags"]),
        ({"url": "https://host/x.git", "torch": "2.9"}, ["torch"]),
        ({"said": settings({"url": "https://host/x.git"})}, []),
    ],
)
def test_an_address_beside_a_checkout_does_nothing(flags: dict[str, Any], told: list[str]) -> None:
    findings = check_torch(ask(linux_facts(), **flags))
    assert [each.id for each in findings] == told
    if told == ["torch"]:
        assert "source get 2.9 --url https://host/x.git" in findings[0].fix


def test_outside_of_git_there_is_nothing_to_switch() -> None:
    assert "switch" not in checked("2.9.1", git=False).fix


def test_without_the_flag_nothing_is_compared() -> None:
    assert check_torch(ask()) == ()


def test_a_word_of_the_settings_file_counts_and_is_named() -> None:
    (finding,) = check_torch(ask(said=settings({"torch": "2.9"})))
    assert finding.status == "error"
    assert "leave --torch out" not in finding.fix
    with pytest.raises(UsageError, match="torch in /src/torchbuild.toml '2.99'"):
        plan_of(said=settings({"torch": "2.99"}))


def test_without_a_checkout_the_plan_names_the_newest_that_fits() -> None:
    named = {choice.name: choice for choice in plan_of(nowhere()).choices}
    assert named["torch"].value == f"v{NEWEST}"
    assert named["torch"].because == "the newest that fits this machine"


@pytest.mark.parametrize(
    ("facts", "version"),
    [
        (nowhere(compilers=(tool("g++", "10.2.0"),)), "2.11"),
        (nowhere(pythons=(python(version="3.10.4"),)), "2.14"),
        (nowhere(pythons=()), load_catalog().torch[-1].version),
    ],
)
def test_the_newest_that_fits_depends_on_the_machine(facts: Facts, version: str) -> None:
    wanted = wanted_torch(ask(facts))
    (row,) = (row for row in load_catalog().torch if row.version == version)
    assert wanted is not None and wanted.ref.ref == f"v{row.latest}"


def test_where_none_fits_none_is_named() -> None:
    facts = nowhere(pythons=(python(version="2.7.18"),))
    assert wanted_torch(ask(facts)) is None
    facts = replace(facts, compilers=())
    assert {choice.name: choice.value for choice in plan_of(facts).choices}["torch"] == "None"
