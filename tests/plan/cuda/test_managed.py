"""The parts of a managed toolkit, and rules for every row of them."""

from __future__ import annotations

import re

import pytest
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from tests.support.for_each import each_case
from tests.support.machines import ask, linux_facts, tree
from tests.support.windows import ROOT, windows_facts
from torchbuild_tasks.catalog import Catalog, load_catalog
from torchbuild_tasks.catalog.cuda import PartRow
from torchbuild_tasks.catalog.match import series
from torchbuild_tasks.model import Cuda, Facts, Host, Store, Toolkit
from torchbuild_tasks.plan.cuda.managed import managed_toolkit, part_folders, part_id
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.values import replace

PARTS = load_catalog().part
RELEASES = sorted({row.cuda for row in PARTS if "." in row.cuda}, key=Version)
MACHINES = [("linux", "x86_64"), ("linux", "aarch64"), ("windows", "x86_64")]
COMPILE = {"nvcc", "cudart", "cccl", "cuobjdump"}
TORCH = {"nvtx", "cupti", "nvrtc", "cublas", "cusparse", "cusolver", "cufft", "curand", "nvjitlink"}
TORCH |= {"nvml", "profiler-api", "cudnn", "cusparselt"}


def machine(version: str = "2.13.0", *, os: str = "linux", sample: bool = False, **changes: object) -> Facts:
    """A machine with a store, that builds this torch or the sample."""
    if os == "windows":
        store = Store(folder=r"C:\Cache")
        return windows_facts(store=store, tree=tree(root=ROOT, version=version, sample=sample), **changes)
    return linux_facts(store=Store(folder="/cache"), tree=tree(version=version, sample=sample), **changes)


def names(question: Question, version: str) -> set[str]:
    return {artifact.name for artifact in managed_toolkit(question, version).artifacts}


def versions(facts: Facts, cuda: str) -> dict[str, str]:
    return {one.name: one.version for one in managed_toolkit(ask(facts), cuda).artifacts}


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize(("os", "arch"), MACHINES)
def test_the_sample_gets_what_compiles_and_torch_all_the_rest(release: str, os: str, arch: str) -> None:
    host = replace(machine(os=os).host, arch=arch)
    small = names(ask(machine(os=os, sample=True, host=host)), release)
    large = names(ask(machine(os=os, host=host)), release)
    assert small >= COMPILE
    assert not small & TORCH
    assert large >= small | TORCH
    assert ("nccl" in large) == (os == "linux"), "NCCL is for Linux alone"
    if release.startswith("13"):
        assert small >= {"crt", "nvvm"}
        assert ("culibos" in small) == (os == "linux")


@each_case("release", RELEASES)
def test_a_series_means_its_release(release: str) -> None:
    question = ask(machine())
    by_series = managed_toolkit(question, series(release))
    assert by_series == managed_toolkit(question, release)
    assert by_series.toolkit is not None
    assert by_series.toolkit.version == release
    assert by_series.toolkit.parts == tuple(artifact.id for artifact in by_series.artifacts)
    assert not by_series.problem


@pytest.mark.parametrize(
    "wanted",
    ["12.7", "11.8", "99", "13.0.1", "12.4.0"],
)
def test_another_version_is_refused_with_those_there_are(wanted: str) -> None:
    choice = managed_toolkit(ask(machine()), wanted)
    assert choice.toolkit is None
    assert choice.artifacts == ()
    assert f"no parts are known of CUDA {wanted}" in choice.problem
    assert "12.4.1, 12.6.3" in choice.problem


@pytest.mark.parametrize("wanted", ["", "x", "12.", "12.4.1.0", "-1", "12.\u0664", "9" * 5000])
def test_what_is_no_version_has_no_nearest(wanted: str) -> None:
    choice = managed_toolkit(ask(machine()), wanted)
    assert choice.toolkit is None
    assert "there are those of 12.4.1" in choice.problem
    assert "nearest" not in choice.problem


def test_a_machine_without_parts_is_an_error() -> None:
    host = Host(os="linux", arch="ppc64le")
    choice = managed_toolkit(ask(machine(host=host)), "13.0")
    assert choice.problem == "no CUDA toolkit can be put together for linux ppc64le"


@pytest.mark.parametrize(
    ("torch", "cuda", "cudnn", "nccl"),
    [
        ("2.6.0", "12.4", "9.1.0.70", "2.21.5"),
        ("2.7.1", "12.6", "9.5.1.17", "2.26.2"),
        ("2.8.0", "12.8", "9.10.2.21", "2.27.3"),
        ("2.11.0", "13.0", "9.19.0.56", "2.28.9"),
        ("2.13.0", "13.0", "9.20.0.48", "2.29.7"),
        ("2.14.0a0", "13.0", "9.24.0.43", "2.30.7"),
        ("2.15.0", "13.2", "9.26.0.51", "2.30.7"),
    ],
)
def test_cudnn_and_nccl_are_those_of_the_torch_version(torch: str, cuda: str, cudnn: str, nccl: str) -> None:
    found = versions(machine(torch), cuda)
    assert (found["cudnn"], found["nccl"]) == (cudnn, nccl)


def test_a_part_that_this_torch_cannot_have_is_named() -> None:
    old = managed_toolkit(ask(machine("2.3.0", os="windows")), "12.4").toolkit
    assert old is not None
    assert old.because.endswith("; for this torch there is no cudnn")
    new = managed_toolkit(ask(machine("2.6.0", os="windows")), "12.4").toolkit
    assert new is not None
    assert "there is no" not in new.because


