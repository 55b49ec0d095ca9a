"""The inner loop: nothing to do, and one edited .cpp to an importable torch, against upstream's own way.

With TORCHBUILD_BENCH_SETTINGS=torchbuild.toml also on that checkout, which must have been built.
"""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path

from benchmarks.measure import Command, pairs, run, show
from benchmarks.sample import BASE, TOOL, by_hand, environment
from benchmarks.startup import OUR_NOXFILE, OUR_TASKS
from tests.support.sample import Era, materialise, run_git

SOURCES = (
    *("aten/src/ATen/native/Linear.cpp", "aten/src/ATen/native/Activation.cpp"),
    *("aten/src/ATen/relu.cpp", "torch/csrc/Tensor.cpp"),
)


def main(runs: int = 5) -> None:
    """Measure on copies of the sample in both eras, and on a real checkout where one is named."""
    eras: tuple[Era, ...] = ("scikit-build-core", "setuptools")
    for era in eras:
        with tempfile.TemporaryDirectory() as scratch:
            tree = materialise(Path(scratch) / "minitorch", era=era)
            argv = (*TOOL, "build", "--source", str(tree), *BASE, "--yes", "--quiet")
            subprocess.run(argv, cwd=tree, check=True, capture_output=True)
            python = next(tree.glob(".torchbuild/venv-*/bin/python"))
            _measure(f"sample, {era}", tree, Command(argv=argv, cwd=tree), by_hand(era, python), runs)
            _fronts(f"sample, {era}", tree, argv[len(TOOL) + 1 :], runs)
        with tempfile.TemporaryDirectory() as scratch:
            _overlay(era, materialise(Path(scratch) / "minitorch", era=era, git=True), min(runs, 3))
    if settings := os.environ.get("TORCHBUILD_BENCH_SETTINGS"):
        said = tomllib.loads(Path(settings).read_text("utf-8"))
        tree, python = Path(said["source"]), Path(said["python"])
        tool = Command(argv=(*TOOL, "build", "--config", settings, "--quiet"), cwd=tree)
        hand = by_hand("setuptools" if (tree / "setup.py").exists() else "", python)
        _measure(f"{tree.name}", tree, tool, hand, min(runs, 3))


def _measure(what: str, tree: Path, tool: Command, by_hand: tuple[str, ...], runs: int) -> None:
    env = environment(tree)
    ninja = Command(argv=("ninja", "-C", "build"), cwd=tree, env=env)
    upstream = Command(argv=by_hand, cwd=tree, env=env)
    subprocess.run([str(word) for word in tool.argv], cwd=tree, check=True, capture_output=True)
    costs = pairs(tool, ninja, runs)
    show(f"no-op, {what}, wall over ninja", tool, ninja, [a.wall - b.wall for a, b in costs], "<= 0.35", "s")
    show(f"no-op, {what}, CPU over ninja", tool, ninja, [a.cpu - b.cpu for a, b in costs], "", "s")
    _no_op_of_upstream(what, tool, upstream, runs)
    sources = [tree / name for name in SOURCES if (tree / name).exists()]
    _edited("one .cpp", sources[:1], what, tree, tool, by_hand, env, runs)
    if len(sources) > 1:
        _edited("two .cpp", sources[:2], what, tree, tool, by_hand, env, runs)


def _fronts(what: str, tree: Path, words: tuple[str, ...], runs: int) -> None:
    """Measure what each runner adds to the same build with nothing to do."""
    (tree.parent / "tasks.py").write_text(OUR_TASKS, "utf-8")
    (tree.parent / "noxfile.py").write_text(OUR_NOXFILE, "utf-8")
    tool = Command(argv=(*TOOL, "build", *words), cwd=tree.parent)
    for runner, before in (("invoke", ("build",)), ("nox", ("-s", "build", "--"))):
        front = Command(argv=(sys.executable, "-m", runner, *before, *words), cwd=tree.parent)
        costs = pairs(front, tool, runs)
        title = f"no-op, {what}, CPU of {runner} over torchbuild"
        show(title, front, tool, [a.cpu - b.cpu for a, b in costs], "", "s")


