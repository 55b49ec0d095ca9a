"""The submodules that a build needs: by setup.py, by rows and by .gitmodules; and the fix."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.for_each import each_case
from tests.support.machines import found, linux_facts, modern_tree, plan_of, statuses, tree, with_tree
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.catalog.source import SubmoduleRow
from torchbuild_tasks.model import Facts, Host, Tool, Tree
from torchbuild_tasks.plan.submodules import fetched_word, find_pins
from torchbuild_tasks.values import replace

ASMJIT = "third_party/fbgemm/third_party/asmjit"
EVERY = tuple(row.path for row in load_catalog().submodule if not row.unused)
CHECKED = (ASMJIT, "third_party/cpuinfo", "third_party/cutlass", "third_party/fbgemm", "third_party/gloo")


def bare(version: str = "2.6.0a0", **changes: Any) -> Facts:
    """An unpacked archive: no git, no .gitmodules, no folder of a submodule."""
    values: dict[str, Any] = {"absent": EVERY, "empty": CHECKED, "checked": CHECKED, **changes}
    return linux_facts(tree=tree(version=version, git=False, commit=None, **values))


def lacks(facts: Facts, **flags: Any) -> str:
    """Return the submodules that the plan reports missing; "" for none."""
    findings = [each for each in plan_of(facts, **flags).findings if each.id == "submodules"]
    return findings[0].text if findings and findings[0].status == "error" else ""


def without(*paths: str, version: str = "2.6.0a0", arch: str = "x86_64", os: str = "linux") -> Facts:
    """An archive that has all folders but these, and a setup.py that asks for none."""
    facts = bare(version, absent=paths, checked=(), empty=())
    return replace(facts, host=Host(os=os, arch=arch))


# ---------------- an archive without any


def test_an_archive_without_submodules_is_refused_with_what_needs_each() -> None:
    text = lacks(bare(), set=("USE_XNNPACK=1",))
    for said in (
        "third_party/fmt",
        "(every build of torch 2.6)",
        "third_party/gloo (setup.py looks there",
        "third_party/ideep (USE_MKLDNN, on by default)",
        "third_party/XNNPACK, third_party/pthreadpool (USE_XNNPACK=1)",
        "third_party/nlohmann",
        "third_party/tensorpipe (USE_DISTRIBUTED and USE_TENSORPIPE, on by default)",
    ):
        assert said in text
    assert "mkl-dnn" not in text  # it lies in ideep
    for gone in ("foxi", "zstd", "eigen-", "googletest", "nccl", "kineto"):
        assert gone not in text


def test_the_sample_has_no_third_party_of_pytorch() -> None:
    assert lacks(bare(sample=True, empty=(), checked=())) == ""


@pytest.mark.parametrize(
    ("version", "has", "has_not"),
    [
        ("1.0.0", ("QNNPACK",), ("foxi", "fmt", "tensorpipe")),
        ("1.4.0", ("foxi",), ("fmt", "XNNPACK")),
        ("2.0.0", ("foxi", "fmt"), ("opentelemetry-cpp", "nlohmann")),
        ("2.4.0", ("opentelemetry-cpp", "cpp-httplib"), ("QNNPACK", "nlohmann")),
        ("2.6.0", ("nlohmann",), ("foxi", "QNNPACK")),
        ("2.15.0", ("fmt", "protobuf"), ("foxi", "psimd", "eigen")),
    ],
)
def test_each_release_has_its_own(version: str, has: tuple[str, ...], has_not: tuple[str, ...]) -> None:
    text = lacks(bare(version, checked=(), empty=()), preset="full") + ","
    assert [name for name in has if f"third_party/{name}" not in text] == []
    assert [name for name in has_not if f"third_party/{name}" in text] == []


# ---------------- by setting


@each_case(
    ("path", "on", "off"),
    [
        ("third_party/ideep", (), ("USE_MKLDNN=0",)),
        ("third_party/ideep/mkl-dnn", ("USE_MKLDNN=1",), ("USE_MKLDNN=0",)),
        ("third_party/kineto", ("USE_KINETO=1",), ()),
        ("third_party/XNNPACK", ("USE_XNNPACK=1",), ("USE_XNNPACK=1", "USE_SYSTEM_XNNPACK=1")),
        ("third_party/tensorpipe", (), ("USE_TENSORPIPE=0",)),
        ("third_party/tensorpipe", (), ("USE_DISTRIBUTED=OFF",)),
        ("third_party/gloo", (), ("USE_GLOO=0",)),
        ("third_party/protobuf", (), ("BUILD_CUSTOM_PROTOBUF=0",)),
        ("third_party/pthreadpool", ("USE_XNNPACK=1",), ()),
        ("third_party/FXdiv", ("USE_PYTORCH_QNNPACK=1",), ()),
        ("third_party/googletest", ("BUILD_TEST=1",), ()),
        ("third_party/sleef", (), ("USE_SYSTEM_LIBS=1",)),
        ("third_party/composable_kernel", ("USE_ROCM=1",), ()),
        ("third_party/nccl/nccl", ("USE_CUDA=1",), ("USE_CUDA=1", "USE_NCCL=0")),
        ("third_party/nccl/nccl", ("USE_CUDA=1",), ("USE_CUDA=1", "USE_SYSTEM_NCCL=1")),
        ("third_party/cutlass", ("USE_CUDA=1",), ()),
        ("third_party/cudnn_frontend", ("USE_CUDA=1", "USE_CUDNN=1"), ("USE_CUDA=1", "USE_CUDNN=0")),
        ("third_party/NVTX", ("USE_CUDA=1",), ("USE_CUDA=1", "USE_SYSTEM_NVTX=1")),
    ],
)
def test_a_setting_decides(path: str, on: tuple[str, ...], off: tuple[str, ...]) -> None:
    assert path in lacks(without(path), set=on)
    assert lacks(without(path), set=off) == ""


def test_the_fix_repeats_the_flags_that_decide_which_are_needed() -> None:
    flags: dict[str, Any] = {"cpu": True, "preset": "minimal", "set": ("USE_GLOO=1", "CXXFLAGS=-O2 -g")}
    facts = linux_facts(tree=modern_tree(empty=("third_party/fmt",)))
    fix = found(plan_of(facts, **flags).findings, "submodules").fix
    assert fix.endswith(' --cpu --preset minimal --set USE_GLOO=1 --set "CXXFLAGS=-O2 -g"')
    inherited = plan_of(facts, **flags, from_environment=("cpu", "preset", "set"))
    assert found(inherited.findings, "submodules").fix.endswith("--source /src/pytorch")


def test_what_a_tree_without_git_lacks_is_known_by_rows_alone() -> None:
    itt = without("third_party/ittapi")
    assert "USE_ITT" in lacks(itt)
    assert lacks(itt, set=("USE_ITT=0",)) == lacks(without("third_party/ittapi", arch="aarch64")) == ""


def test_a_default_depends_on_the_machine() -> None:
    assert lacks(without("third_party/ideep", arch="aarch64")) == ""
    assert "USE_MKLDNN=1" in lacks(without("third_party/ideep", arch="aarch64"), set=("USE_MKLDNN=1",))
    assert lacks(without("third_party/tensorpipe", os="windows")) == ""
    assert "USE_MIMALLOC" in lacks(without("third_party/mimalloc", os="windows"))
    assert lacks(without("third_party/mimalloc")) == ""


# ---------------- what setup.py looks into, whatever is off


def test_what_setup_py_looks_into_is_needed_whatever_is_off() -> None:
    facts = linux_facts(tree=tree(version="2.6.0a0", empty=(ASMJIT,), checked=CHECKED))
    assert ASMJIT in lacks(facts, preset="minimal")
    assert "setup.py looks there" in lacks(facts, set=("USE_FBGEMM=0",))
    assert lacks(facts, set=("USE_SYSTEM_LIBS=1", "USE_FBGEMM=0")) == ""
    inner = "third_party/fbgemm/third_party/googletest"
    other = linux_facts(tree=tree(version="2.6.0a0", empty=(inner,), checked=CHECKED))
    assert statuses(plan_of(other, preset="minimal").findings, "submodules") == ["ok"]


@each_case(
    ("version", "path", "needed"),
    [
        ("2.6.0", ASMJIT, True),
        ("1.13.1", ASMJIT, True),
        ("1.1.0", ASMJIT, False),
        ("2.0.0", "third_party/onnx/third_party/benchmark", True),
        ("2.6.0", "third_party/onnx/third_party/benchmark", False),
        ("2.0.0", "third_party/kineto", True),
        ("1.8.0", "third_party/kineto", False),
        ("1.4.0", "third_party/tbb", True),
    ],
)
def test_rows_know_it_where_setup_py_could_not_be_read(version: str, path: str, needed: bool) -> None:
    facts = linux_facts(tree=tree(version=version, empty=(path,), checked=None))
    assert bool(lacks(facts, preset="minimal")) is needed


def test_the_later_build_system_looks_into_none_of_them() -> None:
    facts = linux_facts(tree=modern_tree(empty=("third_party/fbgemm",)))
    assert statuses(plan_of(facts, set=("USE_FBGEMM=0",)).findings, "submodules") == ["ok"]
    assert lacks(facts, set=("USE_FBGEMM=1",))
    assert "named by .gitmodules" in lacks(linux_facts(tree=modern_tree(empty=("third_party/new",))))


# ---------------- the way out, by what this folder is


@pytest.mark.parametrize(
    ("changes", "fix"),
    [
        ({}, "torchbuild source update --source /src/pytorch"),
        ({"git": False}, "torchbuild source get 2.8.0 --source /src/pytorch-git;"),
        ({"linkless": ("third_party/fmt",)}, "torchbuild source get 2.8.0 --source /src/pytorch-git;"),
        ({"linkless": ("third_party/other",)}, "torchbuild source update --source /src/pytorch"),
        ({"root": "/my src/pytorch"}, 'torchbuild source update --source "/my src/pytorch"'),
        ({"root": "/my src/pt/", "git": False}, 'torchbuild source get 2.8.0 --source "/my src/pt-git";'),
    ],
)
def test_the_fix_is_one_that_works_here(changes: dict[str, Any], fix: str) -> None:
    facts = with_tree(linux_facts(), **{"empty": ("third_party/fmt", "third_party/onnx"), **changes})
    finding = found(plan_of(facts).findings, "submodules")
    assert "third_party/fmt, third_party/onnx" in finding.text
    assert f"{fix} " in f"{finding.fix} "


@pytest.mark.parametrize(
    ("version", "word"),
    [
        ("2.6.0a0", "2.6.0"),
        ("2.6.0", "2.6.0"),
        ("1.13.1", "1.13.1"),
        ("1.4.0a0", "1.4.0"),
        ("2.6.9", "2.6.0"),  # none that is known: the latest of its series
        ("9.1.0a0", "main"),
        (None, "main"),
    ],
)
def test_what_is_got_is_the_torch_that_is_here(version: str | None, word: str) -> None:
    assert fetched_word(Tree(root="/x", version=version), load_catalog()) == word


def test_many_are_counted() -> None:
    names = tuple(f"third_party/m{number}" for number in range(40))
    text = lacks(with_tree(linux_facts(), empty=names))
    assert text.startswith("40 ")
    assert "and 28 more" in text


@each_case("row", [row for row in load_catalog().submodule if row.unused], ids=lambda row: row.path)
def test_what_a_submodule_brings_for_its_own_tests_is_not_asked_for(row: SubmoduleRow) -> None:
    """Rows of outer folders come later: the first that fits counts."""
    inner = f"{row.path}/anything"
    facts = with_tree(linux_facts(), empty=(inner,), checked=())
    assert inner not in lacks(facts, set=("USE_DISTRIBUTED=1", "USE_KINETO=1"), cuda=False)
    outer = "/".join(row.path.split("/")[:2])
    by_path = [each for each in load_catalog().submodule if f"{inner}/".startswith(f"{each.path}/")]
    assert by_path[0] == row
    assert outer in EVERY


def test_without_git_it_is_to_be_installed_first() -> None:
    """A command that needs git cannot be the advice where git is missing."""
    facts = linux_facts(
        tree=tree(empty=("third_party/fmt",)), tools=(Tool(name="git", looked=("/usr/bin",)),)
    )
    fix = found(plan_of(facts).findings, "submodules").fix
    assert fix == "sudo apt install git; then torchbuild source update --source /src/pytorch"


# ---------------- what rows have of a release without git


def test_the_rows_of_a_release_name_each_folder_once_by_a_full_commit() -> None:
    catalog = load_catalog()
    rows = find_pins(catalog, "2.6.0a0")
    assert len(rows) == len([row for row in catalog.pin if row.torch == "2.6.0"]) > 30
    assert all(len(row.commit) == 40 and row.url.startswith("https://") for row in rows.values())
    assert find_pins(catalog, "2.9.1") == {} == find_pins(catalog, None)


def way_out(facts: Facts) -> str:
    """Return the plan's fix."""
    (finding,) = (each for each in plan_of(facts).findings if each.id == "submodules")
    return finding.fix or ""


