"""Machines that once were planned for: a `doctor --json` or an archive of `support` is a test here.

Every dump must decode, be planned for and come back equal. What a plan of one of them has
to say stands below under the dump's name.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path, PureWindowsPath
from typing import Any

import pytest

from tests.support.machines import found, plan_of, statuses
from torchbuild_tasks.context import SUPPORT_FACTS, look, read_facts
from torchbuild_tasks.flow import preview_build
from torchbuild_tasks.model import BuildPlan, Facts
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.values import dumps, from_json, replace, to_json

pytestmark = pytest.mark.one_system

HERE = Path(__file__).parent
DUMPS = sorted([*HERE.glob("*.json"), *HERE.glob("*.zip")])


def read(path: Path) -> Facts:
    return read_facts(path)


def plan_for(name: str, **flags: Any) -> BuildPlan:
    return plan_of(read(Path(__file__).with_name(f"{name}.json")), **flags)


def installs(plan: BuildPlan) -> str:
    return " ".join(plan.environment.install.argv) if plan.environment.install else ""


def test_there_are_dumps() -> None:
    assert len(DUMPS) >= 5


@pytest.mark.parametrize("mode", ["develop", "wheel"])
@pytest.mark.parametrize("path", DUMPS, ids=lambda path: path.stem)
def test_every_dump_is_planned_for(path: Path, mode: str) -> None:
    facts = read(path)
    plan = plan_of(facts, mode=mode, env_shell="all")
    errors = [finding for finding in plan.findings if finding.status == "error"]
    assert (plan.verdict == "refuse") == bool(errors)
    assert all(finding.fix for finding in errors)
    assert plan.choices
    assert from_json(BuildPlan, json.loads(dumps(plan))) == plan


@pytest.mark.parametrize("path", DUMPS, ids=lambda path: path.stem)
def test_every_dump_comes_back_complete(path: Path) -> None:
    """Nothing of it is lost or changed; fields that were added since have their defaults."""
    data = raw(path)
    assert holds(to_json(read(path)), data.get("facts", data))


def raw(path: Path) -> Any:
    if path.suffix == ".json":
        return json.loads(path.read_text("utf-8"))
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read(SUPPORT_FACTS))


def holds(whole: Any, part: Any) -> bool:
    """Whether everything of `part` stands in `whole` at the same place."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(k in whole and holds(whole[k], v) for k, v in part.items())
    if isinstance(part, list):
        return len(whole) == len(part) and all(map(holds, whole, part))
    return bool(whole == part)


def test_a_jetson_is_short_of_memory_and_of_a_new_cmake() -> None:
    plan = plan_for("jetson-orin-nano")
    chosen = {choice.name: choice for choice in plan.choices}
    assert plan.verdict == "ok"
    assert chosen["jobs"].value == "2"
    assert (chosen["USE_NCCL"].value, chosen["USE_NCCL"].source) == ("0", "environment")
    assert "3.22.1" in found(plan.findings, "cmake").text
    assert "cmake>=3.27" in installs(plan)
    assert "ninja" in installs(plan)
    assert plan.environment.create is not None
    assert plan.compile.argv[1:] == ("setup.py", "develop")


def test_a_container_is_limited_by_its_cgroup() -> None:
    plan = plan_for("container-cgroup")
    chosen = {choice.name: choice for choice in plan.choices}
    assert (chosen["jobs"].value, chosen["jobs"].source) == ("1", "environment")
    assert chosen["CXX"].value == "/usr/bin/g++"
    assert chosen["CC"].value == "/usr/bin/gcc"
    assert (plan.environment.python, plan.environment.install) == ("/opt/venv/bin/python", None)
    assert plan.build_dir == "/home/ci/pytorch/build"
    assert [op.op for op in plan.env if op.name == "USE_NIGHTLY"] == ["unset"]
    assert plan.verdict == "warn"


