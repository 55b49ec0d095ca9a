"""The inner loop: nothing to do, and one edited .cpp to an importable torch, against upstream's own way.

With TORCHBUILD_BENCH_SETTINGS=torchbuild.toml also on that checkout, which must have been built.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path

from benchmarks.measure import Command, pairs, run, show
from benchmarks.sample import TOOL, by_hand, environment
from tests.support.sample import materialise

SOURCES = ("aten/src/ATen/native/Linear.cpp", "aten/src/ATen/relu.cpp")


def main(runs: int = 5) -> None:
    """Measure on copies of the sample in both eras, and on a real checkout where one is named."""
    for era in ("scikit-build-core", "setuptools"):
        with tempfile.TemporaryDirectory() as scratch:
            tree = materialise(Path(scratch) / "minitorch", era=era)
            argv = (*TOOL, "build", "--source", str(tree), "--yes", "--quiet")
            subprocess.run(argv, cwd=tree, check=True, capture_output=True)
            python = next(tree.glob(".torchbuild/venv-*/bin/python"))
            _measure(f"sample, {era}", tree, Command(argv=argv, cwd=tree), by_hand(era, python), runs)
    if settings := os.environ.get("TORCHBUILD_BENCH_SETTINGS"):
        said = tomllib.loads(Path(settings).read_text("utf-8"))
        tree, python = Path(said["source"]), Path(said["python"])
        tool = Command(argv=(*TOOL, "build", "--config", settings, "--quiet"), cwd=tree)
        hand = by_hand("setuptools" if (tree / "setup.py").exists() else "", python)
        _measure(f"{tree.name}", tree, tool, hand, runs)


def _measure(what: str, tree: Path, tool: Command, by_hand: tuple[str, ...], runs: int) -> None:
    env = environment(tree)
    ninja = Command(argv=("ninja", "-C", "build"), cwd=tree, env=env)
    upstream = Command(argv=by_hand, cwd=tree, env=env)
    subprocess.run([str(word) for word in tool.argv], cwd=tree, check=True, capture_output=True)
    costs = pairs(tool, ninja, runs)
    show(f"no-op, {what}, wall over ninja", tool, ninja, [a.wall - b.wall for a, b in costs], "<= 0.5", "s")
    _no_op_of_upstream(what, tool, upstream, runs)
    source = next(tree / name for name in SOURCES if (tree / name).exists())
    before, edit = source.read_text("utf-8"), _editor(source)
    try:
        script = 'cd "$0" && "$@" && cd / && "$PYTHON" -I -c "import torch"'
        hand = Command(
            argv=("sh", "-c", script, str(tree), *by_hand),
            cwd=tree,
            env={**env, "PYTHON": by_hand[0]},
            before=edit,
        )
        edited = Command(argv=tool.argv, cwd=tree, before=edit)
        costs = pairs(edited, hand, max(2, runs // 2))
        show(
            f"one .cpp edited to importable, {what}, wall",
            edited,
            hand,
            [a.wall / b.wall for a, b in costs],
            "< 1",
        )
        bare = Command(argv=("ninja", "-C", "build", "install"), cwd=tree, env=env, before=edit)
        costs = pairs(edited, bare, max(2, runs // 2))
        over = [a.wall - b.wall for a, b in costs]
        show(f"the same, {what}, wall over ninja install", edited, bare, over, "", "s")
    finally:
        source.write_text(before, "utf-8")


def _no_op_of_upstream(what: str, tool: Command, upstream: Command, runs: int) -> None:
    """Turn by turn would never be a no-op for us: what the front end rewrites is looked at."""
    run(upstream)
    theirs = [run(upstream).wall for _ in range(runs)]
    run(tool)
    ours = [run(tool).wall for _ in range(runs)]
    ratios = [a / b for a, b in zip(sorted(theirs), sorted(ours), strict=True)]
    show(f"no-op, {what}, upstream's wall to ours, sorted", upstream, tool, ratios, ">= 5")


def _editor(source: Path) -> Callable[[], None]:
    counter = itertools.count()

    def edit() -> None:
        with source.open("a", encoding="utf-8") as file:
            file.write(f"\nint edited_{os.getpid()}_{next(counter)}() {{ return 1; }}\n")

    return edit
