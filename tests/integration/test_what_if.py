"""The simulated schedule against a real Ninja, whose steps sleep; and `plan --what-if` of the sample."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.support.capabilities import POSIX, needs
from tests.support.sample import materialise
from torchbuild_tasks.build.history import read_ninja_log
from torchbuild_tasks.errors import NotBuilt
from torchbuild_tasks.features.whatif.verb import foresee
from torchbuild_tasks.fronts.build_verbs import plan
from torchbuild_tasks.ninja.build_file import BuildFile, parse_build_file
from torchbuild_tasks.ninja.log import last_run
from torchbuild_tasks.ninja.schedule import Job, Machine, simulate
from torchbuild_tasks.ninja.timeline import wall_seconds
from torchbuild_tasks.options import BuildRequest

pytestmark = [
    pytest.mark.integration,
    needs(shutil.which("ninja") is not None, "ninja"),
    needs(POSIX, "sleep and touch"),
]
NOBODY: Any = None  # is told nothing
RULES = """pool links
  depth = 1
rule step
  command = sleep $time && touch $out
rule link
  command = sleep $time && touch $out
  pool = links
"""


def sleeping(build: Path, seed: int) -> BuildFile:
    """A project of 63 steps: generated headers, compiles that mostly wait for them, links in a pool."""
    draw = Random(seed)
    lines = [RULES, *(f"build gen{at}.h: step\n  time = {draw.uniform(0.1, 0.4):.2f}\n" for at in range(3))]
    lines.append("build headers: phony gen0.h gen1.h gen2.h\n")
    for library in range(4):
        objects = [f"x{library}.dir/f{at}.cpp.o" for at in range(14)]
        for name in objects:
            waits = " || headers" if draw.random() < 0.7 else ""
            seconds = min(1.5, draw.lognormvariate(-1.6, 0.8))
            lines.append(f"build {name}: step{waits}\n  time = {seconds:.2f}\n")
        lines.append(f"build lib{library}.so: link {' '.join(objects)}\n  time = 0.30\n")
    lines.append("build all: phony lib0.so lib1.so lib2.so lib3.so\ndefault all\n")
    (build / "build.ninja").write_text("".join(lines), "utf-8")
    return parsed(build)


def parsed(build: Path) -> BuildFile:
    return parse_build_file(lambda name: (build / name).read_text("utf-8"))


@pytest.mark.parametrize(
    ("seed", "jobs"),
    [(1, 8), *(pytest.param(*each, marks=pytest.mark.slow) for each in ((1, 2), (2, 2), (2, 8)))],
)
def test_a_real_ninja_needs_as_long(tmp_path: Path, seed: int, jobs: int) -> None:
    """By what its steps really took: a busy machine starts each a little late, but not in another order."""
    file = sleeping(tmp_path, seed)
    subprocess.run(["ninja", f"-j{jobs}"], cwd=tmp_path, check=True, capture_output=True)
    log = read_ninja_log(tmp_path)
    run = last_run(log)
    assert run is not None
    took = {step.output: step.seconds for step in run.steps}
    order = file.find_needed_edges(file.default)
    edges = [file.edges[index] for index in order]
    at = {edge.outputs[0]: index for index, edge in enumerate(edges)}
    simulated = simulate(
        [
            Job(
                name=edge.outputs[0],
                order=index,
                before=tuple(at[name] for name in edge.inputs if name in at),
                here=took.get(edge.outputs[0], 0.0),
                pool=edge.pool,
                phony=edge.phony,
            )
            for index, edge in zip(order, edges, strict=True)
        ],
        Machine(cores=jobs, jobs=jobs, depths=file.depths, chains=log.version >= 6),
    )
    assert simulated.wall == pytest.approx(wall_seconds(run.steps), rel=0.15)


def test_the_graph_is_the_one_that_ninja_tells(tmp_path: Path) -> None:
    """Held against `ninja -t graph`, where one input and one output are an arrow between two files."""
    file = sleeping(tmp_path, 1)
    told = subprocess.run(
        ["ninja", "-t", "graph"], cwd=tmp_path, check=True, capture_output=True, text=True
    ).stdout
    names = dict(re.findall(r'(?m)^"(\w+)" \[label="(.*)"\]', told))
    made = {names[node] for node in re.findall(r'-> "(\w+)"', told) if node in names}
    assert made and file.outputs == made


# ---------------- of a checkout


def test_of_a_tree_that_was_not_configured_nothing_is_simulated(tmp_path: Path) -> None:
    checkout = materialise(tmp_path / "tree", era="setuptools")
    with pytest.raises(NotBuilt) as caught:
        foresee(BuildRequest(source=str(checkout), what_if="cores=2"), "cores=2")
    assert "no graph of Ninja" in caught.value.what and caught.value.next_step.endswith("build --target c10")


@pytest.mark.parametrize("text", ["include build.ninja\n", "pool links\n  depth = many\n"])
def test_a_damaged_graph_is_reported(tmp_path: Path, text: str) -> None:
    checkout = materialise(tmp_path / "tree", era="setuptools")
    (checkout / "build").mkdir()
    (checkout / "build" / "build.ninja").write_text(text, "utf-8")
    with pytest.raises(NotBuilt, match="no graph of Ninja"):
        foresee(BuildRequest(source=str(checkout)), "cores=2")


def test_of_a_configured_tree_both_builds_are_reported(tmp_path: Path) -> None:
    """Without a log and a history the seconds are those of rows; nothing is run, nothing written."""
    checkout = materialise(tmp_path / "tree", era="setuptools")
    build = checkout / "build"
    build.mkdir()
    sleeping(build, 3)
    before = sorted(checkout.rglob("*"))
    request = BuildRequest(source=str(checkout), what_if="cores=64,cache=0.5,memory=256")
    outcome = plan(request, NOBODY)
    assert "wall time" in outcome.text and "63 by rows" in outcome.text
    assert outcome.value["what_if"].then.hits == 28
    assert list(outcome.value) == ["what_if"]
    assert sorted(checkout.rglob("*")) == before