def test_other_parts_lie_in_another_folder() -> None:
    """Two checkouts that want two cuDNNs must not share one toolkit."""
    one, other = (managed_toolkit(ask(machine(version)), "13.0").toolkit for version in ("2.13.0", "2.14.0"))
    same = managed_toolkit(ask(machine("2.13.1")), "13.0").toolkit
    assert one is not None
    assert other is not None
    assert one.folder != other.folder
    assert same == one
    assert re.fullmatch(r"/cache/toolkits/cuda-13\.0\.2-linux-x86_64-[0-9a-f]{8}", one.folder)


def test_the_folder_is_written_as_the_machine_writes_it() -> None:
    toolkit = managed_toolkit(ask(machine(os="windows", sample=True)), "13.0").toolkit
    assert toolkit is not None
    name = r"C:\\Cache\\toolkits\\cuda-13\.0\.2-windows-x86_64-compile-[0-9a-f]{8}"
    assert re.fullmatch(name, toolkit.folder)


@pytest.mark.parametrize("managed", [True, False])
def test_it_is_here_when_the_facts_have_a_managed_one_there(managed: bool) -> None:
    wanted = managed_toolkit(ask(machine()), "13.0").toolkit
    assert wanted is not None
    assert not wanted.here
    there = Toolkit(path=wanted.folder, found_via="the store", managed=managed)
    found = managed_toolkit(ask(machine(cuda=Cuda(toolkits=(there,)))), "13.0").toolkit
    assert found == replace(wanted, here=managed)
    # A store behind a link: the facts have the folder without links, and the other as an alias.
    behind = replace(there, path="/mnt/x", aliases=(wanted.folder,))
    assert managed_toolkit(ask(machine(cuda=Cuda(toolkits=(behind,)))), "13.0").toolkit == found


def test_a_hash_that_no_row_has_is_the_lock_files() -> None:
    row = PartRow(cuda="14.0.0", name="nvcc", version="1", needed="compile", folder="f", source="a test")
    row = replace(row, os="linux", arch="x86_64", urls=("https://example.org/a.zip",))
    name = part_id(row)
    store = Store(folder="/cache", pins={name: "ab" * 32})
    question = ask(linux_facts(store=store))
    question = replace(question, catalog=Catalog(part=(row,)))
    (artifact,) = managed_toolkit(question, "14.0").artifacts
    assert (artifact.id, artifact.sha256) == ("cuda-nvcc-1-linux-x86_64", "ab" * 32)


# ---------------------------------------------------------------- the rows


def key(row: PartRow) -> str:
    return f"{row.cuda}-{row.name}-{row.version}-{row.os}-{row.arch}"


def test_a_part_is_called_the_same_only_when_it_is_the_same() -> None:
    files: dict[str, set[tuple[str, str]]] = {}
    for row in PARTS:
        files.setdefault(part_id(row), set()).add((row.sha256, row.folder))
    assert all(len(one) == 1 for one in files.values())
    assert part_folders(PARTS).keys() == files.keys()


@each_case("cuda", sorted({row.cuda for row in PARTS}))
def test_part_rows(cuda: str) -> None:
    for row in PARTS:
        if row.cuda == cuda:
            check_row(row)


def check_row(row: PartRow) -> None:
    name = key(row)
    assert (row.os, row.arch) in MACHINES, name
    assert row.needed in ("compile", "torch"), name
    assert row.source, name
    SpecifierSet(row.torch)
    assert re.fullmatch(r"[0-9a-f]{64}", row.sha256), name
    assert row.holds, name
    assert all(path.startswith(f"{row.folder}/") and "\\" not in path for path in row.holds), name
    assert bool(row.urls) != bool(row.project), f"{name}: an address or a project, not both"
    if row.project:
        ending = "win_amd64" if row.os == "windows" else rf"manylinux[0-9_]*_{row.arch}"
        assert re.fullmatch(ending, row.tag), name
        assert row.unpack == "zip", name
    for url in row.urls:
        assert url.endswith(f"/{row.folder}.{row.unpack}"), name
        assert row.version in url, name
        assert row.size, f"{name}: NVIDIA's manifests say it"


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize(("os", "arch"), MACHINES)
def test_no_part_is_taken_twice(os: str, arch: str, release: str) -> None:
    host = replace(machine(os=os).host, arch=arch)
    for row in load_catalog().torch:
        found = managed_toolkit(ask(machine(f"{row.version}.0", os=os, host=host)), release)
        taken = [artifact.name for artifact in found.artifacts]
        assert len(taken) == len(set(taken)), f"for torch {row.version}"


@pytest.mark.parametrize("release", ["12.9.1", "13.2.2"])
@pytest.mark.parametrize(("os", "arch"), MACHINES)
def test_every_newer_torch_has_its_libraries(os: str, arch: str, release: str) -> None:
    """Those of 2.3 and before have no cuDNN for CUDA 12 on aarch64, whose first wheel is 9.1.0.70.post1."""
    host = replace(machine(os=os).host, arch=arch)
    wanted = {"cudnn", "cusparselt", *(["nccl"] if os == "linux" else [])}
    for row in load_catalog().torch:
        found = names(ask(machine(f"{row.version}.0", os=os, host=host)), release)
        if Version(row.version) >= Version("2.7"):
            assert found >= wanted, f"for torch {row.version}"
        if Version(row.version) >= Version("2.4") and release.startswith("12"):
            assert "cudnn" in found, f"for torch {row.version}"


@each_case("row", [row for row in PARTS if row.name == "cudart"], ids=part_id)
def test_the_runtime_is_of_the_wheel_where_that_is_complete(row: PartRow) -> None:
    """From 12.9 on it has the static library, with which CMake tries nvcc."""
    assert bool(row.project) == (Version(row.cuda) >= Version("12.9"))
    assert bool(row.urls) != bool(row.project)
