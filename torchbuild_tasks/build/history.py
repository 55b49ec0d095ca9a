"""The history of builds on this machine: the times of their steps, and the memory that compiles took.

It is read for the time that is left of a build under way, and for the number of jobs of the next plan.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, TypeVar

from torchbuild_tasks.catalog.rows import StepCostRow
from torchbuild_tasks.errors import NotBuilt, UsageError
from torchbuild_tasks.model.history import HISTORY_SCHEMA, PEAKS, History, PastBuild, PastPeaks
from torchbuild_tasks.ninja.build_file import BuildFile, parse_build_file
from torchbuild_tasks.ninja.log import (
    NinjaLog,
    Step,
    kind_of,
    log_version,
    parse_lines,
    parse_ninja_log,
    steps_within,
)
from torchbuild_tasks.ninja.progress import ProgressParser
from torchbuild_tasks.ninja.step_times import CACHEABLE, hits, remember
from torchbuild_tasks.ninja.time_left import TimeLeft
from torchbuild_tasks.ninja.timeline import wall_seconds
from torchbuild_tasks.system.files import write_json
from torchbuild_tasks.system.reading import read_bytes, read_json
from torchbuild_tasks.values import from_json

HISTORY: Final = "history"
NINJA_LOG: Final = ".ninja_log"
_OLD: Final = ("jobs", "after")  # keys of 0.1: how many steps ran at once, and the chains of steps
T = TypeVar("T", History, PastPeaks)
_EVERY: Final = 1.0  # seconds between two looks at Ninja's log
_LONG: Final = 100  # steps from which on the graph is worth its half second
LONGEST_GRAPH: Final = 1 << 30  # bytes; PyTorch's has some ten millions
_RELEASE: Final = re.compile(r"\d+\.\d+")


def history_file(store: Path, source: Path, compiler: str) -> Path:
    """Return the file of the history of one checkout with one compiler, below the store."""
    mark = hashlib.sha256(f"{source}\n{compiler}".encode(errors="surrogateescape")).hexdigest()[:16]
    return store / HISTORY / f"{mark}.json"


def read_history(path: Path, source: Path, compiler: str) -> History:
    """Return the history in this file; an empty one when there is none, or none that can be read."""
    history = _read_value(History, path)
    return history or History(source=str(source), compiler=compiler)


def read_peaks(store: Path) -> PastPeaks:
    """Return the memory that builds on this machine took; empty if the file cannot be read."""
    return _read_value(PastPeaks, store / PEAKS) or PastPeaks()


def _read_value(kind: type[T], path: Path) -> T | None:
    with contextlib.suppress(OSError, ValueError, UsageError):
        data = read_json(path)
        if isinstance(data, dict):
            data = {name: each for name, each in data.items() if name not in _OLD}
        value = from_json(kind, data)
        if value.schema == HISTORY_SCHEMA:
            return value
    return None


def write(path: Path, value: History | PastPeaks) -> str:
    """Write it; return "", or why it could not be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, value, error=UsageError)
    except OSError as problem:
        return f"What this build took is not remembered: {path.parent}: {problem.strerror or problem}"
    except UsageError as problem:
        return f"What this build took is not remembered: {problem.what}"
    return ""


class Follower:
    """Reads the lines that Ninja appends to its log while it works.

    What the log held before is not returned again, also when Ninja rewrites it: at its start it makes a
    long log short.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        before = _read(path, 0)
        *lines, self._rest = before.split(b"\n")
        self._old = frozenset(lines)
        self._at = len(before)

    @property
    def built(self) -> frozenset[str]:
        """Return the outputs that the log named before this build."""
        fields = (line.split(b"\t") for line in self._old)
        return frozenset(each[3].decode(errors="surrogateescape") for each in fields if len(each) == 5)

    @property
    def head(self) -> str:
        """Return the log's first line, which names its version; "" while there is no log."""
        with contextlib.suppress(OSError), self._path.open("rb") as file:
            return file.readline(80).decode(errors="replace").strip()
        return ""

    def new(self) -> str:
        """Return the complete lines appended since the last call."""
        size = _size(self._path)
        if size == self._at:
            return ""
        if size < self._at:  # rewritten, or a new log
            self._at = 0
            self._rest = b""
        data = _read(self._path, self._at)
        self._at += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        new = [line for line in lines if line not in self._old]
        return "".join(f"{line.decode(errors='replace')}\n" for line in new)


