"""The choice of the linker: by figures, by what the compiler supports, by the user and by the tree."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.machines import ask, built, found, linux_facts, plan_of, settings, tool
from tests.support.windows import windows_facts
from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.model import Facts, Host, Tool
from torchbuild_tasks.plan.compiler import choose_compilers
from torchbuild_tasks.plan.linker import ChosenLinker, check_linker, choose_linker, refuse_linker
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.values import replace

LLD = tool("ld.lld", "14.0.6")
MOLD = tool("mold", "1.10.1", "/usr/bin/ld.mold")
GOLD = tool("ld.gold", "1.16")
BFD = tool("ld", "2.40")
FOLDER = "/src/pytorch/.torchbuild/linker"


def having(*tools: Tool, **changes: Any) -> Facts:
    facts = linux_facts(**changes)
    return replace(facts, tools=(*facts.tools, BFD, *tools))


def chosen(question: Question) -> ChosenLinker:
    return choose_linker(question, choose_compilers(question))


def flags(linker: ChosenLinker) -> str:
    """Return the planned LDFLAGS; "" when they are left alone."""
    return {choice.name: choice.value for choice in linker.choices}.get("LDFLAGS", "")


# ---------------------------------------------------------------- by the figures


@pytest.mark.parametrize(
    ("tools", "value", "ldflags"),
    [
        ((LLD, MOLD, GOLD), "lld 14.0.6", "-fuse-ld=lld"),
        ((MOLD, GOLD), "mold 1.10.1", "-fuse-ld=mold"),
        ((GOLD,), "default", ""),
        ((), "default", ""),
    ],
)
def test_the_fastest_of_those_that_are_here(tools: tuple[Tool, ...], value: str, ldflags: str) -> None:
    linker = chosen(ask(having(*tools)))
    assert (linker.choice.value, flags(linker)) == (value, ldflags)
    assert (linker.plan is None) == (value == "default")


def test_the_reason_has_the_figure() -> None:
    assert "0.16 of GNU ld's time" in chosen(ask(having(LLD))).choice.because
    assert chosen(ask(having())).choice.because == "neither lld nor mold is here"


@pytest.mark.parametrize(
    ("compiler", "version", "linker", "ldflags"),
    [
        ("g++", "12.0.0", MOLD, f"-B{FOLDER}"),
        ("g++", "12.1.0", MOLD, "-fuse-ld=mold"),
        ("clang++", "14.0.6", MOLD, "-fuse-ld=mold"),
        ("g++", "8.5.0", LLD, f"-B{FOLDER}"),
        ("g++", "12.2.0", tool("ld.lld", "14.0.6", "/usr/bin/ld.lld-14"), f"-B{FOLDER}"),
        ("g++", "12.2.0", tool("mold", "1.10.1", "/usr/bin/mold"), f"-B{FOLDER}"),
    ],
)
def test_a_compiler_that_does_not_know_the_name(
    compiler: str, version: str, linker: Tool, ldflags: str
) -> None:
    made = chosen(ask(having(linker, compilers=(tool(compiler, version),))))
    assert flags(made) == ldflags
    assert made.plan is not None
    assert made.plan.folder == (FOLDER if ldflags.startswith("-B") else "")
    assert made.plan.program == linker.path


def test_one_that_does_not_link_here_is_left_out() -> None:
    question = ask(having(LLD, MOLD))
    first = chosen(question)
    assert first.plan is not None
    question = replace(question, catalog=refuse_linker(question.catalog, first.plan, "it crashed"))
    second = chosen(question)
    assert (second.plan and second.plan.name) == "mold"
    assert "lld: it crashed" in second.choice.because
    assert second.plan is not None
    question = replace(question, catalog=refuse_linker(question.catalog, second.plan, "it hung"))
    assert chosen(question).choice.value == "default"
    assert chosen(question).choice.because == "lld: it crashed; mold: it hung"


# ---------------------------------------------------------------- the user's word


@pytest.mark.parametrize(("name", "by"), [("gold", GOLD), ("bfd", BFD), ("mold", MOLD)])
def test_one_that_is_named(name: str, by: Tool) -> None:
    linker = chosen(ask(having(LLD, MOLD, GOLD), linker=name))
    assert flags(linker) == f"-fuse-ld={name}"
    assert linker.plan is not None
    assert linker.plan.demanded
    assert linker.choice.source == "flag"
    assert str(by.path) in linker.choice.because


def test_the_settings_file_can_name_one() -> None:
    linker = chosen(ask(having(LLD, MOLD), settings({"linker": "mold"})))
    assert (flags(linker), linker.choice.source) == ("-fuse-ld=mold", "torchbuild.toml")


def test_default_means_no_flag_at_all() -> None:
    linker = chosen(ask(having(LLD), linker="default"))
    assert (linker.plan, flags(linker)) == (None, "")
    assert not check_linker(ask(having(LLD), linker="default"), linker)


def test_one_that_is_named_and_not_here_refuses_the_plan() -> None:
    finding = found(plan_of(having(), linker="mold").findings, "linker")
    assert finding.status == "error"
    assert "no mold on PATH" in finding.text
    assert finding.fix == "sudo apt install mold"


def test_a_path_goes_through_the_folder() -> None:
    linker = chosen(ask(having(LLD), linker="/opt/llvm/bin/ld.lld"))
    assert flags(linker) == f"-B{FOLDER}"
    assert linker.plan is not None
    assert (linker.plan.name, linker.plan.program) == ("lld", "/opt/llvm/bin/ld.lld")
    assert flags(chosen(ask(having(LLD), linker=str(LLD.path)))) == "-fuse-ld=lld"
    unknown = chosen(ask(having(), linker="/opt/wild")).plan
    assert unknown is not None
    assert unknown.name == "wild"


def test_a_word_that_means_nothing() -> None:
    with pytest.raises(UsageError, match="--linker cannot be 'mould'; did you mean mold") as caught:
        plan_of(having(), linker="mould")
    assert "lld, mold, gold, bfd" in caught.value.next_step


@pytest.mark.parametrize(
    "said",
    [
        {"LDFLAGS": "-fuse-ld=wild"},
        {"LDFLAGS": "-B/opt/mold -s"},
        {"LDFLAGS": "--ld-path=/opt/ld"},
        {"CMAKE_LINKER_TYPE": "MOLD"},
        {"CMAKE_SHARED_LINKER_FLAGS": "-s"},
        {"USE_GOLD_LINKER": "1"},
        {"USE_PRIORITIZED_TEXT_FOR_LD": "1"},
    ],
)
def test_the_users_own_linking_stays(said: dict[str, str]) -> None:
    linker = chosen(ask(having(LLD, environ=said)))
    assert (linker.choice.value, linker.plan, linker.choices) == ("as it is set", None, ())
    assert next(iter(said)) in linker.choice.because


def test_ldflags_that_name_one_name_the_linker() -> None:
    """As they do after the env file was sourced."""
    linker = chosen(ask(having(LLD, MOLD, environ={"LDFLAGS": "-fuse-ld=mold"})))
    assert (linker.choice.value, flags(linker)) == ("mold 1.10.1", "-fuse-ld=mold")
    assert linker.choice.source == "environment"


def test_other_ldflags_are_kept_with_their_quotes() -> None:
    facts = having(LLD, environ={"LDFLAGS": "-Wl,-rpath,'$ORIGIN/a b' -s"})
    assert flags(chosen(ask(facts))) == "-Wl,-rpath,'$ORIGIN/a b' -s -fuse-ld=lld"
    facts = having(LLD, GOLD, environ={"LDFLAGS": "-fuse-ld=lld -s"})
    assert flags(chosen(ask(facts, linker="gold"))) == "-s -fuse-ld=gold"


def test_a_variable_that_overrides_ldflags_is_reported() -> None:
    facts = having(LLD, environ={"CMAKE_EXE_LINKER_FLAGS": "-s"})
    finding = found(plan_of(facts, linker="lld").findings, "linker")
    assert finding.status == "warn"
    assert "CMAKE_EXE_LINKER_FLAGS" in finding.text


# ---------------------------------------------------------------- a finished tree


def test_a_finished_tree_keeps_the_default_linker() -> None:
    facts = built(having())
    later = replace(facts, tools=(*facts.tools, LLD))
    plan = plan_of(later)
    assert plan.linker is None
    assert plan.freshness.needs == "nothing"
    plan = plan_of(later, linker="lld")
    assert plan.freshness.needs == "reconfigure"
    assert {change.name for change in plan.freshness.changes} == {"linker", "LDFLAGS"}
    assert plan_of(later, clean=True).linker is not None


@pytest.mark.parametrize("asked", [None, "mold", "/opt/llvm/bin/ld.lld", "/opt/wild"])
def test_a_finished_tree_keeps_its_linker(asked: str | None) -> None:
    facts = built(having(LLD, MOLD), linker=asked)
    plan = plan_of(facts)
    assert plan.freshness.needs == "nothing"
    assert plan.linker is not None
    assert plan.linker == plan_of(facts, linker=asked or "lld").linker or not plan.linker.demanded
    assert plan.linker.trial is None


def test_a_tree_that_was_not_finished_is_decided_anew() -> None:
    facts = built(having(), result="failed")
    plan = plan_of(replace(facts, tools=(*facts.tools, LLD)))
    assert plan.linker is not None
    assert plan.linker.trial is not None


def test_a_kept_one_that_does_not_link_any_more_is_left_out() -> None:
    facts = built(having(LLD), linker="/opt/wild")
    question = ask(facts)
    kept = chosen(question)
    assert kept.plan is not None
    question = replace(question, catalog=refuse_linker(question.catalog, kept.plan, "it is gone"))
    assert chosen(question).choice.value == "lld 14.0.6"


# ---------------------------------------------------------------- what is offered


@pytest.mark.parametrize(
    ("distribution", "fix"),
    [
        ("Debian GNU/Linux 12 (bookworm)", "sudo apt install lld"),
        ("Fedora Linux 41", "sudo dnf install lld"),
        ("Arch Linux", "sudo pacman -S lld"),
        ("openSUSE Tumbleweed", "sudo zypper install lld"),
        (None, "Install the package lld of this distribution."),
    ],
)
def test_one_that_is_missing_is_offered(distribution: str | None, fix: str) -> None:
    host = Host(os="linux", arch="x86_64", distribution=distribution, libc="glibc 2.36")
    plan = plan_of(having(host=host))
    finding = found(plan.findings, "linker")
    assert (finding.status, finding.fix) == ("unknown", fix)
    assert plan.verdict != "refuse"


# ---------------------------------------------------------------- Windows


def test_on_windows_link_exe_stays_unless_another_is_asked_for() -> None:
    link = Tool(name="lld-link", path="C:\\LLVM\\bin\\lld-link.exe", version="18.1.8", found_via="PATH")
    facts = windows_facts()
    facts = replace(facts, tools=(*facts.tools, link))
    assert not chosen(ask(facts)).choices
    linker = chosen(ask(facts, linker="lld"))
    assert {c.name: c.value for c in linker.choices} == {"CMAKE_LINKER": "C:/LLVM/bin/lld-link.exe"}
    assert found(check_linker(ask(facts), linker), "linker").status == "unknown"
    for name in ("mold", "gold"):
        assert found(chosen(ask(facts, linker=name)).problems, "linker").status == "error"


def test_on_windows_a_driver_of_gcc_or_clang_calls_its_own_linker() -> None:
    clang = Tool(name="clang++", path="C:\\mingw\\bin\\clang++.exe", version="18.1.8", found_via="PATH")
    facts = replace(windows_facts(), compilers=(clang,), environ={"CXX": "clang++"})
    assert chosen(ask(facts)).choice.because == "the one that clang++ calls"
    assert "link.exe" in chosen(ask(windows_facts())).choice.because
