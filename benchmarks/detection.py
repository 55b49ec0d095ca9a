"""Looking at a whole machine: CUDA's part of it, against the start of a Python that does nothing."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from benchmarks.measure import Command, pairs, show

GOAL = 0.5  # seconds; detection without a driver

LOOK = """\
import os
from torchbuild_tasks.facts.gather import look_at_cuda
from torchbuild_tasks.facts.probe import Probe
print(look_at_cuda(Probe(environ=dict(os.environ)), asked=None, store=None).probes)
"""
GATHER = """\
import sys
from torchbuild_tasks.facts.gather import gather
gather(source={source!r}, python=sys.executable, patterns=["USE_*"])
"""


def main(runs: int = 15) -> None:
    """Measure the look at CUDA alone, then all facts of an empty checkout."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        nothing = Command(argv=(sys.executable, "-c", "pass"), cwd=folder)
        # The package need not be installed to be measured: the checkout is enough.
        env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
        for title, code in (("cuda", LOOK), ("everything", GATHER.format(source=scratch))):
            script = folder / f"look_at_{title}.py"
            script.write_text(code, "utf-8")
            look = Command(argv=(sys.executable, script.name), cwd=folder, env=env)
            costs = pairs(look, nothing, runs)
            ratios = [one.wall / other.wall for one, other in costs]
            show(f"detection, {title}, wall", look, nothing, ratios, "none: see the seconds")
            seconds = [one.wall for one, _ in costs]
            show(f"detection, {title}, wall", look, nothing, seconds, f"<= {GOAL} without a driver", "s")
