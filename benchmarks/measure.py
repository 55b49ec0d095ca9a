"""Paired measurement: two commands in turn, A B A B …, and the ratio pair by pair.

A ratio survives a machine whose speed drifts; a time does not. CPU seconds are those of
the whole finished process tree, as the kernel accounts them (wait4).
"""

from __future__ import annotations

import os
import shlex
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Cost:
    """One run: wall and CPU seconds, and the peak memory of its largest process in MiB."""

    wall: float
    cpu: float
    memory: float


@dataclass(frozen=True, kw_only=True)
class Command:
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
    """Run once; a command that fails is no measurement."""
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


def show(
    title: str, one: Command, other: Command, values: Sequence[float], goal: str, unit: str = "x"
) -> None:
    """Print minimum, median and maximum with both commands and the goal."""
    low, middle, high = min(values), statistics.median(values), max(values)
    print(f"{title}: {low:.2f} - {middle:.2f} - {high:.2f} {unit} over {len(values)} pairs (goal {goal})")
    print(f"    $ {one}\n    against\n    $ {other}", flush=True)
