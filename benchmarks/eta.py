"""The time left against what was left: this tool's and Ninja's own reckoning, over the same replayed log.

`nox -s bench -- eta` builds a tree whose steps sleep, and the sample, each twice with other costs the
second time, and replays the second log with the first as history. With `TORCHBUILD_NINJA_LOGS=OLD,NEW` it
replays the logs of real builds instead: each with the history of those before it, and the first one with
histories that are off by what is said, as on another day, and as a compiler cache would have answered it.
"""

from __future__ import annotations

import heapq
import math
import os
import random
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from benchmarks.measure import note
from benchmarks.sample import BASE, TOOL
from tests.support.sample import materialise
from torchbuild_tasks.build.history import ninja_graph
from torchbuild_tasks.model.history import History, PastBuild
from torchbuild_tasks.ninja.build_file import BuildFile
from torchbuild_tasks.ninja.log import Step, kind_of, parse_ninja_log
from torchbuild_tasks.ninja.progress import eta
from torchbuild_tasks.ninja.step_times import CACHEABLE, TOO_SHORT, remember
from torchbuild_tasks.ninja.time_left import TimeLeft
from torchbuild_tasks.values import replace

GOAL = "<= 15"
JOBS = 2
# Up to four seconds for each compile, by its words; the second time up to twice as much.
LAUNCHER = """#!/bin/sh
case "$*" in
  *CMakeScratch* | *CMakeTmp*) ;;
  *)
    n=$(printf '%s' "$*" | cksum | cut -d' ' -f1)
    sleep "$(awk "BEGIN {{ print ($n % 40) / 10 * (1 + {more} * ($n % 97) / 97) }}")" ;;
esac
exec "$@"
"""


class Errors(msgspec.Struct, frozen=True):
    """Relative errors, one at the end of each step after the first tenth of the time."""

    ours: list[float]
    ninja: list[float]
    count: list[float]


def main() -> None:
    """Replay what is built here, or the logs of real builds where they are named."""
    if named := os.environ.get("TORCHBUILD_NINJA_LOGS"):
        _real([Path(each) for each in named.split(",")])
        return
    with tempfile.TemporaryDirectory() as scratch:
        first, second, graph = _built(Path(scratch))
        _show("generated tree, files cost other than the first time", second, _remembered([first], graph))
    with tempfile.TemporaryDirectory() as scratch:
        first, second, again, found = _sample(Path(scratch))
        _show("sample, files cost other than the first time", second, _remembered([first], found))
        _show("sample, built again", again, _remembered([first], found))


def _real(paths: Sequence[Path]) -> None:
    """Each log with the history of those before it, and the first with a history that is off."""
    logs = [_steps(path) for path in paths]
    for index, newer in enumerate(logs[1:], 1):
        names = " + ".join(path.name for path in paths[:index])
        _show(f"{paths[index].name} with the history of {names}", newer, _remembered(logs[:index], None))
    _perturbed(paths[0].name, logs[0])


def _perturbed(name: str, steps: Sequence[Step]) -> None:
    """A history whose times are off by half of each and all of them together, and lacks a twentieth."""
    for spread, together in ((0.4, 1.0), (0.4, 0.6), (0.4, 2.0)):
        title = f"{name}, history x {together:g}, each time off by a factor of e^{spread:g}, 5 % unknown"
        _show(title, steps, _remembered([_off(steps, spread, together)], None))
    for missed in (0.0, 0.08, 0.5):
        title = f"{name} as a cache answers it on {JOBS} lanes, {missed:.0%} missed"
        _show(title, _answered(steps, missed), _remembered([_off(steps, 0.4, 1.0)], None))


def _off(steps: Sequence[Step], spread: float, together: float) -> list[Step]:
    chance = random.Random(5)
    return [
        replace(step, end=step.start + step.seconds * together * chance.lognormvariate(0, spread))
        for step in steps
        if chance.random() > 0.05
    ]


def _answered(steps: Sequence[Step], missed: float) -> list[Step]:
    """The steps in their order on a few lanes, most compiles as quick as ccache answers them.

    It takes 0.012 s for a compile of 0.6 s, 0.03 s for 4.5 s, 0.12 s for 90 s (measured on 1.13.1).
    """
    chance = random.Random(3)
    free = [0.0] * JOBS
    found = []
    for step in sorted(steps, key=lambda each: each.start):
        hit = kind_of(step.output) in CACHEABLE and step.seconds > TOO_SHORT and chance.random() >= missed
        start = heapq.heappop(free)
        end = start + (0.0125 * math.sqrt(step.seconds) if hit else step.seconds)
        heapq.heappush(free, end)
        found.append(replace(step, start=start, end=end))
    return sorted(found, key=lambda each: each.end)


def replay(steps: Sequence[Step], history: History) -> Errors:
    """Tell the steps in the order in which they ended, and hold each answer to what came."""
    ours = TimeLeft(history)
    ninja = NinjaReckoning(history, steps)
    wall = steps[-1].end
    errors = Errors([], [], [])
    for done, step in enumerate(steps, 1):
        ours.set_progress(done, len(steps))
        ours.add_steps([step], step.end)
        ninja.finished(step)
        truth = wall - step.end
        if step.end < wall / 10 or truth <= 0:
            continue
        for found, answer in (
            (errors.ours, ours.seconds_left(step.end)),
            (errors.ninja, ninja.left(step.end)),
            (errors.count, eta(step.end, done, len(steps))),
        ):
            found.append(abs((answer or 0.0) - truth) / truth)
    return errors


