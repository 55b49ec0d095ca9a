"""Complete plans of CUDA builds for Windows and for Jetson boards."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support import jetsons
from tests.support.cuda import cuda_facts, driver, gpu, toolkit
from tests.support.machines import found, modern_tree, plan_of, statuses, tree
from tests.support.windows import ROOT, toolset, windows, windows_facts
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.catalog.templates import load_templates
from torchbuild_tasks.model import BuildPlan, Cuda, Facts
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.plan.env_files import encode
from torchbuild_tasks.plan.make import make_plan
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.values import replace

GOLDEN = Path(__file__).parent / "golden"
PROGRAMS = r"C:\Program Files\NVIDIA GPU Computing Toolkit\CUDA"


def env(plan: BuildPlan) -> dict[str, str]:
    return {op.name: op.value for op in plan.env if op.op == "set"}


def windows_machine(version: str = "12.4", era: str = "setuptools") -> Facts:
    """Windows 11 with a GPU of 8.6, one CUDA toolkit, and the toolsets 14.44 and 14.38."""
    root = rf"{PROGRAMS}\v{version}"
    made = toolkit(
        version,
        path=root,
        found_via="CUDA_PATH",
        nvcc=rf"{root}\bin\nvcc.exe",
        libraries=rf"{root}\lib\x64",
        cuobjdump=rf"{root}\bin\cuobjdump.exe",
    )
    seen = Cuda(toolkits=(made,), gpus=(gpu(),), driver=driver("581.15"))
    checkout = tree(root=ROOT, build_dir=rf"{ROOT}\build", version="2.6.0")
    if era != "setuptools":
        checkout = modern_tree(root=ROOT, build_dir=rf"{ROOT}\build")
    sets = windows(toolset("14.44.35207", msc_ver=1944), toolset("14.38.33130", msc_ver=1938))
    return windows_facts(cuda=seen, tree=checkout, windows=sets)


@pytest.mark.parametrize(("era", "version"), [("setuptools", "12.4"), ("scikit-build-core", "13.0")])
def test_the_env_file_of_a_cuda_build_on_windows(era: str, version: str) -> None:
    """Golden; TORCHBUILD_UPDATE_GOLDEN=1 writes it again, and the difference is read before it is kept."""
    plan = make_plan(
        Question(BuildRequest(cuda=True, jobs=6), windows_machine(version, era), load_catalog()),
        templates=load_templates(),
        writer="torchbuild_tasks 0.1.0",
    )
    assert plan.verdict != "refuse", [f.text for f in plan.findings if f.status == "error"]
    (file,) = plan.env_files
    data = encode(file.shell, file.text)
    golden = GOLDEN / f"cuda-{era}.bat"
    if os.environ.get("TORCHBUILD_UPDATE_GOLDEN") == "1":
        golden.write_bytes(data)
    assert data == golden.read_bytes()


def test_the_toolset_is_one_that_nvcc_takes() -> None:
    made = plan_of(windows_machine("12.3"), cuda=True)
    assert env(made)["CUDAHOSTCXX"].split("\\")[-5] == "14.38.33130"
    limited = windows_machine("12.4")
    assert limited.cuda
    narrow = replace(limited.cuda.toolkits[0], msc=(1910, 1940))
    facts = replace(limited, cuda=replace(limited.cuda, toolkits=(narrow,)))
    (choice,) = [c for c in plan_of(facts, cuda=True).choices if c.name == "toolset"]
    assert choice.value == "14.38.33130"
    assert "takes _MSC_VER 1910 to 1939, and it has 1944" in choice.because


@pytest.mark.parametrize(
    ("board", "arch", "patches"),
    [
        ("tx2", "6.2", ["launch-bounds"]),
        ("nano", "5.3", ["launch-bounds"]),
        ("xavier_nx", "7.2", []),
        ("orin_nano", "8.7", []),
        ("thor", "11.0", []),
    ],
)
def test_a_jetson(board: str, arch: str, patches: list[str]) -> None:
    plan = plan_of(getattr(jetsons, board)(), cuda=True, preset="jetson")
    values = env(plan)
    assert values["TORCH_CUDA_ARCH_LIST"] == arch
    assert [patch.id for patch in plan.patches] == patches
    assert values["USE_MAGMA"] == "0"
    assert ("USE_NCCL" not in values) == (board == "thor")
    assert "ok" in statuses(plan.findings, "jetson")


def test_a_tx2_has_its_cudnn_where_debian_packages_put_it() -> None:
    values = env(plan_of(jetsons.tx2(), cuda=True, preset="jetson"))
    assert values["CUDNN_INCLUDE_DIR"] == "/usr/include"
    assert values["CUDNN_LIBRARY"].startswith("/usr/lib/aarch64-linux-gnu")


def test_patches_can_be_left_out() -> None:
    assert plan_of(jetsons.tx2(), cuda=True, no_patches=True).patches == ()


def test_wheels_made_for_servers_are_not_advised_on_a_board() -> None:
    facts = jetsons.xavier_nx()
    assert facts.cuda
    bare = replace(facts, cuda=replace(facts.cuda, toolkits=()))
    finding = found(plan_of(bare, cuda=True).findings, "cuda-toolkit")
    assert finding.status == "error"
    assert "nvidia-jetpack" in finding.fix
    assert "pypi:" not in finding.fix


@pytest.mark.parametrize("capability", ["5.2", "6.1", "7.0"])
def test_a_gpu_that_the_binaries_left_out_is_built_for(capability: str) -> None:
    """From 2.15 on they begin with 7.5; what the plan of CUDA 13 advises makes it one that can work."""
    tree = modern_tree(version="2.15.0a0")
    facts = cuda_facts(toolkit("13.0"), gpus=(gpu(capability),), tree=tree)
    plan = plan_of(facts, cuda=True, preset="old-gpu")
    assert plan.verdict == "refuse"
    assert "--preset old-gpu" in found(plan.findings, "gpu").text
    older = plan_of(
        replace(facts, cuda=cuda_facts(toolkit("12.8"), gpus=(gpu(capability),)).cuda),
        cuda=True,
        preset="old-gpu",
    )
    assert older.verdict != "refuse"
    choices = {choice.name: choice.value for choice in older.choices}
    assert (choices["TORCH_CUDA_ARCH_LIST"], choices["USE_FLASH_ATTENTION"]) == (capability, "0")
