"""What a switch links with: told where it is not on the machine, and only there."""

from __future__ import annotations

import pytest

from tests.support.for_each import for_each
from tests.support.machines import linux_facts, plan_of, python, settings, tree
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.catalog.rows import LinkedRow
from torchbuild_tasks.model import BuildPlan, Facts, Finding, Host, Library

CATALOG = load_catalog()


def told(plan: BuildPlan) -> list[Finding]:
    return [finding for finding in plan.findings if finding.id == "linked"]


def facts(*here: str, version: str = "2.4.0", os_release: str = "Debian GNU/Linux 12 (bookworm)") -> Facts:
    host = Host(os="linux", arch="x86_64", distribution=os_release)
    linked = tuple(Library(name=name, found_via="system") for name in here)
    return linux_facts(host=host, linked=linked, tree=tree(version=version))


@pytest.mark.parametrize(
    ("version", "word", "name", "package"),
    [
        ("2.4.0", "USE_GLOG=1", "glog", "libgoogle-glog-dev"),
        ("2.4.0", "USE_NUMA=1", "libnuma", "libnuma-dev"),
        ("2.4.0", "USE_OPENCL=ON", "OpenCL", "ocl-icd-opencl-dev"),
        ("2.4.0", "USE_MPI=1", "MPI", "libopenmpi-dev"),
        ("2.4.0", "USE_SYSTEM_ONNX=1", "ONNX", "libonnx-dev"),
        ("2.4.0", "USE_SYSTEM_SLEEF=1", "SLEEF", "libsleef-dev"),
        ("2.4.0", "USE_SYSTEM_PYBIND11=1", "pybind11", "pybind11-dev"),
        ("2.0.1", "USE_LMDB=1", "LMDB", "liblmdb-dev"),
        ("1.13.1", "USE_ZMQ=1", "ZeroMQ", "libzmq3-dev"),
    ],
)
def test_what_is_not_here_is_told_with_its_package(version: str, word: str, name: str, package: str) -> None:
    (finding,) = told(plan_of(facts(version=version), set=(word,)))
    assert finding.status == "warn" and f"{name} was not found" in finding.text
    assert f"sudo apt install {package}" in finding.fix and "drop USE_" in finding.fix
    assert told(plan_of(facts(name, version=version), set=(word,))) == []
    assert told(plan_of(facts(version=version), set=(word.replace("1", "0").replace("ON", "OFF"),))) == []


def test_all_that_one_switch_needs_is_one_command() -> None:
    (finding,) = told(plan_of(facts("SLEEF", version="2.4.0"), set=("USE_SYSTEM_LIBS=1",)))
    assert "cpuinfo, Gloo, FP16, ONNX and 2 more were not found" in finding.text
    assert "install libcpuinfo-dev libgloo-dev libfp16-dev libonnx-dev" in finding.fix
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


@for_each(CATALOG.linked, lambda row: row.name)
def test_linked_rows(row: LinkedRow) -> None:
    assert row.libraries or row.headers
    assert not row.package or any(each.name == row.package for each in CATALOG.package)