class NinjaReckoning:
    """Ninja's %E, by its rules in status_printer.cc (1.12 and later): shares of the step seconds.

    It knows a step only by the last time in its own log, so it gets the newest time of each.
    """

    def __init__(self, history: History, steps: Sequence[Step]) -> None:
        self.known = {output: times[0] for output, times in history.steps.items() if times}
        planned = [self.known[step.output] for step in steps if step.output in self.known]
        self.total, self.count, self.done, self.took = len(steps), len(planned), 0, 0.0
        self.before, self.remaining, self.remaining_count = sum(planned), sum(planned), len(planned)

    def finished(self, step: Step) -> None:
        """A step ended."""
        self.done, self.took = self.done + 1, self.took + step.seconds
        if step.output in self.known:
            self.remaining -= self.known[step.output]
            self.remaining_count -= 1

    def left(self, elapsed: float) -> float | None:
        """Seconds left; None where Ninja shows a question mark."""
        use = self.remaining_count > 0 and self.remaining > 0
        if use and elapsed >= 15 and self.done / self.total >= 0.05:
            mean, before = self.took / self.done, self.before / self.count
            use = max(mean, before) < 10 * min(mean, before)
        seen = self.done + (self.remaining_count if use else 0)
        unknown = self.total - seen
        seconds = self.took + (self.remaining if use else 0.0)
        rest = seconds / seen * unknown + (self.remaining if use else 0.0)
        share = self.took / (self.took + rest) if self.took + rest else 0.0
        return elapsed / share - elapsed if share else None


def _show(title: str, steps: Sequence[Step], history: History) -> None:
    errors = replay(steps, history)
    title = f"{title} ({len(steps)} steps, {steps[-1].end:.0f} s)"
    for name, found, goal in (
        ("this tool", errors.ours, GOAL),
        ("Ninja's %E", errors.ninja, "none"),
        ("steps counted", errors.count, "none"),
    ):
        note(f"{title}, median error of {name}", [100 * statistics.median(found)], goal, "%")


def _remembered(logs: Sequence[Sequence[Step]], graph: BuildFile | None) -> History:
    history = History()
    for steps in logs:
        build = PastBuild(finished="", seconds=steps[-1].end, steps=len(steps))
        history = remember(history, steps, build, graph=graph)
    return history


def _steps(path: Path) -> tuple[Step, ...]:
    """The run with the most steps: after a build, a log has what was done to the tree since."""
    runs = parse_ninja_log(path.read_text("utf-8")).runs
    if not runs:
        raise SystemExit(f"{path} has no steps; nothing was measured")
    return max(runs, key=lambda run: len(run.steps)).steps


def _sample(folder: Path) -> tuple[tuple[Step, ...], tuple[Step, ...], tuple[Step, ...], BuildFile | None]:
    """The sample through the tool; a launcher adds seconds to each compile, others the second time."""
    tree = materialise(folder / "minitorch")
    launcher = folder / "launcher"
    logs = []
    for more in (0, 1, 0):
        launcher.write_text(LAUNCHER.format(more=more), "utf-8")
        launcher.chmod(0o755)
        shutil.rmtree(tree / "build", ignore_errors=True)
        names = ("CMAKE_C_COMPILER_LAUNCHER", "CMAKE_CXX_COMPILER_LAUNCHER")
        env = {**os.environ, **dict.fromkeys(names, str(launcher))}
        argv = (*TOOL, "build", "--source", str(tree), *BASE, "--jobs", str(JOBS), "--yes", "--quiet")
        subprocess.run(argv, cwd=tree, env=env, check=True, capture_output=True)
        logs.append(_steps(tree / "build" / ".ninja_log"))
    return logs[0], logs[1], logs[2], ninja_graph(tree / "build")


def _built(folder: Path) -> tuple[tuple[Step, ...], tuple[Step, ...], BuildFile | None]:
    """Two libraries of sixty files each, the second after the first; a step sleeps for what it costs."""
    chance = random.Random(7)
    objects = [f"{name}/CMakeFiles/{name}.dir/f{n}.cpp.o" for name in "ab" for n in range(60)]
    usual = {output: chance.lognormvariate(-2, 1) for output in objects}
    usual |= {"lib/liba.so": 2.0, "lib/libb.so": 1.0}
    then = {output: cost * 1.3 * chance.lognormvariate(0, 0.3) for output, cost in usual.items()}
    logs = []
    for seconds in (usual, then):
        for made in ("a", "b", "lib"):
            shutil.rmtree(folder / made, ignore_errors=True)
        (folder / ".ninja_log").unlink(missing_ok=True)
        (folder / "build.ninja").write_text(_rules(seconds), "utf-8")
        subprocess.run(["ninja", f"-j{JOBS}"], cwd=folder, check=True, capture_output=True)
        logs.append(_steps(folder / ".ninja_log"))
    return logs[0], logs[1], ninja_graph(folder)


def _rules(seconds: dict[str, float]) -> str:
    lines = ["rule step", "  command = sleep $time && touch $out"]
    for output, cost in seconds.items():
        name = output.removeprefix("lib/lib")[0]
        objects = [each for each in seconds if each.startswith(f"{name}/")]
        needs = objects if output.startswith("lib/") else ["lib/liba.so"] if name == "b" else []
        before = f" {'|' if output.startswith('lib/') else '||'} {' '.join(needs)}" if needs else ""
        lines += [f"build {output}: step{before}", f"  time = {cost:.3f}"]
    return "\n".join(lines) + "\n"
