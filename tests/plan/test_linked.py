"""What a switch links with: told where it is not on the machine, and only there."""

from __future__ import annotations

import pytest

from tests.support.cuda import cuda_facts, gpu, toolkit
from tests.support.for_each import for_each
from tests.support.machines import (
    ask,
    linux_facts,
    plan_of,
    plan_of_question,
    python,
    settings,
    statuses,
    tree,
    with_tree,
)
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.catalog.rows import LinkedRow
from torchbuild_tasks.model import BuildPlan, Facts, Finding, Host, Library
from torchbuild_tasks.values import replace

CATALOG = load_catalog()


def told(plan: BuildPlan) -> list[Finding]:
    return [finding for finding in plan.findings if finding.id == "linked"]


def facts(*here: str, version: str = "2.4.0", os_release: str = "Debian GNU/Linux 12 (bookworm)") -> Facts:
    host = Host(os="linux", arch="x86_64", distribution=os_release)
    linked = tuple(Library(name=name, found_via="system") for name in here)
    return linux_facts(host=host, linked=linked, tree=tree(version=version))


@pytest.mark.parametrize(
    ("version", "word", "name", "package", "ends"),
    [
        ("2.4.0", "USE_GLOG=1", "glog", "libgoogle-glog-dev", "off"),
        ("2.4.0", "USE_NUMA=1", "libnuma", "libnuma-dev", "off"),
        ("2.4.0", "USE_OPENCL=ON", "OpenCL", "ocl-icd-opencl-dev", "it stops"),
        ("2.4.0", "USE_MPI=1", "MPI", "libopenmpi-dev", "off"),
        ("2.4.0", "USE_SYSTEM_ONNX=1", "ONNX", "libonnx-dev", "it stops"),
        ("2.4.0", "USE_SYSTEM_SLEEF=1", "SLEEF", "libsleef-dev", "it stops"),
        ("2.4.0", "USE_SYSTEM_PYBIND11=1", "pybind11", "pybind11-dev", "the compile stops"),
        ("2.4.0", "USE_SYSTEM_EIGEN_INSTALL=1", "Eigen", "libeigen3-dev", "the checkout's own"),
        ("2.4.0", "BUILD_CUSTOM_PROTOBUF=0", "protobuf", "libprotobuf-dev", "the checkout's own"),
        ("2.0.1", "USE_LMDB=1", "LMDB", "liblmdb-dev", "off"),
        ("1.13.1", "USE_ZMQ=1", "ZeroMQ", "libzmq3-dev", "off"),
    ],
)
def test_what_is_not_here_is_told_with_its_package_and_how_that_ends(
    version: str, word: str, name: str, package: str, ends: str
) -> None:
    """With an error where CMake or a compile stops, and else with a warning."""
    (finding,) = told(plan_of(facts(version=version), set=(word,)))
    assert f"{name} was not found" in finding.text and ends in finding.text
    assert (finding.status == "error") is ("stops" in ends)
    assert f"sudo apt install {package}" in finding.fix and f"drop {word.partition('=')[0]}" in finding.fix
    assert told(plan_of(facts(name, version=version), set=(word,))) == []
    other = word.translate(str.maketrans("01", "10")).replace("ON", "OFF")
    assert told(plan_of(facts(version=version), set=(other,))) == []


def test_what_cmake_turns_off_is_said_so_and_promised_to_nobody() -> None:
    plan = plan_of(facts(), set=("USE_MPI=1",))
    (choice,) = [each for each in plan.choices if each.name == "USE_MPI"]
    assert (choice.value, choice.because.endswith("CMake turns it off: MPI was not found")) == ("1", True)
    (promise,) = [each for each in plan.expectations if each.key == "USE_MPI"]
    assert promise.skip == "CMake turns USE_MPI off: MPI was not found"
    for here in (facts("MPI"), linux_facts()):  # it is there; or nobody has looked
        (promise,) = [e for e in plan_of(here, set=("USE_MPI=1",)).expectations if e.key == "USE_MPI"]
        assert (promise.wanted, promise.skip) == ("1", "")


def test_a_cudnn_that_is_not_here_is_promised_to_nobody() -> None:
    """Neither by its switch nor by what is run with it; but one that is there is."""
    for cudnn in (None, "9.5"):
        here = cuda_facts(toolkit("12.8", cudnn=cudnn), gpus=(gpu("8.9"),))
        plan = plan_of(here, cuda=True, set=("USE_CUDNN=1",))
        promises = [each for each in plan.expectations if "cudnn" in f"{each.check} {each.key}".lower()]
        assert [bool(each.skip) for each in promises] == [cudnn is None] * 2
        assert statuses(plan.findings, "cudnn") == (["warn"] if cudnn is None else [])


@pytest.mark.parametrize("path", ["third_party/protobuf", "third_party/eigen"])
def test_where_the_checkouts_own_is_empty_too_cmake_stops(path: str) -> None:
    word = "BUILD_CUSTOM_PROTOBUF=0" if "protobuf" in path else "USE_SYSTEM_EIGEN_INSTALL=1"
    (finding,) = told(plan_of(with_tree(facts(), empty=(path,)), set=(word,)))
    assert finding.status == "error" and f"{path} is empty" in finding.text