def _overlay(era: Era, tree: Path, runs: int) -> None:
    """Measure a fresh checkout to an importable torch: the wheel of its commit laid over it, or a build."""
    whole = (*TOOL, "build", "--source", str(tree), *BASE, "--yes", "--quiet", "--cache", "none")
    subprocess.run((*whole, "--mode", "wheel"), cwd=tree, check=True, capture_output=True)
    (built,) = (tree / "dist").glob("*.whl")
    wheel = Path(shutil.copy(built, tree.parent))

    def afresh() -> None:  # all but the venv, which both would make
        run_git(tree, "clean", "-qdfx", "--exclude=.torchbuild/venv-*")

    over = Command(argv=(*whole, "--from-wheel", str(wheel)), cwd=tree, before=afresh)
    compiled = Command(argv=whole, cwd=tree, before=afresh)
    costs = [(run(over), run(compiled)) for _ in range(runs)]
    title = f"fresh checkout to importable, sample, {era}, wheel laid over it to a whole build"
    show(f"{title}, wall", over, compiled, [a.wall / b.wall for a, b in costs], "< 1")
    show(f"{title}, CPU", over, compiled, [a.cpu / b.cpu for a, b in costs], "< 1")


def _edited(
    edited_files: str,
    sources: list[Path],
    what: str,
    tree: Path,
    tool: Command,
    by_hand: tuple[str, ...],
    env: dict[str, str],
    runs: int,
) -> None:
    """Measure from edited files to a torch that imports."""
    ninja = ("ninja", "-C", "build", "install")
    before, editors = [path.read_text("utf-8") for path in sources], [_editor(path) for path in sources]

    def edit() -> None:
        for each in editors:
            each()

    try:
        script = 'cd "$0" && "$@" && cd / && "$PYTHON" -I -c "import torch"'
        hand = Command(
            argv=("sh", "-c", script, str(tree), *by_hand),
            cwd=tree,
            env={**env, "PYTHON": by_hand[0]},
            before=edit,
        )
        edited = Command(argv=tool.argv, cwd=tree, before=edit)
        bare = Command(argv=ninja, cwd=tree, env=env, before=edit)
        walls = [(run(edited).wall, run(hand).wall, run(tool).wall, run(bare).wall) for _ in range(runs)]
        title = f"{edited_files} edited to importable, {what}, wall"
        show(title, edited, hand, [ours / theirs for ours, theirs, _, _ in walls], "< 1")
        over = [ours - alone for ours, _, _, alone in walls]
        show(f"the same, {what}, over ninja install", edited, bare, over, "", "s")
        run(tool)
    finally:
        for path, text in zip(sources, before, strict=True):
            path.write_text(text, "utf-8")


def _no_op_of_upstream(what: str, tool: Command, upstream: Command, runs: int) -> None:
    """Turn by turn would never be a no-op for us: what the front end rewrites is looked at."""
    run(upstream)
    theirs = [run(upstream) for _ in range(runs)]
    run(tool)
    ours = [run(tool) for _ in range(runs)]
    for part, goal in (("wall", ">= 5"), ("cpu", "")):
        their, our = (sorted(getattr(cost, part) for cost in costs) for costs in (theirs, ours))
        ratios = [a / b for a, b in zip(their, our, strict=True)]
        show(f"no-op, {what}, {part} of upstream to ours, each sorted", upstream, tool, ratios, goal)


def _editor(source: Path) -> Callable[[], None]:
    counter = itertools.count()

    def edit() -> None:
        with source.open("a", encoding="utf-8") as file:
            file.write(f"\nint edited_{os.getpid()}_{next(counter)}() {{ return 1; }}\n")

    return edit
