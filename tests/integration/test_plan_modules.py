"""The modules that a plan imports: what only CUDA, Windows or another verb needs is left out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration

PROGRAM = """
import sys
from tests.support.machines import plan_of
assert plan_of().verdict == "ok"
print(*sys.modules)
"""
OTHERS = (
    "cuda.choices",
    "cuda.toolkit",
    "cuda.archs",
    "cuda.devices",
    "cuda.managed",
    "cuda.variables",
    "jetson",
    "preflight",
    "windows",
    "versions",
    "pins",
)


def test_a_cpu_plan_on_linux_imports_nothing_about_cuda_or_windows() -> None:
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True, timeout=120)
    imported = set(done.stdout.split())
    assert "torchbuild_tasks.plan.decisions" in imported
    assert not imported & {f"torchbuild_tasks.plan.{name}" for name in OTHERS}
