"""The choice of the host compiler, its reasons, and the errors where none fits."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.support.cuda import cuda_facts, gpu, toolkit
from tests.support.for_each import each_case
from tests.support.machines import (
    ask,
    found,
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
from torchbuild_tasks.model import Facts, Host, Tool
from torchbuild_tasks.plan.compiler import PARTNER, choose_compilers
from torchbuild_tasks.values import replace


def machine(*tools: Tool, version: str = "2.8.0a0", **environ: str) -> Facts:
    return with_tree(linux_facts(compilers=tools, environ=environ), version=version)


def chosen(facts: Facts, *assignments: str) -> tuple[str | None, str | None]:
    compilers = choose_compilers(ask(facts, set=assignments))
    cxx, cc = compilers.cxx, compilers.cc
    return cxx.value if cxx else None, cc.value if cc else None


GXX, GCC = tool("g++", "12.2.0"), tool("gcc", "12.2.0")
GXX_9, GCC_9 = tool("g++", "9.2.0"), tool("gcc", "9.2.0")
GXX_12, GCC_12 = tool("g++", "12.2.0", "/usr/bin/g++-12"), tool("gcc", "12.2.0", "/usr/bin/gcc-12")
CLANGXX, CLANG = tool("clang++", "17.0.6"), tool("clang", "17.0.6")


@each_case(
    ("tools", "cxx", "cc"),
    [
        ((GXX, GCC), "/usr/bin/g++", "/usr/bin/gcc"),
        ((GCC, GXX), "/usr/bin/g++", "/usr/bin/gcc"),
        ((GXX, GCC, CLANGXX, CLANG), "/usr/bin/g++", "/usr/bin/gcc"),
        ((CLANGXX, CLANG, GCC), "/usr/bin/clang++", "/usr/bin/clang"),
        ((GXX_9, GCC_9, GXX_12, GCC_12), "/usr/bin/g++-12", "/usr/bin/gcc-12"),
        ((GXX, GCC_12, GCC), "/usr/bin/g++", "/usr/bin/gcc"),
        ((GXX_12, GCC, GCC_12), "/usr/bin/g++-12", "/usr/bin/gcc-12"),
        ((GXX, GCC_9), "/usr/bin/g++", None),
        ((tool("c++", "12.2.0"), tool("cc", "12.2.0")), "/usr/bin/c++", "/usr/bin/cc"),
        ((Tool(name="g++", looked=("PATH",)), GCC), None, None),
        ((), None, None),
    ],
)
def test_the_first_that_fits_and_its_partner(
    tools: tuple[Tool, ...], cxx: str | None, cc: str | None
) -> None:
    assert chosen(machine(*tools)) == (cxx, cc)


def test_the_reason_says_what_was_passed_over() -> None:
    cxx = choose_compilers(ask(machine(GXX_9, GCC_9, GXX_12, GCC_12))).cxx
    assert cxx is not None
    assert "found via PATH" in cxx.because
    assert "9.2.0 comes first but cannot compile this torch" in cxx.because


def test_a_default_that_fits_an_old_torch_stays() -> None:
    assert chosen(machine(GXX_9, GCC_9, GXX_12, GCC_12, version="1.13.1"))[0] == "/usr/bin/g++"


@pytest.mark.parametrize(
    ("environ", "assignments", "cxx", "source"),
    [
        ({"CXX": "g++-12"}, (), "g++-12", "environment"),
        ({"CXX": "g++-12"}, ("CXX=/usr/bin/g++",), "/usr/bin/g++", "flag"),
        ({"CXX": "ccache g++-12"}, (), "ccache g++-12", "environment"),
        ({"CXX": "/usr/bin/clang++"}, (), "/usr/bin/clang++", "environment"),
    ],
)
def test_the_one_asked_for(
    environ: dict[str, str], assignments: tuple[str, ...], cxx: str, source: str
) -> None:
    question = ask(machine(GXX, GCC, GXX_12, GCC_12, CLANGXX, CLANG, **environ), set=assignments)
    compilers = choose_compilers(question)
    assert compilers.cxx is not None
    assert (compilers.cxx.value, compilers.cxx.source) == (cxx, source)
    assert compilers.tool is not None


@pytest.mark.parametrize(
    ("environ", "cc"),
    [
        ({"CXX": "g++-12"}, "/usr/bin/gcc-12"),
        ({"CXX": "ccache g++-12"}, "/usr/bin/gcc-12"),
        ({"CXX": "/usr/bin/clang++"}, "/usr/bin/clang"),
        ({"CXX": "g++-12", "CC": "my-cc"}, "my-cc"),
        ({"CXX": "/opt/other/c++"}, None),
    ],
)
def test_the_partner_of_the_one_asked_for(environ: dict[str, str], cc: str | None) -> None:
    assert chosen(machine(GXX, GCC, GXX_12, GCC_12, CLANGXX, CLANG, **environ))[1] == cc


def test_the_settings_file_can_name_one() -> None:
    compilers = choose_compilers(
        ask(machine(GXX, GCC, GXX_12, GCC_12), settings(variables={"CXX": "g++-12"}))
    )
    assert compilers.cxx is not None
    assert compilers.cxx.source == "torchbuild.toml"


OLD_CLANG = Tool(name="clang++", path="/usr/bin/clang++", version="7.0.1", found_via="PATH")


@each_case(
    ("facts", "status", "says"),
    [
        (machine(GXX, GCC), "ok", "/usr/bin/g++ (g++ 12.2.0) fits"),
        (machine(CLANGXX, CLANG), "ok", "clang++ 17.0.6) fits Clang >=9"),
        (machine(OLD_CLANG), "error", "needs Clang >=9"),
        (machine(Tool(name="g++", path="/usr/bin/g++", found_via="PATH")), "unknown", "/usr/bin/g++"),
        (machine(tool("g++", "4.4.7"), version="0.4.0"), "warn", "planned like that one"),
        (machine(GXX, version="0.4.0"), "ok", ""),
        (machine(GXX_9, GCC_9), "error", "cannot compile torch 2.8"),
        (machine(GXX, GCC, CXX="/opt/llvm/bin/c++"), "unknown", "used as it is"),
        (machine(GXX, GCC, CXX="g++-13"), "error", "not a compiler of this machine"),
        (machine(GXX, GCC, CXX="CC"), "unknown", "used as it is"),  # Cray's, which the search does not know
        (machine(GXX, GCC, CXX="mpicxx"), "unknown", "used as it is"),
        (machine(), "error", "no C++ compiler was found"),
    ],
)
def test_the_finding(facts: Facts, status: str, says: str) -> None:
    plan = plan_of(facts)
    finding = found(plan.findings, "compiler")
    assert finding.status == status
    assert says in finding.text
    assert (plan.verdict == "refuse") == (status == "error")
    assert finding.fix or status != "error"


def gone(name: str, variable: str, path: str) -> Tool:
    """Return what facts/compilers.py gives for a program that CC or CXX names and that is not there."""
    return Tool(name=name, found_via=f"environment {variable}", looked=(path,))


def test_a_compiler_that_was_looked_for_in_vain_is_refused() -> None:
    """CMake takes no other one, and says so minutes later."""
    facts = machine(gone("g++", "CXX", "/opt/gone/g++"), GXX, GCC, CXX="/opt/gone/g++")
    finding = found(plan_of(facts).findings, "compiler")
    assert (finding.status, finding.fix) == ("error", "Name one that is here (/usr/bin/g++), or drop CXX.")


@pytest.mark.parametrize("value", ["gcc-99", "/opt/gone/gcc"])
def test_so_is_one_for_c(value: str) -> None:
    plan = plan_of(machine(gone("gcc", "CC", value), GXX, GCC, CC=value))
    finding = found(plan.findings, "c-compiler")
    assert finding.text.startswith(f"CC={value} (CC in the environment) is not a compiler")
    assert (finding.fix, plan.verdict) == ("Name one that is here (/usr/bin/gcc), or drop CC.", "refuse")


@pytest.mark.parametrize(
    ("value", "told"), [("gcc-12", ["error"]), ("gcc", []), ("my-cc", []), ("/x/gcc-12", [])]
)
def test_a_c_compiler_of_a_family_is_among_those_of_the_machine_or_not_there(
    value: str, told: list[str]
) -> None:
    """Also by --set, of which the facts know nothing; other names are not searched for."""
    assert statuses(plan_of(machine(GXX, GCC), set=(f"CC={value}",)).findings, "c-compiler") == told


def test_a_c_compiler_that_is_named_alone_says_nothing_of_cxx() -> None:
    older = tool("g++", "12.3.0", "/usr/bin/g++-12"), tool("gcc", "12.3.0", "/usr/bin/gcc-12")
    here = machine(tool("g++", "13.3.0"), tool("gcc", "13.3.0"), *older)
    finding = found(plan_of(here, set=("CC=/usr/bin/gcc-12",)).findings, "c-compiler")
    assert finding.status == "warn" and "--set CXX=/usr/bin/g++-12; or drop CC" in finding.fix
    for words in (("CC=/usr/bin/gcc",), ("CC=/usr/bin/gcc-12", "CXX=/usr/bin/g++")):
        assert statuses(plan_of(here, set=words).findings, "c-compiler") == []


@pytest.mark.parametrize("name", ["gcc", "cc", "clang"])
def test_a_cxx_compiler_alone_is_not_enough(name: str) -> None:
    missing = Tool(name=name, looked=("/usr/bin",))
    finding = found(plan_of(machine(missing, GXX)).findings, "c-compiler")
    assert (finding.status, finding.fix) == ("error", "Install one: sudo apt install gcc")
    beside = plan_of(machine(missing, GXX, tool("clang" if name != "clang" else "gcc", "14.0.0")))
    assert not [each for each in beside.findings if each.id == "c-compiler" and each.status == "error"]


def test_no_compiler_names_where_was_looked() -> None:
    missing = (
        Tool(name="g++", looked=("environment CXX", "/usr/bin", "/usr/local/bin")),
        Tool(name="clang++", looked=("/usr/lib/llvm-17/bin",)),
    )
    finding = found(plan_of(machine(*missing)).findings, "compiler")
    for place in ("g++", "/usr/local/bin", "clang++", "/usr/lib/llvm-17/bin"):
        assert place in finding.text
    assert "apt install g++" in finding.fix


@pytest.mark.parametrize(
    ("version", "gcc", "package"),
    [("2.13.0", "10.2.1", "g++-12"), ("2.8.0a0", "8.3.0", "g++-11"), ("1.13.1", "4.8.5", "g++-11")],
)
def test_a_gcc_too_old_names_the_standard_and_a_package(version: str, gcc: str, package: str) -> None:
    facts = machine(tool("g++", gcc), tool("gcc", gcc), version=version)
    finding = found(plan_of(facts).findings, "compiler")
    standard = ask(facts).row.cxx
    assert finding.status == "error"
    assert f"C++{standard}" in finding.text
    assert f"apt install {package}" in finding.fix


def test_a_gcc_too_old_for_c20_is_refused_in_the_newer_era_too() -> None:
    facts = linux_facts(tree=modern_tree(), compilers=(tool("g++", "10.2.1"), tool("gcc", "10.2.1")))
    assert "C++20" in found(plan_of(facts).findings, "compiler").text


def test_a_compiler_asked_for_that_is_missing_lists_those_found() -> None:
    finding = found(plan_of(machine(GXX, GCC, GXX_12, GCC_12, CXX="g++-14")).findings, "compiler")
    assert "/usr/bin/g++-12" in finding.fix
    assert "CXX in the environment" in finding.text


def test_an_empty_cxx_asks_for_nothing() -> None:
    """CMake passes over an empty CXX, and many shells export one."""
    plan = plan_of(machine(GXX, GCC, CXX=""))
    assert plan.verdict == "ok"


@pytest.mark.parametrize(
    ("name", "version", "torch"),
    [("g++", "13.3.0", "2.0.1"), ("g++", "15.1.0", "2.6.0"), ("clang++", "19.1.0", "2.5.1")],
)
def test_a_compiler_that_came_after_this_torch(name: str, version: str, torch: str) -> None:
    """It is told what helps, unless it was told already; an older one that is here is taken before it."""
    python_of = python(version="3.10.14")
    facts = linux_facts(compilers=(tool(name, version),), tree=tree(version=torch), pythons=(python_of,))
    plan = plan_of(facts)
    flags = next(op.value for op in plan.env if op.name == "CXXFLAGS")
    told = found(plan.findings, "compiler")
    assert told.status == "ok"
    assert all(f"-{word}" in told.text for word in f" {flags}".split(" -")[1:])
    again = plan_of(facts, set=(f"CXXFLAGS={flags}",))
    assert next(op.value for op in again.env if op.name == "CXXFLAGS") == flags
    older = tool("g++", "11.4.0", "/usr/bin/g++-11")
    both = replace(facts, compilers=(tool(name, version), older))
    assert found(plan_of(both).findings, "compiler").status == "ok"
    assert {choice.name: choice.value for choice in plan_of(both).choices}["CXX"] == older.path


def test_a_newer_compiler_where_it_does_not_come_up() -> None:
    facts = linux_facts(compilers=(tool("g++", "15.1.0"),), tree=tree(version="2.6.0"))
    without = plan_of(facts, set=("USE_DISTRIBUTED=0",)), plan_of(replace(facts, tree=tree(version="2.9.0")))
    assert not [op for plan in without for op in plan.env if op.name == "CXXFLAGS"]


def test_a_clang_whose_names_nvcc_does_not_share() -> None:
    """pytorch#169926: nothing but libtorch_cuda was seen not to link."""
    clang = machine(tool("clang++", "20.1.2"), tool("clang", "20.1.2"), version="2.9.0")
    assert found(plan_of(clang).findings, "compiler").status == "ok"
    finding = found(plan_of(clang, cuda=True).findings, "compiler")
    assert finding.fix == "Install it: sudo apt install g++. Then take GCC: --set CC=gcc --set CXX=g++"
    assert finding.status == "warn"
    (flags,) = [op for op in plan_of(clang, cuda=True).env if op.name == "CXXFLAGS"]
    assert "names of templates" not in flags.because
    both = replace(clang, compilers=(*clang.compilers, tool("g++", "13.3.0"), tool("gcc", "13.3.0")))
    followed = plan_of(both, cuda=True, set=tuple(finding.fix.partition("--set ")[2].split(" --set ")))
    assert found(followed.findings, "compiler").status == "ok"