def test_a_release_with_known_commits_is_completed_in_place_else_fetched_elsewhere() -> None:
    two = ("third_party/fmt", "third_party/onnx")
    facts = without(*two)
    line = f"torchbuild source update --source {facts.tree.root}"
    line = f"get each at the commit that torch 2.6.0 has: {line}"
    assert way_out(facts) == line
    assert "source get 2.9.1" in way_out(without(*two, version="2.9.1"))
    assert "source get 2.6.0" in way_out(without(*two, "third_party/ideep"))


def test_the_sample_is_not_sent_to_pytorchs_sources() -> None:
    facts = linux_facts()
    lost = ("third_party/tinyfmt",)
    facts = replace(facts, tree=replace(facts.tree, sample=True, git=True, empty=lost, linkless=lost))
    assert "Copy the sample anew" in way_out(facts)


def test_a_folder_in_which_setup_py_finds_nothing_is_removed_and_fetched() -> None:
    facts = with_tree(
        linux_facts(), torn=("third_party/pybind11",), checked=("third_party/pybind11",), git=True
    )
    finding = found(plan_of(facts).findings, "submodules")
    assert finding.status == "error" and "setup.py stops" in finding.text
    assert "rm -r" in finding.fix and "torchbuild source update" in finding.fix
    unchecked = plan_of(facts, set=("USE_SYSTEM_LIBS=1",))
    assert not any("setup.py stops" in each.text for each in unchecked.findings)
