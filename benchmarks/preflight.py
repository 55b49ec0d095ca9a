"""The pre-flight in seconds, and its CPU against compiling its kernel once; with ccache, empty and filled."""

from __future__ import annotations

import functools
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.archs import architectures
from benchmarks.measure import Command, pairs, show
from tests.support.preflight import CXX, NVCC, planned

GOAL = "< 30"  # seconds
OURS = """
import sys
from pathlib import Path
from tests.support.preflight import planned, run
cxx, nvcc, cache, *archs = sys.argv[1:]
what = planned(cxx=cxx, nvcc=nvcc, host=cxx, archs=tuple(archs), launcher=cache, cuda_launcher=cache)
run(Path("tree"), what)
"""


def main(runs: int = 5) -> None:
    """Measure one and six architectures, without a cache and with one."""
    if not (NVCC and CXX):
        print("preflight: no nvcc and C++ compiler here")
        return
    entries = [f"{number[:-1]}.{number[-1]}" for number in architectures()[:6]]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "tree").mkdir()
        for archs in (entries[:1], entries):
            _measure(folder, f"pre-flight, {len(archs)} architectures", archs, runs)
        if shutil.which("ccache"):
            empty = functools.partial(shutil.rmtree, folder / "cache", ignore_errors=True)
            _measure(folder, "pre-flight with ccache, empty", entries[:1], runs, empty)
            _measure(folder, "pre-flight with ccache, filled", entries[:1], runs, lambda: None)


def _measure(
    folder: Path, title: str, archs: list[str], runs: int, before: Callable[[], None] | None = None
) -> None:
    launcher = "ccache" if before else ""
    env = {**os.environ, "PYTHONPATH": str(Path.cwd()), "CCACHE_DIR": str(folder / "cache")}
    argv = (sys.executable, "-c", OURS, CXX, NVCC, launcher, *archs)
    ours = Command(argv=argv, cwd=folder, env=env, before=before or (lambda: None))
    what = planned(cxx=CXX, nvcc=NVCC, host=CXX, archs=tuple(archs))
    for name, text in what.sources.items():
        (folder / name).write_text(text, "utf-8")
    kernel = Command(argv=what.trials[1].argv, cwd=folder)
    costs = pairs(ours, kernel, runs)
    show(f"{title}, wall", ours, kernel, [a.wall for a, _ in costs], GOAL, "s")
    show(f"{title}, CPU", ours, kernel, [a.cpu / b.cpu for a, b in costs], "none")