@each_case(
    ("path", "gcc", "linker", "version", "asks"),
    [
        ("/usr/bin/g++", "10.2.0", "2.27", "2.2.2", "vpdpbusd"),
        ("/usr/bin/g++", "14.2.1", "2.35.2", "2.6.0", "vmaxph"),
        ("/usr/bin/g++", "11.5.0", "2.35.2", "2.6.0", ""),  # RHEL 9
        ("/usr/bin/g++", "14.2.1", "2.35.2", "2.2.2", ""),
        ("/usr/bin/g++", "12.2.0", "2.40", "2.6.0", ""),
        ("/usr/bin/g++", "12.2.0", "", "2.6.0", ""),
        ("/opt/rh/gcc-toolset-12/root/usr/bin/g++", "12.2.1", "2.30", "2.6.0", ""),
        ("/conda/bin/x86_64-conda-linux-gnu-g++", "12.3.0", "2.27", "2.6.0", ""),
    ],
)
def test_an_assembler_that_is_older_than_what_the_compiler_writes(
    path: str, gcc: str, linker: str, version: str, asks: str
) -> None:
    facts = replace(machine(tool("g++", gcc, path), version=version), tools=(tool("ld", linker),))
    told = found(plan_of(facts, set=("USE_XNNPACK=1",)).findings, "compiler")
    assert (told.status == "warn", asks in told.text) == (bool(asks), True)
    assert found(plan_of(facts, set=("USE_XNNPACK=0",)).findings, "compiler").status == "ok"