def _size(path: Path) -> int:
    with contextlib.suppress(OSError):
        return path.stat().st_size
    return 0


def _read(path: Path, start: int) -> bytes:
    with contextlib.suppress(OSError), path.open("rb") as file:
        file.seek(start)
        return file.read()
    return b""


# ---- a running build, and what is recorded of it


class Pace:
    """The estimate of the time left of one build, from its output and Ninja's log.

    It reads Ninja's log as it grows, so it knows how long each step took. For a long build, Ninja's graph
    is read once for the steps that are not in the history. Without such a log, or without a history and
    rows, the estimate is None, and the reporter counts the steps instead. Two threads may use it: the one
    that reads the output, and the one that watches.

    Args:
        history: from `recall`.
        rows: the costs of steps that are not in the history.
        target: the target that Ninja builds; "" for all.
        clock: seconds.
    """

    def __init__(
        self,
        build_dir: Path,
        history: History,
        rows: Sequence[StepCostRow] = (),
        *,
        target: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._target = target
        self._follower = Follower(build_dir / NINJA_LOG)
        self._left = TimeLeft(history, rows)
        self._build_dir = build_dir
        self._looked_up = not rows
        self._parser = ProgressParser()
        self._clock = clock
        self._next = 0.0
        self._version = 0
        self._lock = threading.RLock()

    def read_output(self, block: bytes) -> float | None:
        """Read complete lines of output; return the seconds left, as of now."""
        newest = self._parser.feed_block(block)
        with self._lock:
            if newest is not None and newest.total:
                self._left.set_progress(newest.done, newest.total)
                self._look_up(newest.total)
            return self.seconds_left()

    def _look_up(self, total: int) -> None:
        if not self._looked_up and total >= _LONG:
            self._looked_up = True
            if graph := ninja_graph(self._build_dir):
                outputs = graph.outputs_of((self._target,)) if self._target else graph.outputs
                self._left.expect(outputs, self._follower.built)

    @property
    def spread(self) -> float:
        """Return the factor by which the true value may differ from the estimate."""
        with self._lock:
            return self._left.spread

    @property
    def steps(self) -> tuple[int, int]:
        """Return how many steps ran and how many are left; 0 and 1 if Ninja shows no count."""
        with self._lock:
            return self._left.steps

    def finish(self) -> None:
        """Mark the build as successful: its last lines may not have been read."""
        with self._lock:
            self._left.finish()

    def steps_of_tree(self) -> tuple[int, int]:
        """Return how many steps ran and how many the build tree still lacks, which are more than a target's.

        If that is unknown, 0 and 1: the steps that ran say nothing about the others.
        """
        if not self._target:
            return self.steps
        graph = ninja_graph(self._build_dir)
        if graph is None:
            return (0, 1)
        built = Follower(self._build_dir / NINJA_LOG).built
        return (self.steps[0], sum(kind_of(output) in CACHEABLE for output in graph.outputs - built))

    def to_come(self) -> float:
        """Return the share of the steps that have not ended; 1 before anything is counted."""
        ended, remaining = self.steps
        return remaining / (ended + remaining)

    def seconds_left(self) -> float | None:
        """Return the seconds left, as of now."""
        with self._lock:
            now = self._clock()
            if now >= self._next:
                self._next = now + _EVERY
                self._left.add_steps(self._read_ended_steps(), now)
            return self._left.seconds_left(now)

    def _read_ended_steps(self) -> tuple[Step, ...]:
        text = self._follower.new()
        if text and not self._version:
            with contextlib.suppress(UsageError):
                self._version = log_version(self._follower.head)
        return parse_lines(text, self._version) if self._version else ()


def recall(store: Path, source: Path, compiler: str) -> History:
    """Return the step times of earlier builds of this checkout with this compiler."""
    return read_history(history_file(store, source, compiler), source, compiler)


def longest_build(store: Path, source: Path) -> PastBuild | None:
    """Return the longest build known of this checkout, else of another one of its release."""
    known: dict[bool, list[PastBuild]] = {True: [], False: []}
    for path in sorted((store / HISTORY).glob("*.json")):
        history = read_history(path, source, "")
        own = history.source == str(source)
        if own or _release_series(Path(history.source)) == _release_series(source) != "":
            known[own] += (build for build in history.builds if build.steps)
    return max(known[True] or known[False], key=lambda build: build.seconds, default=None)


def _release_series(source: Path) -> str:
    """Return the two numbers of a checkout's release, as in 2.6; "" where it does not say them."""
    with contextlib.suppress(OSError):
        match = _RELEASE.match(read_bytes(source / "version.txt").decode("utf-8", "replace"))
        return match[0] if match else ""
    return ""


def keep(store: Path, source: Path, compiler: str, build_dir: Path, *, started: float, finished: str) -> str:
    """Add a finished build to the history; return "", or the reason why that failed.

    Args:
        store: the cache folder.
        compiler: what compiled it, path and version.
        build_dir: the build tree, with Ninja's log.
        started: when the build began, in seconds since 1970.
        finished: when it ended, as the manifest has it.
    """
    if not os.path.lexists(build_dir / NINJA_LOG):  # CMake alone has run
        return ""
    try:
        log = read_ninja_log(build_dir)
    except (NotBuilt, UsageError) as error:
        return f"The step times are not remembered: {error.what}"
    steps = steps_within(log, started, time.time())
    if not steps:
        return ""
    known = recall(store, source, compiler)
    build = PastBuild(
        finished=finished,
        seconds=round(wall_seconds(steps), 3),
        steps=len(steps),
        work=round(sum(step.seconds for step in steps), 3),
        hits=len(hits(known, steps)),
    )
    history = remember(known, steps, build, graph=ninja_graph(build_dir))
    return write(history_file(store, source, compiler), history)


def read_ninja_log(build_dir: Path) -> NinjaLog:
    """Return the log of the build tree.

    Raises:
        NotBuilt: there is none.
        UsageError: it cannot be read, or it is none of Ninja's.
    """
    path = build_dir / NINJA_LOG
    try:
        return parse_ninja_log(read_bytes(path).decode("utf-8", "surrogateescape"))
    except OSError as problem:
        kind = NotBuilt if isinstance(problem, FileNotFoundError) else UsageError
        raise kind(
            f"{path} cannot be read: {problem.strerror or problem}.",
            looked=(f"the times of a build's steps: {path}",),
            next_step="Build first, with Ninja, or name the checkout: --source PATH",
        ) from None
    except UsageError as error:
        raise UsageError(f"{path}: {error.what}", looked=error.looked, next_step=error.next_step) from None


def ninja_graph(build_dir: Path) -> BuildFile | None:
    """Return what build.ninja says; None where it cannot be read."""
    with contextlib.suppress(OSError, ValueError, RecursionError):
        graph = read_build_file(build_dir)
        return graph if graph.edges else None
    return None


def read_build_file(build_dir: Path) -> BuildFile:
    """Read build.ninja and what it includes: regular files alone.

    Raises:
        OSError: one of them cannot be read, or is none.
        ValueError, RecursionError: it is damaged, or includes itself.
    """

    def read(name: str) -> str:
        return read_bytes(build_dir / name, most=LONGEST_GRAPH).decode("utf-8", "surrogateescape")

    return parse_build_file(read)
