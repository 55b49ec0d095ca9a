"""Write the CMake file of a reproducible build."""

from __future__ import annotations

from pathlib import Path

from torchbuild_tasks.build.work import Work
from torchbuild_tasks.errors import EnvFileError
from torchbuild_tasks.features.reproducible.choose import FILE, INCLUDE
from torchbuild_tasks.model import BuildPlan
from torchbuild_tasks.system import files

_TEXT = Path(__file__).resolve().parents[2] / "data" / FILE


def write_cmake_file(work: Work) -> Work:
    """Write the file that the plan's variable names."""
    write_cmake(work.plan)
    return work


def write_cmake(plan: BuildPlan) -> None:
    """Write the file that CMake includes after project(Torch); keep an unchanged one."""
    files.state_dir(Path(plan.source))
    path = Path(plan.inputs[f"variable {INCLUDE}"])
    files.write_changed(path, _TEXT.read_bytes(), error=EnvFileError)