@pytest.mark.parametrize(("linker", "status"), [("2.30", "warn"), ("2.34", "ok")])
def test_an_assembler_of_arm_that_is_too_old(linker: str, status: str) -> None:
    facts = machine(tool("g++", "11.4.0"), version="2.6.0")
    facts = replace(facts, host=replace(facts.host, arch="aarch64"), tools=(tool("ld", linker),))
    assert found(plan_of(facts, set=("USE_XNNPACK=1",)).findings, "compiler").status == status


FORGIVEN = "-Wno-error=maybe-uninitialized -Wno-error=uninitialized"


@each_case(
    ("facts", "assignments", "flags"),
    [
        (machine(GXX, GCC), (), FORGIVEN),
        (machine(GXX, GCC, version="1.13.1"), (), f"{FORGIVEN} -include array"),
        (machine(GXX, GCC, version="1.13.1"), ("USE_DISTRIBUTED=0",), FORGIVEN),
        (machine(GXX, GCC, version="1.10.2"), (), "-include array"),
        (machine(tool("g++", "14.2.1")), (), FORGIVEN),
        (machine(CLANGXX, CLANG), (), None),
        (machine(tool("g++", "13.2.0"), tool("gcc", "13.2.0")), (), None),
        (machine(GXX, GCC), ("USE_FBGEMM=0",), None),
        (machine(GXX, GCC, CXXFLAGS="-O1"), (), f"-O1 {FORGIVEN}"),
        (machine(GXX, GCC), (f"CXXFLAGS={FORGIVEN}",), FORGIVEN),
    ],
)
def test_gcc_12_compiles_fbgemm(facts: Facts, assignments: tuple[str, ...], flags: str | None) -> None:
    """pytorch#77939: a whole build of 2.6.0 stopped at step 284, though the plan was ok."""
    plan = plan_of(facts, set=assignments)
    assert next((op.value for op in plan.env if op.name == "CXXFLAGS"), None) == flags


