"""The sample through the tool: a whole build against by hand."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.measure import Command, pairs, show
from tests.support.sample import materialise


def main(runs: int = 3) -> None:
    """Measure in a copy of the sample, in both eras."""
    for era in ("scikit-build-core", "setuptools"):
        with tempfile.TemporaryDirectory() as scratch:
            tree = materialise(Path(scratch) / "minitorch", era=era)
            # By hand nobody has a cache either: what is compared is the way to the compiler and back.
            argv = (*TOOL, "build", "--source", str(tree), *BASE, "--yes", "--quiet", "--cache", "none")
            tool = Command(argv=argv, cwd=tree)
            subprocess.run([str(word) for word in tool.argv], cwd=tree, check=True, capture_output=True)
            _whole(era, tree, tool, runs)


TOOL = (sys.executable, "-m", "torchbuild_tasks.fronts.console")
# A build makes a venv of its own on it. PATH leads to the environment that we run in: torch would go there.
BASE = ("--python", str(Path(sys.base_prefix, "bin", "python3")))


def environment(tree: Path) -> dict[str, str]:
    """What `. env_set.sh` gives: by hand and through the tool must differ in nothing else."""
    script = '. ./env_set.sh && exec "$0" -c "import json, os; print(json.dumps(dict(os.environ)))"'
    out = subprocess.run(["sh", "-c", script, sys.executable], cwd=tree, check=True, capture_output=True)
    environment: dict[str, str] = json.loads(out.stdout)
    return environment


def _whole(era: str, tree: Path, tool: Command, runs: int) -> None:
    env = environment(tree)

    def scratch_build() -> None:
        shutil.rmtree(tree / "build")

    hand = Command(
        argv=by_hand(era, next(tree.glob(".torchbuild/venv-*/bin/python"))),
        cwd=tree,
        env=env,
        before=scratch_build,
    )

    def verification() -> float:
        """Seconds that the tool spent on what a build by hand does not do."""
        record = json.loads((tree / "build/torchbuild-manifest.json").read_text("utf-8"))
        return float(sum(stage["seconds"] for stage in record["stages"] if stage["stage"] == "verify"))

    through = Command(argv=tool.argv, cwd=tree, before=scratch_build, discount=verification)
    costs = pairs(through, hand, runs)
    title = f"whole sample build, {era}, wall without the verification"
    show(title, through, hand, [a.wall / b.wall for a, b in costs], "<= 1.05")


def by_hand(era: str, python: Path) -> tuple[str, ...]:
    """The command of PyTorch's own documentation."""
    if era == "setuptools":
        return (str(python), "setup.py", "develop")
    return (str(python), "-m", "pip", "install", "--no-build-isolation", "-v", "-e", ".")