@pytest.mark.parametrize("word", ["USE_OPENCL=1", "USE_MKLDNN_ACL=1"])
def test_what_a_flag_names_on_another_machine_was_not_looked_into(word: str) -> None:
    """Nor is that folder among those of which a finding says that they were looked into."""
    for words, status in (((), "error"), (("CMAKE_PREFIX_PATH=/opt/other",), "unknown")):
        question = ask(facts(), set=(word, *words))
        request = replace(question.request, facts="machine.json")
        (finding,) = told(plan_of_question(replace(question, request=request)))
        assert finding.status == status
        assert ("looked for in CMAKE_PREFIX_PATH=/opt/other" in finding.text) is (status == "unknown")
        assert ("looked in" in finding.text) is (status == "error")


def test_all_that_one_switch_needs_is_one_command() -> None:
    (finding,) = told(plan_of(facts("SLEEF", version="2.4.0"), set=("USE_SYSTEM_LIBS=1",)))
    assert "cpuinfo, Gloo, FP16, ONNX and 4 more were not found" in finding.text
    assert "install libcpuinfo-dev libgloo-dev libfp16-dev libonnx-dev" in finding.fix
    assert finding.status == "error" and "it stops, or the compile stops, or it takes" in finding.text
    (finding,) = told(plan_of(facts(version="2.0.1"), set=("USE_LEVELDB=1",)))
    assert "sudo apt install libleveldb-dev libsnappy-dev" in finding.fix


def test_what_is_not_looked_for_is_not_missed() -> None:
    """Without kernels for phones CMake looks for no pthreadpool, and without tests for no benchmark."""
    for word in ("USE_SYSTEM_PTHREADPOOL=1", "USE_SYSTEM_BENCHMARK=1", "USE_SYSTEM_FXDIV=1"):
        assert told(plan_of(facts(), set=(word,))) == [], word
        assert told(plan_of(facts(), preset="full", set=(word,))) != [], word
    assert told(plan_of(facts(), set=("USE_SYSTEM_GLOO=1", "USE_DISTRIBUTED=0"))) == []


def test_what_nobody_asked_for_is_not_missed() -> None:
    for preset in ("dev", "full"):
        assert told(plan_of(facts(), preset=preset)) == []


def test_another_way_to_have_it_counts() -> None:
    assert told(plan_of(facts(), set=("USE_GLOG=1", "glog_ROOT=/opt/glog"))) == []
    with_package = facts()
    with_package = linux_facts(
        linked=(), tree=with_package.tree, pythons=(python(packages={"pip": "24.0", "pybind11": "2.13"}),)
    )
    assert told(plan_of(with_package, set=("USE_SYSTEM_PYBIND11=1",))) == []


def test_where_nobody_looked_that_is_said() -> None:
    (finding,) = told(plan_of(linux_facts(), settings(variables={"USE_GLOG": "1"})))
    assert "was not looked for" in finding.text and finding.status == "warn"


def test_a_system_without_such_a_package_is_told_the_folder() -> None:
    (finding,) = told(plan_of(facts(os_release="Alpine Linux v3.20"), set=("USE_GLOG=1",)))
    assert "nstall" not in finding.fix and "--set CMAKE_PREFIX_PATH=FOLDER" in finding.fix


def test_the_variable_that_alone_leads_to_it_is_named() -> None:
    """cmake/public/ComputeLibrary.cmake reads ACL_ROOT_DIR of the environment, as FindACL.cmake does."""
    (finding,) = told(plan_of(facts(), set=("USE_MKLDNN_ACL=1",)))
    assert "--set ACL_ROOT_DIR=FOLDER" in finding.fix and "CMAKE_PREFIX_PATH=" not in finding.fix
    assert not told(plan_of(facts(), set=("USE_MKLDNN_ACL=1", "ACL_ROOT_DIR=/opt/acl")))


@for_each(CATALOG.linked, lambda row: row.name)
def test_linked_rows(row: LinkedRow) -> None:
    assert row.libraries or row.headers or row.toolkit
    assert bool(row.own) is (row.without == "own")
    assert not row.package or any(each.name == row.package for each in CATALOG.package)


def test_magma_is_named_by_what_its_module_reads_and_can_be_made() -> None:
    plan = plan_of(cuda_facts(toolkit("12.4")), cuda=True, arch="8.6", set=("USE_MAGMA=1",))
    (finding,) = told(plan)
    assert "--set MAGMA_HOME=FOLDER" in finding.fix
    assert "torchbuild helpers build magma --cuda" in finding.fix


def test_what_nvidia_packs_is_named_by_the_package_of_its_repository() -> None:
    for system, package in (("Ubuntu 24.04 LTS", "libnccl-dev"), ("Fedora Linux 41", "libnccl-devel")):
        host = Host(os="linux", arch="x86_64", distribution=system)
        seen = cuda_facts(toolkit("12.8"), host=host, tree=tree(version="2.9.1"))
        (finding,) = told(plan_of(seen, cuda=True, set=("USE_SYSTEM_NCCL=1",)))
        assert f"install {package}; or" in finding.fix and "NVIDIA's repository" in finding.fix
    windows = told(plan_of(facts(), set=("USE_GLOG=1",)))
    assert "NVIDIA" not in windows[0].fix
