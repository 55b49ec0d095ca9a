"""The modules that a plan imports: what only CUDA, Windows or another verb needs is left out."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_layers import PACKAGE, modules, role

pytestmark = pytest.mark.integration

PROGRAM = """
import sys
from tests.support.machines import plan_of
assert plan_of().verdict == "ok"
print(*sys.modules)
"""
OTHERS = (
    "cuda.choose",
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


LOOK_AT_IMPORTS = """
import sys
sys.argv = ["torchbuild", "plan", "--source", sys.argv[1], "--quiet"]
from torchbuild_tasks.fronts.console import main
try:
    main()
except SystemExit:
    pass
sys.stderr.write(" ".join(sorted(name for name in sys.modules if name.startswith("torchbuild_tasks"))))
"""


def test_a_plan_imports_nothing_that_acts_and_few_modules(tmp_path: Path) -> None:
    """`plan` writes nothing, and imports only what it uses."""
    sample = Path(__file__).parents[2] / "samples" / "minitorch"
    argv = [sys.executable, "-c", LOOK_AT_IMPORTS, str(sample)]
    environ = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    ran = subprocess.run(
        argv, capture_output=True, text=True, check=True, cwd=tmp_path, timeout=120, env=environ
    )
    read = ran.stderr.splitlines()[-1].split()
    # Counted as on Windows, wherever this runs: what is read there alone, too.
    there = {
        name for name in modules() if re.fullmatch(r"\w+\.(facts|plan|system)\.(\w+_)?windows(_\w+)?", name)
    }
    assert len(there) > 4
    assert 50 < len({*read, *there}) <= 130
    acts = {modules()[name] for name in read if role(modules()[name]) in ("act", "door")}
    # which build a folder is, and what a looked-at program runs through
    assert acts <= {"features/builds/named_build.py", *(f"system/{name}.py" for name in PLAN_NEEDS)}


PLAN_NEEDS = (
    *("__init__", "files", "git/__init__", "git/guard", "left_running", "lines", "lock"),
    *("process", "process_tree", "reading", "signals", "temporary", "trust"),
    *("windows_job", "windows_memory"),  # on Windows, what process.py ends a tree with, and free memory
)