@each_case(
    ("version", "torch", "assignments", "doubt"),
    [
        ("10.3.1", "1.9.0", ("USE_CUDA=1",), "<chrono>"),  # pytorch 57423
        ("10.3.1", "1.9.0", (), ""),
        ("10.4.0", "1.9.0", ("USE_CUDA=1",), ""),
        ("5.3.1", "1.5.0", (), "AVX-512"),  # pytorch 33410
        ("5.3.1", "1.5.0", ("USE_FBGEMM=0",), ""),
        ("5.4.0", "1.5.0", (), ""),
        ("5.5.0", "1.0.0", (), ""),  # on Ubuntu 17.10 and 18 only: below
        ("13.2.0", "2.4.0", ("WERROR=1",), "WERROR"),  # pytorch 124270
        ("13.2.0", "2.4.0", ("WERROR=0",), ""),
        ("11.3.0", "2.4.0", ("WERROR=1",), ""),
    ],
)
def test_releases_of_gcc_with_which_a_build_was_seen_to_stop(
    version: str, torch: str, assignments: tuple[str, ...], doubt: str
) -> None:
    plan = plan_of(machine(tool("g++", version), version=torch), set=assignments)
    finding = found(plan.findings, "compiler")
    assert (finding.status, bool(finding.fix)) == (("warn", True) if doubt else ("ok", False))
    assert doubt in finding.text


