"""The state of an existing build tree: every changed input is named with before and after."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.machines import (
    base_python,
    built,
    linux_facts,
    modern_tree,
    plan_of,
    python,
    settings,
    statuses,
    tool,
    tree,
    with_tree,
)
from torchbuild_tasks.model import Change, CMakeCache, Facts, Freshness, Host, Running
from torchbuild_tasks.values import replace

GXX_12 = (tool("g++", "12.2.0"), tool("gcc", "12.2.0"))
GXX_13 = (tool("g++", "13.1.0"), tool("gcc", "13.1.0"))


def fresh(facts: Facts, **flags: Any) -> Freshness:
    return plan_of(facts, **flags).freshness


def changed(freshness: Freshness) -> dict[str, Change]:
    assert len(freshness.changes) == len({change.name for change in freshness.changes})
    return {change.name: change for change in freshness.changes}


@pytest.mark.parametrize("own", [tree(), modern_tree()], ids=["setuptools", "scikit-build-core"])
def test_a_tree_that_was_never_built(own: Any) -> None:
    assert fresh(linux_facts(tree=own)).needs == "first"


@pytest.mark.parametrize("own", [tree(), modern_tree()], ids=["setuptools", "scikit-build-core"])
def test_nothing_changed(own: Any) -> None:
    freshness = fresh(built(linux_facts(tree=own)))
    assert (freshness.needs, freshness.changes) == ("nothing", ())
    assert "no input changed" in freshness.because


@pytest.mark.parametrize("flags", [{"jobs": 2}, {"env_shell": "all"}, {"quiet": True}, {"yes": True}])
def test_flags_that_change_no_object(flags: dict[str, Any]) -> None:
    assert fresh(built(), **flags).needs == "nothing"


@pytest.mark.parametrize("environ", [{"MAX_JOBS": "3"}, {"VERBOSE": "1"}, {"CCACHE_DIR": "/cache"}])
def test_variables_that_change_no_object(environ: dict[str, str]) -> None:
    facts = replace(built(), environ=environ)
    assert fresh(facts).needs == "nothing"


def test_where_a_value_comes_from_does_not_matter() -> None:
    facts = replace(built(set=("BLAS=MKL",)), environ={"BLAS": "MKL"})
    assert fresh(facts).needs == "nothing"


@pytest.mark.parametrize("own", [tree(), modern_tree()], ids=["setuptools", "scikit-build-core"])
@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        (
            ("USE_MKLDNN=0",),
            ("USE_MKLDNN=1",),
            Change(name="USE_MKLDNN", before="0", after="1", needs="reconfigure"),
        ),
        (
            (),
            ("USE_MKLDNN=0",),
            Change(name="USE_MKLDNN", before="(not set)", after="0", needs="reconfigure"),
        ),
        (
            ("USE_MKLDNN=0",),
            (),
            Change(name="USE_MKLDNN", before="0", after="(not set)", needs="reconfigure"),
        ),
        ((), ("CFLAGS=-O1",), Change(name="CFLAGS", before="(not set)", after="-O1", needs="reconfigure")),
        ((), ("BLAS=MKL",), Change(name="BLAS", before="(not set)", after="MKL", needs="reconfigure")),
    ],
)
def test_a_changed_variable_reaches_cmake(
    own: Any, before: tuple[str, ...], after: tuple[str, ...], change: Change
) -> None:
    freshness = fresh(built(linux_facts(tree=own), set=before), set=after)
    assert freshness.needs == "reconfigure"
    assert changed(freshness) == {change.name: change}
    assert change.name in freshness.because


def test_a_preset_changes_every_variable_it_brings() -> None:
    freshness = fresh(built(preset="full"), preset="minimal")
    assert freshness.needs == "reconfigure"
    assert {"USE_DISTRIBUTED", "BUILD_TEST"} <= set(changed(freshness))


@pytest.mark.parametrize(
    ("flags", "name"),
    [({"build_type": "Debug"}, "build type"), ({"set": ("DEBUG=1",)}, "build type")],
)
def test_what_needs_a_reconfigure(flags: dict[str, Any], name: str) -> None:
    freshness = fresh(built(), **flags)
    assert freshness.needs == "reconfigure"
    assert changed(freshness)[name].before == "Release"
    assert changed(freshness)[name].after == "Debug"


@pytest.mark.parametrize(
    ("facts", "name"),
    [
        (with_tree(built(), version="2.8.1"), "version"),
        (with_tree(built(), digests={"version.txt": "changed", "setup.py": "bb"}), "file version.txt"),
        (replace(built(), tools=(tool("cmake", "3.31.0"), tool("ninja", "1.11.1"))), "cmake"),
    ],
)
def test_inputs_that_need_a_reconfigure(facts: Facts, name: str) -> None:
    freshness = fresh(facts)
    assert freshness.needs == "reconfigure"
    assert name in changed(freshness)


@pytest.mark.parametrize(
    ("facts", "name"),
    [
        (with_tree(built(), commit="f" * 40), "commit"),
        (with_tree(built(), commit=None), "commit"),
        (with_tree(built(), digests={"version.txt": "aa", "setup.py": "changed"}), "file setup.py"),
    ],
)
def test_changed_sources_need_a_build(facts: Facts, name: str) -> None:
    freshness = fresh(facts)
    assert (freshness.needs, list(changed(freshness))) == ("build", [name])


def test_another_mode_installs_the_same_objects() -> None:
    freshness = fresh(built(), mode="wheel")
    assert freshness.needs == "build"
    assert changed(freshness)["mode"].after == "wheel"


def test_a_wheel_is_always_made() -> None:
    facts = built(mode="wheel")
    assert fresh(facts, mode="wheel").needs == "build"


@pytest.mark.parametrize(
    ("flags", "facts"),
    [
        ({"set": ("CXX=/usr/bin/clang++",)}, built(linux_facts(compilers=(*GXX_12, tool("clang++", "17"))))),
        ({"set": ("CC=/usr/bin/clang",)}, built(linux_facts(compilers=(*GXX_12, tool("clang", "17"))))),
        ({"set": ("CMAKE_GENERATOR=Unix Makefiles",)}, built()),
        ({"set": ("USE_NINJA=0",)}, built()),
        ({}, replace(built(), compilers=GXX_13)),
        ({}, with_tree(built(), era="scikit-build-core")),
        ({}, with_tree(built(), root="/other/pytorch", cache=None)),
    ],
    ids=["CXX", "CC", "generator", "USE_NINJA", "compiler version", "era", "source"],
)
def test_what_needs_a_clean(flags: dict[str, Any], facts: Facts) -> None:
    freshness = fresh(facts, **flags)
    assert freshness.needs == "clean"
    assert [change for change in freshness.changes if change.needs == "clean"]


def test_another_python_needs_a_clean_and_says_which() -> None:
    other = python(executable="/other/bin/python", version="3.12.1")
    freshness = fresh(replace(built(), pythons=(other,)))
    assert freshness.needs == "clean"
    assert "/venv/bin/python" in freshness.because
    assert "/other/bin/python" in freshness.because


def test_another_version_of_the_same_python_needs_a_clean() -> None:
    facts = built()
    newer = replace(facts.pythons[0], version="3.12.1")
    assert fresh(replace(facts, pythons=(newer,))).needs == "clean"


def test_a_moved_tree_needs_a_clean_and_says_from_where() -> None:
    facts = with_tree(linux_facts(), cache=CMakeCache(home="/elsewhere/pytorch"))
    freshness = fresh(facts)
    assert freshness.needs == "clean"
    assert "/elsewhere/pytorch" in freshness.because


def test_a_slash_at_the_end_is_no_move() -> None:
    facts = built()
    assert facts.tree.cache is not None
    cache = replace(facts.tree.cache, home=f"{facts.tree.root}/")
    assert fresh(with_tree(facts, cache=cache)).needs == "nothing"


def test_windows_writes_forward_slashes_into_the_cache() -> None:
    root = "C:\\src\\pytorch"
    facts = built(
        linux_facts(
            host=Host(os="windows", arch="x86_64"),
            tree=tree(root=root, build_dir=f"{root}\\build"),
            pythons=(python(executable="C:\\venv\\Scripts\\python.exe"),),
        )
    )
    cache = CMakeCache(home="C:/src/pytorch", generator="Ninja", python="C:/venv/Scripts/python.exe")
    assert fresh(with_tree(facts, cache=cache)).needs == "nothing"


def test_a_tree_made_by_hand_is_configured_anew() -> None:
    cache = CMakeCache(home="/src/pytorch", generator="Ninja", python="/venv/bin/python")
    freshness = fresh(with_tree(linux_facts(), cache=cache))
    assert freshness.needs == "reconfigure"
    assert "no record of this tool" in freshness.because


@pytest.mark.parametrize("recorded", [False, True, None])
def test_a_tree_made_by_hand_that_has_to_go_is_the_users_to_remove(recorded: bool | None) -> None:
    """The build would stop there; with a record it cleans, and without --clean the first fix leads out."""
    cases: list[tuple[CMakeCache, dict[str, Any]]]
    cases = [(CMakeCache(python="/other/bin/python"), {}), (CMakeCache(), {"clean": True})]
    for cache, flags in cases:
        plan = plan_of(with_tree(linux_facts(), cache=cache, recorded=recorded), **flags)
        assert plan.freshness.needs == "clean"
        assert statuses(plan.findings, "clean") == ["error"] * (recorded is False)
        for finding in plan.findings:
            if finding.id == "clean":
                assert "rm -r /src/pytorch/build" in str(finding.fix)
                assert ("leave --clean out" in str(finding.fix)) == bool(flags)
    laid = plan_of(with_tree(linux_facts(), cache=cache, recorded=False), from_wheel="2.6.0", clean=True)
    assert not statuses(laid.findings, "clean")
    gone = plan_of(with_tree(linux_facts(), cache=None, recorded=False))
    assert not statuses(gone.findings, "clean")


@pytest.mark.parametrize("python", ["/venv/../venv/bin/python3", "/venv//bin/./python", "/venv/bin/python"])
def test_an_interpreter_has_many_spellings(python: str) -> None:
    facts = built()
    assert facts.tree.cache is not None
    assert fresh(with_tree(facts, cache=replace(facts.tree.cache, python=python))).needs == "nothing"


def test_the_ninja_of_a_venv_that_is_made_anew_is_gone() -> None:
    """As under another HOME, where nothing says that the venv in the checkout is ours."""
    venv = "/src/pytorch/.torchbuild/venv-3.11"
    facts = built(linux_facts(pythons=(base_python(),)))
    cache = CMakeCache(home="/src/pytorch", generator="Ninja", python=f"{venv}/bin/python")
    for program, needs in ((f"{venv}/bin/ninja", "reconfigure"), ("/usr/bin/ninja", "nothing")):
        found = fresh(with_tree(facts, cache=replace(cache, make_program=program)))
        assert (found.needs, program in found.because) == (needs, needs == "reconfigure")


def test_a_deleted_cache_is_made_again_with_the_variables() -> None:
    """Ninja alone would run CMake without a single one of them."""
    assert fresh(with_tree(built(), cache=None)).needs == "reconfigure"


@pytest.mark.parametrize("result", ["failed", "interrupted", "running"])
def test_a_build_that_did_not_end_well_goes_on(result: str) -> None:
    freshness = fresh(built(result=result))
    assert freshness.needs == "build"
    assert result in freshness.because


def test_a_failed_build_with_a_changed_variable_is_configured_anew() -> None:
    assert fresh(built(result="failed"), set=("USE_MKLDNN=0",)).needs == "reconfigure"


@pytest.mark.parametrize("facts", [linux_facts(), built(), built(result="failed")])
def test_clean_on_the_command_line(facts: Facts) -> None:
    freshness = fresh(facts, clean=True)
    assert freshness.needs == "clean"
    assert "--clean" in freshness.because


def test_the_strongest_need_decides_and_all_changes_are_named() -> None:
    facts = replace(built(), compilers=GXX_13)
    freshness = fresh(facts, set=("USE_MKLDNN=0",), mode="wheel")
    assert freshness.needs == "clean"
    assert {"compiler", "USE_MKLDNN", "mode"} <= set(changed(freshness))
    assert "compiler" in freshness.because


def test_a_reason_that_is_a_part_of_another_is_told_once() -> None:
    because = fresh(replace(built(), compilers=GXX_13), set=("CXX=g++", "CC=gcc")).because
    assert because.startswith("changed since the last build: c compiler, compiler")
    assert because.count("CMake keeps the compiler of its first run") == 1


def test_a_setting_in_the_file_counts_too() -> None:
    plan = plan_of(built(), settings(variables={"USE_MKLDNN": "0"}))
    assert plan.freshness.needs == "reconfigure"


def after(configured: str, brought: str | None, on_path: str = "3.28.1") -> Facts:
    """The machine after its first build, which has put this CMake into the Python of the build."""
    facts = built(replace(linux_facts(), tools=(tool("cmake", on_path), tool("ninja", "1.11.1"))))
    assert facts.tree.cache is not None
    cache = replace(facts.tree.cache, cmake=configured)
    packages = dict(facts.pythons[0].packages) | ({"cmake": brought} if brought else {})
    facts = replace(facts, pythons=(replace(facts.pythons[0], packages=packages), *facts.pythons[1:]))
    return with_tree(facts, cache=cache)


@pytest.mark.parametrize(
    ("configured", "brought", "needs"),
    [
        ("4.4.4", "4.4.4", "nothing"),  # installed after the plan that was recorded with 3.28.1
        ("3.28.1", None, "nothing"),
        ("3.28.4", "3.28.4.post1", "nothing"),
        ("3.28.1", "4.4.4", "reconfigure"),
    ],
)
def test_the_cmake_that_configured_is_compared_with_the_next_one(
    configured: str, brought: str | None, needs: str
) -> None:
    plan = plan_of(after(configured, brought))
    assert plan.freshness.needs == needs
    assert needs != "nothing" or plan.way.name == "install"


def with_ninjas(own: str, machine: str = "1.11.1", **cache: Any) -> Facts:
    """After a build: the version of the Python's own Ninja ("" for none), and what the tree remembers."""
    facts = built()
    packages = {**facts.pythons[0].packages, "ninja": own} if own else facts.pythons[0].packages
    tools = (tool("cmake", "3.28.1"), tool("ninja", machine, "/usr/bin/ninja"))
    assert facts.tree.cache is not None
    facts = with_tree(facts, cache=replace(facts.tree.cache, **{"make_program": "/usr/bin/ninja", **cache}))
    first = replace(facts.pythons[0], packages=packages)
    return replace(facts, tools=tools, pythons=(first, *facts.pythons[1:]))


