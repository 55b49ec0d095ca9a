"""The expectations of the verification that follow from a plan."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.cuda import cuda_facts, gpu, toolkit
from tests.support.machines import base_python, linux_facts, modern_tree, plan_of, settings, with_tree
from torchbuild_tasks.model import Expectation, Facts
from torchbuild_tasks.plan.cuda.archs import capability
from torchbuild_tasks.plan.cuda.values import Arch
from torchbuild_tasks.plan.expectations import arch_words
from torchbuild_tasks.verify.torch_probe import CUDA_CHECKS

CUDA = cuda_facts(toolkit("12.4"), gpus=(gpu("8.6"),))


def expected(facts: Facts | None = None, **flags: Any) -> dict[tuple[str, str], Expectation]:
    made = plan_of(facts, **flags).expectations
    assert len(made) == len({(e.check, e.key) for e in made})
    return {(e.check, e.key): e for e in made}


def test_every_kind_of_check_is_asked_for() -> None:
    checks = {check for check, _ in expected()}
    assert checks == {
        "import",
        "config",
        "matmul",
        "autograd",
        "linalg",
        "conv",
        "threads",
        "save_load",
        "cpp_extension",
        "cmake_consumer",
        "libraries",
        "rpath",
        "numpy",
    }


def test_every_expectation_says_why() -> None:
    assert all(e.because for e in expected().values())
    assert all(e.because for e in expected(CUDA, cuda=True).values())


@pytest.mark.parametrize(
    ("facts", "mode", "folder"),
    [
        (linux_facts(), "develop", "/src/pytorch"),
        (linux_facts(), "wheel", "/venv"),
        (linux_facts(pythons=(base_python(),)), "wheel", "/src/pytorch/.torchbuild/venv-3.11"),
        (linux_facts(tree=modern_tree()), "develop", "/src/pytorch"),
    ],
)
def test_torch_is_imported_from_what_was_built(facts: Facts, mode: str, folder: str) -> None:
    assert expected(facts, mode=mode)["import", "inside"].wanted == folder


@pytest.mark.parametrize(
    ("flags", "version"),
    [({}, "2.8.0a0"), ({"set": ("PYTORCH_BUILD_VERSION=2.8.0", "PYTORCH_BUILD_NUMBER=1")}, "2.8.0")],
)
def test_the_version(flags: dict[str, Any], version: str) -> None:
    assert expected(**flags)["import", "version"].wanted == version


def test_a_build_number_above_one_is_part_of_the_version() -> None:
    """PyTorch appends .postN from PYTORCH_BUILD_NUMBER 2 on."""
    flags = ("PYTORCH_BUILD_VERSION=2.8.0", "PYTORCH_BUILD_NUMBER=2")
    assert expected(set=flags)["import", "version"].wanted == "2.8.0.post2"


def test_libraries_may_come_from_where_a_variable_leads() -> None:
    """An absolute path in it; neither a word nor the whole machine."""
    found = expected(set=("MY_PLACE=/opt/mine:beside:/", "OTHER=word"))
    assert found["libraries", ""].wanted == "/src/pytorch\n/opt/mine"


def test_the_commit_is_expected_only_where_there_is_one() -> None:
    facts = linux_facts()
    assert expected(facts)["import", "git_version"].wanted == facts.tree.commit
    assert ("import", "git_version") not in expected(with_tree(facts, commit=None, git=False))


@pytest.mark.parametrize(
    ("build_type", "debug"), [("Release", "False"), ("Debug", "True"), ("RelWithDebInfo", "False")]
)
def test_the_build_type(build_type: str, debug: str) -> None:
    made = expected(build_type=build_type)
    assert made["import", "debug"].wanted == debug
    assert made["config", "BUILD_TYPE"].wanted == build_type


def test_planned_variables_are_expected() -> None:
    made = expected(set=("USE_MKLDNN=0",))
    assert made["config", "USE_MKLDNN"].wanted == "0"
    assert made["config", "USE_CUDA"].wanted == "0"


@pytest.mark.parametrize(("blas", "reported"), [("OpenBLAS", "open"), ("MKL", "mkl"), ("ATLAS", "atlas")])
def test_a_planned_value_is_expected_as_torch_spells_it(blas: str, reported: str) -> None:
    assert expected(set=(f"BLAS={blas}",))["config", "BLAS_INFO"].wanted == reported


def test_unplanned_variables_are_not_expected() -> None:
    made = expected(preset="full")
    assert ("config", "USE_MKLDNN") not in made
    assert ("config", "BLAS_INFO") not in made


def test_a_variable_from_the_settings_file_is_expected_too() -> None:
    made = plan_of(said=settings(variables={"USE_OPENMP": "0"})).expectations
    assert [e.wanted for e in made if e.key == "USE_OPENMP"] == ["0"]


@pytest.mark.parametrize(("flags", "skipped"), [({}, False), ({"set": ("USE_NUMPY=0",)}, True)])
def test_numpy_switched_off_cannot_be_shown(flags: dict[str, Any], skipped: bool) -> None:
    assert ("USE_NUMPY" in expected(**flags)["numpy", ""].skip) is skipped


def test_the_sample_says_what_it_cannot_show() -> None:
    sample = expected(with_tree(linux_facts(), sample=True))
    skipped = {check for (check, _), e in sample.items() if e.skip}
    assert {"autograd", "linalg", "conv"} <= skipped
    assert not {"import", "matmul", "save_load", "threads"} & skipped
    assert all("sample" in e.skip for e in sample.values() if e.skip)
    assert not [e for e in expected().values() if e.skip]


# ---------------------------------------------------------------- a CUDA build


def test_a_cuda_build_is_asked_for_every_check_of_cuda() -> None:
    more = {check for check, _ in expected(CUDA, cuda=True)} - {check for check, _ in expected(CUDA)}
    assert more == set(CUDA_CHECKS)


@pytest.mark.parametrize("flags", [{}, {"cpu": True}, {"set": ("USE_CUDA=OFF",)}])
def test_a_cpu_build_has_no_row_about_cuda_but_that_it_is_off(flags: dict[str, Any]) -> None:
    rows = expected(CUDA, **flags)
    about = {(check, key) for check, key in rows if "cuda" in f"{check}{key}".lower() or check in CUDA_CHECKS}
    assert about == {("config", "USE_CUDA")}


def test_an_empty_switch_is_off() -> None:
    assert not [check for check, _ in expected(CUDA, set=("USE_CUDA=",)) if check in CUDA_CHECKS]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({}, "sm_86"),
        ({"arch": "8.6;9.0+PTX"}, "sm_86 sm_90 compute_90"),
        ({"arch": "9.0a"}, "sm_90a"),
        ({"set": ("TORCH_CUDA_ARCH_LIST=7.5 8.0+PTX",)}, "sm_75 sm_80 compute_80"),
    ],
)
def test_the_architectures_in_torchs_words(flags: dict[str, Any], words: str) -> None:
    assert expected(CUDA, cuda=True, **flags)["cuda_arch_list", "arch_list"].wanted == words


@pytest.mark.parametrize(
    ("text", "words"), [("10.0+PTX", "sm_100 compute_100"), ("12.0f;12.1a", "sm_120f sm_121a")]
)
def test_capabilities_of_three_digits(text: str, words: str) -> None:
    archs = [
        Arch(capability=capability(part.removesuffix("+PTX")), ptx=part.endswith("+PTX"))
        for part in text.split(";")
    ]
    assert arch_words(archs) == words


@pytest.mark.parametrize("version", ["12.4", "13.0"])
def test_the_cuda_of_torch_is_the_planned_toolkits(version: str) -> None:
    facts = cuda_facts(toolkit(version), gpus=(gpu("8.6"),))
    assert expected(facts, cuda=True)["import", "cuda"].wanted == version


def test_without_a_toolkit_nothing_is_promised_about_its_version() -> None:
    made = expected(cuda_facts(), cuda=True)
    assert ("import", "cuda") not in made
    assert ("cuda_arch_list", "arch_list") not in made


@pytest.mark.parametrize(("check", "variable"), [("cudnn", "USE_CUDNN"), ("nccl", "USE_NCCL")])
def test_a_library_that_is_planned_off_cannot_be_shown(check: str, variable: str) -> None:
    off = expected(CUDA, cuda=True, set=(f"{variable}=0",))
    assert off[check, ""].skip == f"{variable} is off in the plan"
    assert off["config", variable].wanted == "0"


def test_what_the_sample_can_show_of_cuda() -> None:
    sample = expected(with_tree(CUDA, sample=True), cuda=True)
    shown = {(check, key) for (check, key), e in sample.items() if check in CUDA_CHECKS and not e.skip}
    assert shown == {("cuda_available", ""), ("cuda_arch_list", "arch_list"), ("cuda_driver", "")}