@pytest.mark.parametrize(
    ("name", "version", "torch", "older"),
    [
        ("g++", "15.1.0", "2.1.0a0", "g++-12"),
        ("g++", "14.2.0", "2.1.0a0", ""),
        ("g++", "16.1.0", "2.14.0a0", ""),
        ("clang++", "20.1.0", "2.1.0a0", "clang-17"),
        ("clang++", "19.1.0", "2.1.0a0", ""),
    ],
)
def test_a_compiler_that_came_out_long_after_the_torch(
    name: str, version: str, torch: str, older: str
) -> None:
    finding = found(plan_of(machine(tool(name, version), version=torch)).findings, "compiler")
    assert finding.status == ("warn" if older else "ok")
    assert older in finding.fix


def test_where_there_is_no_other_compiler_the_named_one_is_dropped_for_one_to_install() -> None:
    facts = machine(gone("g++", "CXX", "nope"), GCC, CXX="nope")
    fix = found(plan_of(facts).findings, "compiler").fix
    assert fix.startswith("Install one: sudo apt") and fix.endswith("And drop CXX.")


@pytest.mark.parametrize(
    ("name", "version", "torch", "status"),
    [
        ("g++", "9.3.0", "2.1.2", "ok"),
        ("g++", "9.3.1", "2.7.1", "ok"),
        ("g++", "9.2.0", "2.6.0", "error"),
        ("clang++", "15.0.7", "2.13.0", "error"),
        ("clang++", "16.0.6", "2.15.0", "ok"),
        ("clang++", "15.0.7", "2.12.1", "unknown"),
    ],
)
def test_what_upstreams_cmake_stops_at_is_refused(name: str, version: str, torch: str, status: str) -> None:
    pair = (tool(name, version), tool(PARTNER[name], version))
    facts = linux_facts(compilers=pair, tree=tree(version=torch))
    finding = found(plan_of(facts).findings, "compiler")
    assert finding.status == status
    assert status != "error" or name != "clang++" or "clang-16" in finding.fix and "GCC >=11.3" in finding.fix


