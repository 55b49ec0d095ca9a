"""A toolkit that compiles a kernel, and lacks what torch links with."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.cuda import cuda_facts, toolkit
from tests.support.machines import found, plan_of, statuses, tree
from torchbuild_tasks.model import Facts, Switch, TreeReads
from torchbuild_tasks.values import replace

LACKS = ("cublas", "cufft")
KINETO = Switch(name="USE_KINETO", default="ON", needs="", place="CMakeLists.txt")
FULL = {"nvtx3": "/x/nvToolsExt.h"}


def of(distribution: str = "Ubuntu 24.04", **changes: object) -> Facts:
    facts = cuda_facts(toolkit("12.4", **changes))
    own = tree(version="2.6.0", reads=TreeReads(names=("USE_KINETO",), switches=(KINETO,)))
    return replace(facts, host=replace(facts.host, distribution=distribution), tree=own)


@pytest.mark.parametrize(
    ("distribution", "line"),
    [
        ("Ubuntu 24.04", "sudo apt install cuda-libraries-dev-12-4"),
        ("Rocky Linux 9.4", "sudo dnf install cuda-libraries-devel-12-4"),
        ("Gentoo Linux", "Or install the rest of cuda-12.4 the way that it was installed."),
    ],
)
def test_what_torch_links_with_is_missing(distribution: str, line: str) -> None:
    finding = found(plan_of(of(distribution, lacks=LACKS), cuda=True).findings, "cuda-parts")
    assert (finding.status, "cublas, cufft" in finding.text) == ("error", True)
    assert line in finding.fix
    assert "--cuda-toolkit pypi:12" in finding.fix


def test_the_parts_come_from_where_the_toolkit_came_from() -> None:
    """What conda put there, conda completes; on Windows the installer does."""
    of_conda = of(found_via="CONDA_PREFIX", path="/home/u/miniforge3/envs/x", lacks=LACKS)
    fix = found(plan_of(of_conda, cuda=True).findings, "cuda-parts").fix
    assert "conda install -c nvidia cuda-libraries-dev=12.4." in fix
    windows = of(path="C:\\CUDA\\v12.4", lacks=LACKS)
    windows = replace(windows, host=replace(windows.host, os="windows"))
    fix = found(plan_of(windows, cuda=True).findings, "cuda-parts").fix
    assert "start NVIDIA's installer of CUDA 12.4 again" in fix


def test_it_may_be_in_a_folder_that_was_not_looked_into() -> None:
    plan = plan_of(of(lacks=LACKS), cuda=True, set=("CMAKE_PREFIX_PATH=/opt/math",))
    assert found(plan.findings, "cuda-parts").status == "warn"


def test_a_toolkit_that_lacks_it_is_passed_over() -> None:
    facts = of(lacks=LACKS)
    assert facts.cuda is not None
    other = toolkit("12.6", found_via="PATH", lacks=())
    facts = replace(facts, cuda=replace(facts.cuda, toolkits=(*facts.cuda.toolkits, other)))
    plan = plan_of(facts, cuda=True)
    assert not statuses(plan.findings, "cuda-parts")
    assert plan.inputs["cuda toolkit"].startswith(other.path)


@pytest.mark.parametrize("sample", [True, False])
def test_the_sample_links_with_none_and_where_nobody_looked_nothing_is_said(sample: bool) -> None:
    facts = of(lacks=LACKS if sample else None)
    facts = replace(facts, tree=replace(facts.tree, sample=sample))
    assert not statuses(plan_of(facts, cuda=True).findings, "cuda-parts")


@pytest.mark.parametrize(
    ("flags", "parts", "expected"),
    [
        ({"preset": "full"}, FULL, ["warn"]),
        ({"preset": "full"}, {**FULL, "cupti": "/x"}, []),
        ({"preset": "full"}, {}, []),  # nobody looked
        ({"preset": "dev"}, FULL, []),
        ({"preset": "full", "set": ("LIBKINETO_NOCUPTI=1",)}, FULL, []),
        ({"set": ("USE_KINETO=1",)}, FULL, ["warn"]),
    ],
)
def test_kineto_without_cupti(flags: dict[str, Any], parts: dict[str, str], expected: list[str]) -> None:
    plan = plan_of(of(parts=parts), cuda=True, **flags)
    assert statuses(plan.findings, "cuda-parts") == expected


@pytest.mark.parametrize(
    ("distribution", "lacking", "says", "line"),
    [
        ("Ubuntu 24.04", {"libraries": None}, "libcudart.so", "apt install cuda-cudart-dev-12-4."),
        ("Ubuntu 24.04", {"headers": False}, "cuda_runtime.h", "apt install cuda-cudart-dev-12-4."),
        ("Rocky Linux 9.4", {"libraries": None}, "libcudart.so", "dnf install cuda-cudart-devel-12-4."),
        ("Ubuntu 24.04", {"nvcc": None}, "no nvcc", "apt install cuda-nvcc-12-4."),
        (
            "Ubuntu 24.04",
            {"libraries": None, "lacks": LACKS},
            "libcudart.so",
            "apt install cuda-cudart-dev-12-4 cuda-libraries-dev-12-4.",
        ),
        (
            "Gentoo Linux",
            {"libraries": None},
            "libcudart.so",
            "Or install the rest of cuda-12.4 the way that it was installed.",
        ),
        ("Ubuntu 24.04", {"problem": "its nvcc does not start"}, "does not start", ""),
    ],
)
@pytest.mark.parametrize(
    "asked", [{}, {"cuda_toolkit": "12.4"}, {"cuda_toolkit": "/usr/local/cuda-12.4"}], ids=str
)
def test_a_toolkit_that_compiles_nothing_is_completed_where_it_is(
    distribution: str, lacking: dict[str, Any], says: str, line: str, asked: dict[str, Any]
) -> None:
    """Whether it is asked for or the only one; or one of its series is put together."""
    plan = plan_of(of(distribution, **lacking), cuda=True, **asked)
    finding = found(plan.findings, "cuda-toolkit")
    assert plan.verdict == "refuse" and says in finding.text
    assert "--cuda-toolkit pypi:12.4" in finding.fix
    assert line in finding.fix and (" Or install what" in finding.fix or "rest of" in finding.fix) is bool(
        line
    )


@pytest.mark.parametrize("series", ["12.6", "12.8", "13.0"])
def test_for_a_half_toolkit_one_of_its_own_series_is_put_together(series: str) -> None:
    """Wherever it lies: its folder may be called anything."""
    half = toolkit(series, path="/opt/half", libraries=None)
    facts = replace(cuda_facts(half), tree=tree(version="2.9.1"))
    ways: list[dict[str, Any]] = [{}, {"cuda_toolkit": "/opt/half"}]
    for flags in ways:
        fix = found(plan_of(facts, cuda=True, arch="8.6", **flags).findings, "cuda-toolkit").fix
        assert f"--cuda-toolkit pypi:{series}" in fix and "install the rest of half" in fix
