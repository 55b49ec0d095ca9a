"""Paired measurement: two commands in turn, A B A B …, and the ratio pair by pair.

A ratio survives a machine whose speed drifts; a time does not. CPU seconds are those of
the whole finished process tree, as the kernel accounts them (wait4).
"""

from __future__ import annotations

import operator
import os
import re
import shlex
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """One run: wall and CPU seconds, and the peak memory of its largest process in MiB."""

    wall: float
    cpu: float
    memory: float


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """What is measured; `before` runs uncounted ahead of each run.

    `discount` says after a run how many seconds of its wall are not to be compared.
    """

    argv: Sequence[str]
    cwd: Path
    env: Mapping[str, str] | None = None
    before: Callable[[], None] = lambda: None
    discount: Callable[[], float] = lambda: 0.0

    def __str__(self) -> str:
        return f"(cd {self.cwd.name}; {shlex.join(map(str, self.argv))})"


def run(command: Command) -> Cost:
    """Run once; a command that fails is not a measurement."""
    command.before()
    start = time.perf_counter()
    process = subprocess.Popen(
        [str(word) for word in command.argv],
        cwd=command.cwd,
        env=command.env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{command} ended with {process.returncode}; nothing was measured")
    return Cost(
        wall=wall - command.discount(), cpu=usage.ru_utime + usage.ru_stime, memory=usage.ru_maxrss / 1024
    )


def pairs(one: Command, other: Command, runs: int, warm_up: int = 1) -> list[tuple[Cost, Cost]]:
    """Run both in turn; the warm-up rounds are not counted."""
    rounds = [(run(one), run(other)) for _ in range(warm_up + runs)]
    return rounds[warm_up:]


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured of one thing: `values` of each round, in `unit`; `goal` as "<= 1.15", or "none"."""

    title: str
    values: Sequence[float]
    unit: str
    goal: str

    def __str__(self) -> str:
        low, middle, high = min(self.values), statistics.median(self.values), max(self.values)
        places = 2 if abs(middle) >= 0.1 else 3
        spread = [f"{each:.{places}f}" for each in ((low, middle, high) if high > low else (middle,))]
        return f"{' - '.join(spread)} {self.unit}"

    @property
    def met(self) -> bool | None:
        """Whether the median meets the goal; None where the goal is not a limit."""
        limit = re.match(r"(<=|>=|<|>) (\d+(?:\.\d+)?)", self.goal)
        if limit is None:
            return None
        compare = {"<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt}[limit[1]]
        return bool(compare(statistics.median(self.values), float(limit[2])))


# What was measured in this run, in its order.
FIGURES: list[Figure] = []


def note(title: str, values: Sequence[float], goal: str, unit: str = "x") -> None:
    """Keep a figure and print it; a goal that its median does not meet is marked."""
    figure = Figure(title=title, values=tuple(values), unit=unit, goal=goal)
    FIGURES.append(figure)
    missed = ", not met" if figure.met is False else ""
    print(f"{title}: {figure} over {len(values)} rounds (goal {goal}{missed})", flush=True)


def show(
    title: str, one: Command, other: Command, values: Sequence[float], goal: str, unit: str = "x"
) -> None:
    """The same with both commands that were held against each other."""
    note(title, values, goal, unit)
    print(f"    $ {one}\n    against\n    $ {other}", flush=True)