@pytest.mark.parametrize(
    ("version", "switch", "wanted"),
    [("18.1.8", (), True), ("19.1.7", (), True), ("17.0.6", (), False), ("19.1.7", ("USE_FBGEMM=0",), False)],
)
def test_fbgemm_gets_past_the_warnings_of_a_new_clang(
    version: str, switch: tuple[str, ...], wanted: bool
) -> None:
    pair = (tool("clang++", version), tool("clang", version))
    plan = plan_of(linux_facts(compilers=pair, tree=tree(version="2.6.0")), set=switch)
    flags = next((each.value for each in plan.choices if each.name == "CXXFLAGS"), "")
    assert ("-Wno-error=vla-cxx-extension" in flags) == wanted


def test_torch_1_4_is_for_gcc_8() -> None:
    both = (
        tool("g++", "9.4.0"),
        tool("gcc", "9.4.0"),
        tool("g++", "8.4.0", "/usr/bin/g++-8"),
        tool("gcc", "8.4.0", "/usr/bin/gcc-8"),
    )
    facts = linux_facts(compilers=both, tree=tree(version="1.4.1"))
    assert next(each.value for each in plan_of(facts).choices if each.name == "CXX") == "/usr/bin/g++-8"
    alone = linux_facts(compilers=both[:2], tree=tree(version="1.4.1"))
    finding = found(plan_of(alone).findings, "compiler")
    assert finding.status == "warn" and "LeftRight.h" in finding.text and "GCC 8" in finding.fix
    newer = linux_facts(compilers=both[:2], tree=tree(version="1.5.1"))
    assert "LeftRight.h" not in found(plan_of(newer).findings, "compiler").text


@pytest.mark.parametrize(
    ("system", "gcc", "doubted"),
    [("Ubuntu 16.04", "5.5.0", False), ("Ubuntu 18.04", "5.5.0", True), ("Ubuntu 18.04", "5.4.0", False)],
)
def test_gcc_5_is_doubted_only_where_its_library_was_broken(system: str, gcc: str, doubted: bool) -> None:
    host = Host(os="linux", arch="x86_64", distribution=system)
    facts = with_tree(linux_facts(host=host, compilers=(tool("g++", gcc),)), version="1.0.1")
    assert ("std::to_string" in found(plan_of(facts).findings, "compiler").text) is doubted


def test_a_compiler_that_is_doubted_itself_is_not_advised() -> None:
    """CUDA 9.0 takes GCC 6 and older."""
    host = Host(os="linux", arch="x86_64", distribution="Ubuntu 18.04")
    facts = cuda_facts(toolkit("9.0", gcc=5, archs=("7.0",)), gpus=(gpu("7.0"),), host=host)
    facts = with_tree(replace(facts, compilers=(tool("g++", "9.4.0"),)), version="1.0.1")
    assert "g++-5" in found(plan_of(facts, cuda=True).findings, "host-compiler").fix  # there is no other one
    older = replace(facts.cuda.toolkits[0], gcc=6) if facts.cuda else None
    assert older
    facts = replace(facts, cuda=replace(facts.cuda, toolkits=(older,)))
    assert "g++-6" in found(plan_of(facts, cuda=True).findings, "host-compiler").fix