@pytest.mark.parametrize(
    ("facts", "needs"),
    [
        # What reads the log goes on, wherever it lies: the machine's, though another came into the Python ...
        (with_ninjas("1.13.2", make_version="1.11.1", ninja_log=5), "nothing"),
        (with_ninjas("1.13.2", "1.13.0", make_version="1.13.0", ninja_log=7), "nothing"),
        # ... and any where no log is known
        (with_ninjas("1.13.2"), "nothing"),
        (with_ninjas("", make_program="/opt/other/ninja"), "nothing"),
        # It is gone, or another one has built here meanwhile: CMake must find one that is here.
        (with_ninjas("1.13.2", make_gone=True, ninja_log=5), "reconfigure"),
        (with_ninjas("1.13.2", make_version="1.11.1", ninja_log=7), "reconfigure"),
    ],
)
def test_cmake_runs_again_only_where_its_ninja_cannot_go_on(facts: Facts, needs: str) -> None:
    plan = plan_of(facts)
    assert (plan.freshness.needs, plan.way.name == "install") == (needs, needs == "nothing")


def test_a_running_build_and_a_killed_one_are_distinguished() -> None:
    running = Running(command="build", user="ada", host="box", pid=42, started="2026-01-02T03:04:05+00:00")
    facts = built()
    previous = facts.tree.previous
    assert previous is not None
    facts = with_tree(facts, previous=replace(previous, result="running"))
    assert "was cut off" in fresh(facts).because
    assert not any(each.id == "running" for each in plan_of(facts).findings)
    plan = plan_of(with_tree(facts, running=running))
    assert plan.freshness.because.startswith("process 42 builds here now")
    (finding,) = (each for each in plan.findings if each.id == "running")
    assert finding.status == "warn" and "`build` of ada on box, process 42, since 2026-01-02" in finding.text