def test_a_container_without_max_jobs_reckons_with_its_cgroup() -> None:
    facts = read(Path(__file__).with_name("container-cgroup.json"))
    (jobs,) = [c for c in plan_of(replace(facts, environ={})).choices if c.name == "jobs"]
    assert jobs.value == "1"
    assert "/sys/fs/cgroup/memory.max" in jobs.because
    assert "/sys/fs/cgroup/cpu.max" in jobs.because


def test_a_bare_debian_gets_all_findings_at_once() -> None:
    plan = plan_for("debian-bare")
    assert plan.verdict == "refuse"
    assert "python3.13-dev" in found(plan.findings, "python-headers").fix
    assert "python3.13-venv" in found(plan.findings, "python-venv").fix
    assert "torchbuild source get" in found(plan.findings, "submodules").fix
    assert {"cmake>=3.27", "ninja"} <= set(installs(plan).split())
    assert statuses(plan.findings, "python") == ["ok"]


def test_a_windows_machine_is_planned_for_in_its_own_style() -> None:
    plan = plan_for("windows-11")
    root = PureWindowsPath("C:/Users/Ada Lovelace/src/pytorch")
    assert plan.env_files[0].path == str(root / "env_set.bat")
    assert plan.environment.python == str(root / ".torchbuild" / "venv-3.12" / "Scripts" / "python.exe")
    assert plan.build_dir == str(root / "build")
    path, *helpers = [op.value for op in plan.env if op.op == "prepend"]
    assert PureWindowsPath(path) == PureWindowsPath(plan.environment.python).parent
    assert all(PureWindowsPath(folder).is_absolute() and "/" not in folder for folder in helpers)
    assert plan.compile.argv[1:4] == ("-m", "pip", "install")


def test_a_data_centre_gpu_is_built_for() -> None:
    """The image's own TORCH_CUDA_ARCH_LIST counts; without it the GPU decides."""
    facts = read(Path(__file__).with_name("ubuntu-h200.json"))
    plan = plan_of(facts, cuda=True)
    chosen = {choice.name: choice for choice in plan.choices}
    assert plan.verdict == "ok"
    assert (chosen["TORCH_CUDA_ARCH_LIST"].value, chosen["TORCH_CUDA_ARCH_LIST"].source) == (
        "9.0a",
        "environment",
    )
    assert chosen["CUDA toolkit"].value == "/usr/local/cuda-13.0"
    assert chosen["CUDNN_LIBRARY"].value == "/usr/lib/x86_64-linux-gnu", "not that of a torch in some venv"
    own = plan_of(replace(facts, environ={}), cuda=True)
    (arch,) = [choice for choice in own.choices if choice.name == "TORCH_CUDA_ARCH_LIST"]
    assert (arch.value, arch.because) == ("9.0", "the GPUs that are here: NVIDIA H200 (9.0)")


def test_another_machine_is_planned_for_with_the_checkout_of_here(tmp_path: Path) -> None:
    """How one plans for a colleague: the machine from the dump, the tree from --source."""
    root = tmp_path / "pt"
    for name, text in {
        "torch/__init__.py": "",
        "c10/x.h": "",
        "CMakeLists.txt": "project(Torch)\n",
        "setup.py": "",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, "utf-8")
    (root / "version.txt").write_text("2.6.0a0\n", "utf-8")
    dump = str(HERE / "windows-11.json")
    facts = look(BuildRequest(facts=dump, source=str(root))).facts
    assert (facts.host.os, facts.tree.version) == ("windows", "2.6.0a0")
    assert (facts.tree.root, facts.tree.previous) == (str(root.resolve()), None)
    plan = preview_build(BuildRequest(facts=dump, source=str(root)))
    (said,) = (each.text for each in plan.findings if each.id == "facts")
    assert dump in said and "paths are those of this machine" in said
    assert preview_build(BuildRequest(facts=dump, source=str(tmp_path / "no"))).verdict == "refuse"
    there = preview_build(BuildRequest(facts=dump))
    (source,) = (each for each in there.choices if each.name == "source")
    assert source.value == read(Path(dump)).tree.root
    assert source.source == "default" and dump in source.because