@each_case(
    ("name", "value", "other"),
    [
        ("CXX", "/usr/bin/gcc", "CXX=/usr/bin/g++"),
        ("CXX", "gcc", "CXX=g++"),
        ("CXX", "gcc-12", "CXX=g++-12"),
        ("CXX", "clang", "CXX=clang++"),
        ("CXX", "/opt/gcc-14/bin/gcc", "CXX=/opt/gcc-14/bin/g++"),
        ("CXX", "ccache gcc", "'CXX=ccache g++'"),
        ("CXX", "ccache cc -B/usr/cc", "'CXX=ccache c++ -B/usr/cc'"),
        ("CXX", "/usr/bin/x86_64-linux-gnu-gcc-12", "CXX=/usr/bin/x86_64-linux-gnu-g++-12"),
        ("CXX", "cc", "CXX=c++"),
        ("CC", "/usr/bin/g++", "CC=/usr/bin/gcc"),
        ("CC", "clang++-17", "CC=clang-17"),
        ("CC", "c++", "CC=cc"),
    ],
)
def test_a_compiler_of_the_other_language_is_refused(name: str, value: str, other: str) -> None:
    facts = replace(machine(GXX, GCC), tools=(tool("ccache", "4.8"),))
    plan = plan_of(facts, set=(f"{name}={value}",))
    finding = found(plan.findings, "compiler" if name == "CXX" else "c-compiler")
    assert finding.status == "error"
    assert other in finding.fix.replace('"', "'")


@each_case(
    "value",
    [
        *("/usr/bin/g++", "clang++-17", "/opt/bin/icpx", "/opt/bin/dpcc", "gcc -lstdc++", "nvc++"),
        # An option's folder is called like a compiler.
        *("clang++ --gcc-toolchain=/opt/gcc", "g++ -B /usr/lib/gcc"),
    ],
)
def test_a_compiler_of_cxx_is_not(value: str) -> None:
    plan = plan_of(machine(GXX, GCC), set=(f"CXX={value}",))
    assert not any("is a C compiler" in each.text for each in plan.findings)


def test_a_cache_before_the_compiler_that_is_not_here_is_refused() -> None:
    """CMake would take it for the compiler, and stop."""
    flags: dict[str, Any] = {"set": ("CXX=ccache g++", "CC=ccache gcc")}
    lacking = replace(machine(GXX, GCC), tools=(Tool(name="ccache", looked=("/usr/bin",)),))
    told = [each for each in plan_of(lacking, **flags).findings if each.status == "error"]
    assert ["ccache is not here" in each.text for each in told] == [True, True]
    assert "CXX=g++" in told[0].fix and "CC=gcc" in told[1].fix
    having = replace(lacking, tools=(tool("ccache", "4.8"),))
    assert not any("is not here" in each.text for each in plan_of(having, **flags).findings)


def test_a_named_compiler_that_says_no_version_is_a_warning() -> None:
    """A script that exits with 1, and an empty file: CMake stops there, after all downloads."""
    mute = Tool(name="g++", path="/x/g++", found_via="environment CXX")
    finding = found(plan_of(machine(mute, GXX, CXX="/x/g++")).findings, "compiler")
    assert finding.status == "warn" and "CXX=/x/g++ (CXX in the environment) does not say" in finding.text
    assert finding.fix == "See what it says: /x/g++ --version; or drop CXX."
    assert found(plan_of(machine(replace(mute, found_via="PATH"))).findings, "compiler").status == "unknown"


def test_a_compiler_that_is_advised_is_one_that_the_planned_nvcc_takes() -> None:
    """Debian 12 has g++-12; CUDA 11.8 ends at 11."""
    facts = cuda_facts(
        toolkit("11.8"),
        compilers=(tool("g++", "8.5.0"), tool("gcc", "8.5.0")),
        tree=tree(version="2.5.1"),
        host=Host(os="linux", arch="x86_64", distribution="Debian GNU/Linux 12", libc="glibc 2.36"),
    )
    fix = found(plan_of(facts, cuda=True, arch="8.6").findings, "compiler").fix
    assert re.search(r"g\+\+-11|gxx_linux-64=1[01]\b", fix), fix
