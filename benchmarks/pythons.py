"""Wheels for several Pythons: one build tree through the tool, against a build from nothing for each by hand.

The Pythons are those of pyenv from 3.11 on, or of TORCHBUILD_BENCH_PYTHONS (paths with commas between).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from benchmarks.measure import Command, run, show
from benchmarks.sample import TOOL, environment
from tests.support.sample import materialise

# Also by hand each wheel is tried where nothing of its build is.
SCRIPT = """
set -e
for venv in .torchbuild/venv-*; do
  rm -rf build dist
  PATH="$PWD/$venv/bin:$PATH" "$venv/bin/python" "$@"
  "$venv/bin/python" -m venv --clear "$SCRATCH/clean"
  "$SCRATCH/clean/bin/python" -m pip install --quiet dist/*.whl
  (cd / && "$SCRATCH/clean/bin/python" -I -c 'import torch')
done
"""


def main(runs: int = 1) -> None:
    """Measure on copies of the sample in both eras."""
    pythons = _pythons()
    if len(pythons) < 2:
        raise SystemExit("two Pythons from 3.11 on are needed: TORCHBUILD_BENCH_PYTHONS=A,B")
    for era in ("scikit-build-core", "setuptools"):
        with tempfile.TemporaryDirectory() as scratch:
            _measure(era, materialise(Path(scratch) / "minitorch", era=era), pythons, runs)


def _pythons() -> list[str]:
    if said := os.environ.get("TORCHBUILD_BENCH_PYTHONS"):
        return said.split(",")
    return [str(path) for path in sorted(Path.home().glob(".pyenv/versions/3.1[1-9]*/bin/python"))]


def _measure(era: str, tree: Path, pythons: list[str], runs: int) -> None:
    wheel = ("--mode", "wheel", "--python", ",".join(pythons), "--cache", "none", "--yes", "--quiet")

    def afresh() -> None:
        shutil.rmtree(tree / "build", ignore_errors=True)
        shutil.rmtree(tree / "dist", ignore_errors=True)

    tool = Command(argv=(*TOOL, "build", "--source", str(tree), *wheel), cwd=tree, before=afresh)
    subprocess.run([str(word) for word in tool.argv], cwd=tree, check=True, capture_output=True)  # the venvs
    words = (
        ("setup.py", "bdist_wheel") if era == "setuptools" else ("-m", "build", "--wheel", "--no-isolation")
    )
    env = {**environment(tree), "SCRATCH": str(tree.parent)}
    hand = Command(argv=("sh", "-c", SCRIPT, "sh", *words), cwd=tree, env=env)
    costs = [(run(tool), run(hand)) for _ in range(runs)]
    title = f"wheels for {len(pythons)} Pythons, {era}, to a build for each by hand"
    show(f"{title}, wall", tool, hand, [ours.wall / theirs.wall for ours, theirs in costs], "< 1")
    show(f"{title}, CPU", tool, hand, [ours.cpu / theirs.cpu for ours, theirs in costs], "< 1")
