"""The BLAS that torch will have, and conda's folder for CMake."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.machines import (
    ask,
    found,
    linux_facts,
    plan_of,
    plan_of_question,
    python,
    settings,
    tree,
    with_tree,
)
from tests.support.windows import windows_facts
from torchbuild_tasks.model import BuildPlan, Facts, Host, Library, TreeReads
from torchbuild_tasks.values import replace

CONDA = python(executable="/env/bin/python", prefix="/env", environment="conda")
MKL = Library(name="MKL", include="/env/include", library="/env/lib", found_via="conda")
OPEN = Library(name="OpenBLAS", library="/usr/lib", found_via="system")


def with_blas(*found: Library, **changes: Any) -> Facts:
    return linux_facts(blas=found, **changes)


def blas(plan: BuildPlan) -> tuple[str, str, list[str]]:
    """Return the choice, what the verification expects, and the status."""
    chosen = next((choice.value for choice in plan.choices if choice.name == "BLAS library"), "")
    wanted = [each.wanted for each in plan.expectations if each.key == "BLAS_INFO"]
    return chosen, ", ".join(wanted), [f.status for f in plan.findings if f.id == "blas"]


def test_a_wrong_blas_is_corrected_by_one_that_is_here() -> None:
    fix = found(plan_of(with_blas(OPEN), set=("BLAS=Accelerate",)).findings, "variable").fix
    assert "BLAS=OpenBLAS" in fix


def test_mkl_comes_first_then_what_is_here() -> None:
    assert blas(plan_of(with_blas(MKL, OPEN))) == ("MKL", "mkl", [])
    assert blas(plan_of(with_blas(OPEN))) == ("OpenBLAS", "open", [])
    assert blas(plan_of(linux_facts())) == ("", "", [])


def test_without_any_there_is_a_word_and_the_advice_works() -> None:
    plan = plan_of(with_blas())
    assert blas(plan) == ("none", "", ["warn"])
    (finding,) = [finding for finding in plan.findings if finding.id == "blas"]
    assert "--with-helper mkl" in finding.fix
    assert blas(plan_of(with_blas(), with_helper=("mkl",))) == ("MKL", "mkl", [])


def test_one_that_is_named_is_looked_for() -> None:
    assert blas(plan_of(with_blas(OPEN), set=("BLAS=OpenBLAS",))) == ("", "open", [])
    assert blas(plan_of(with_blas(MKL, OPEN), set=("BLAS=Eigen", "WITH_BLAS=open")))[0] == "OpenBLAS"


@pytest.mark.parametrize("name", ["Eigen", "BLIS", "FlexiBLAS"])
def test_a_name_that_torch_does_not_report_is_not_expected(name: str) -> None:
    """CMake sets no BLAS_INFO for these: the report is empty, or names the library that was found instead."""
    here = with_blas(replace(OPEN, name=name))
    assert name not in blas(plan_of(here, set=(f"BLAS={name}",)))[1]


def test_one_that_is_named_and_not_here_is_refused_and_the_advice_names_what_brings_it() -> None:
    """Dependencies.cmake of 1.11 to 2.4 has find_package(OpenBLAS REQUIRED), and the same of MKL."""
    plan = plan_of(with_blas(OPEN), set=("BLAS=MKL",))
    assert blas(plan) == ("", "mkl", ["error"])
    assert "--with-helper mkl" in found(plan.findings, "blas").fix
    assert blas(plan_of(with_blas(OPEN), set=("BLAS=MKL",), with_helper=("mkl",))) == ("", "mkl", [])
    missing = plan_of(with_blas(MKL), set=("BLAS=OpenBLAS",))
    assert "apt install libopenblas-dev" in found(missing.findings, "blas").fix


def test_one_that_no_release_knows_is_refused_also_where_the_checkout_was_not_read() -> None:
    plan = plan_of(with_tree(with_blas(OPEN), reads=None), set=("BLAS=Goto",))
    assert "OpenBLAS" in found(plan.findings, "variable").text
    assert plan.verdict == "refuse"


@pytest.mark.parametrize(
    ("here", "name", "value", "promised"),
    [
        (OPEN, "CMAKE_PREFIX_PATH", "OpenBLAS", ""),
        (OPEN, "CMAKE_LIBRARY_PATH", "OpenBLAS", ""),
        (OPEN, "MKLROOT", "OpenBLAS", ""),  # MKL comes before OpenBLAS
        (MKL, "OpenBLAS_HOME", "MKL", "mkl"),  # and OpenBLAS not before MKL
        (MKL, "CMAKE_PREFIX_PATH", "MKL", "mkl"),
        (None, "CMAKE_PREFIX_PATH", "unknown", ""),
    ],
)
def test_what_a_flag_names_on_another_machine_was_not_looked_into(
    here: Library | None, name: str, value: str, promised: str
) -> None:
    question = ask(with_blas(*([here] if here else [])), set=(f"{name}=/opt/x",))
    question = replace(question, request=replace(question.request, facts="machine.json"))
    plan = plan_of_question(question)
    assert blas(plan) == (value, promised, [] if here else ["unknown"])
    choice = next(choice for choice in plan.choices if choice.name == "BLAS library")
    assert (f"{name}=/opt/x, which is on another machine" in choice.because) is (name != "OpenBLAS_HOME")


def test_one_that_is_named_may_be_in_a_folder_of_another_machine() -> None:
    question = ask(with_blas(), set=("BLAS=MKL", "CMAKE_PREFIX_PATH=/opt/x"))
    question = replace(question, request=replace(question.request, facts="machine.json"))
    assert found(plan_of_question(question).findings, "blas").status == "unknown"


def test_one_that_cmake_takes_only_by_its_name_is_named_where_there_is_no_other() -> None:
    apl = replace(OPEN, name="APL", include="/armpl/include", library="/armpl/lib")
    plan = plan_of(with_blas(apl))
    assert blas(plan) == ("APL", "apl", [])
    assert {each.name: each.value for each in plan.choices}["BLAS"] == "APL"
    assert blas(plan_of(with_blas(apl, OPEN)))[0] == "OpenBLAS"
    assert blas(plan_of(with_blas(apl, tree=tree(version="2.4.0"))))[0] == "none"


@pytest.mark.parametrize(
    ("host", "words"),
    [
        (
            Host(os="linux", arch="x86_64", distribution="Fedora Linux 42", like=()),
            "dnf install openblas-devel",
        ),
        (
            Host(os="linux", arch="x86_64", distribution="Rocky Linux 9.5", like=()),
            "set-enabled crb && sudo dnf install openblas-devel",
        ),
        (Host(os="windows", arch="aarch64"), "Arm Performance Libraries"),
        (Host(os="windows", arch="x86_64"), "--with-helper mkl"),
    ],
)
def test_the_advice_is_of_the_system(host: Host, words: str) -> None:
    windows = windows_facts(blas=(), host=host) if host.os == "windows" else with_blas(host=host)
    plan = plan_of(windows, with_helper=("none",))
    fix = found(plan.findings, "blas").fix
    assert words in fix
    assert "libopenblas-dev" not in fix


def test_one_that_is_not_looked_for_is_reported_so() -> None:
    here = with_tree(with_blas(OPEN), reads=TreeReads(values={"BLAS": ("NVPL", "OpenBLAS")}))
    assert blas(plan_of(here, set=("BLAS=NVPL",))) == ("", "nvpl", ["warn"])


def test_the_sample_has_mkl_or_nothing() -> None:
    assert blas(plan_of(with_blas(OPEN, tree=tree(sample=True)))) == ("none", "", [])
    assert blas(plan_of(with_blas(MKL, tree=tree(sample=True)))) == ("MKL", "mkl", [])


@pytest.mark.parametrize(
    ("environ", "file", "value"),
    [
        ({}, {}, "/env"),
        ({"CMAKE_PREFIX_PATH": "/mine"}, {}, "/mine:/env"),
        ({}, {"CMAKE_PREFIX_PATH": "/a:/b"}, "/a:/b:/env"),
        ({"CMAKE_PREFIX_PATH": "/env:/mine"}, {}, "/env:/mine"),
    ],
)
def test_a_conda_environment_stands_behind_what_the_user_named(
    environ: dict[str, str], file: dict[str, str], value: str
) -> None:
    plan = plan_of(linux_facts(pythons=(CONDA,), environ=environ), settings(variables=file))
    (op,) = [op for op in plan.env if op.name == "CMAKE_PREFIX_PATH"]
    assert (op.op, op.value) == ("set", value)


def test_no_other_environment_is_named() -> None:
    assert "CMAKE_PREFIX_PATH" not in {op.name for op in plan_of().env}


def test_a_helper_stands_in_front_of_conda() -> None:
    facts = linux_facts(pythons=(CONDA,), blas=())
    ops = [op for op in plan_of(facts, with_helper=("mkl",)).env if op.name == "CMAKE_PREFIX_PATH"]
    assert [op.op for op in ops[:2]] == ["set", "prepend"]
