"""Read Ninja's log: the steps that ran, with their times, grouped by run."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.text.paths import file_name
from torchbuild_tasks.values import replace

# The format is that of src/build_log.h and build_log.cc of https://github.com/ninja-build/ninja.
VERSIONS: Final = (5, 6, 7)
_HEADER: Final = re.compile(r"# ninja log v(\d+)")
_STAMP_IS_START: Final = 6
_SAME_RUN: Final = 2.0  # seconds by which two estimates of a run's start may differ
_BY_CHANCE: Final = 8  # 8 rising ends in random order have the probability 1/8!
# A stamp is a file's time as Ninja keeps it (src/disk_interface.cc): nanoseconds since 1970, or on Windows
# units of 100 ns since 12,622,770,400 s after 1601; before Ninja 1.9, whole seconds. The three ranges of this
# century do not meet, so it does not matter on which system a log was written.
_WINDOWS_BELOW: Final = 10**17
_SECONDS_BELOW: Final = 10**11
_WINDOWS_ZERO: Final = 12_622_770_400 - 11_644_473_600  # seconds since 1970


class Step(msgspec.Struct, frozen=True):
    """One step that ran; `start` and `end` are seconds since its run of Ninja began.

    `output` names it: the shortest of its `outputs`, a relative path before an absolute one.
    `began` is when the run began, in seconds since 1970, as far as this step can tell.
    """

    output: str
    start: float
    end: float
    outputs: tuple[str, ...] = ()
    command: str = ""
    began: float | None = None

    @property
    def seconds(self) -> float:
        return self.end - self.start


class Run(msgspec.Struct, frozen=True):
    """One run of Ninja: its steps by their end; `began` as in `Step`, over all of them."""

    steps: tuple[Step, ...]
    began: float | None = None


class NinjaLog(msgspec.Struct, frozen=True):
    """A parsed log: its runs, the oldest first, and the number of unreadable lines."""

    version: int
    runs: tuple[Run, ...]
    unreadable: int = 0


def parse_ninja_log(text: str) -> NinjaLog:
    """Parse a log; a truncated last line counts as unreadable.

    Raises:
        UsageError: the text is not a log of Ninja, or of a version with other columns.
    """
    head, _, body = text.partition("\n")
    version = log_version(head)
    lines, unreadable = _lines(body, version)
    runs = _join_torn_runs(_by_order(lines))
    return NinjaLog(
        version=version,
        runs=tuple(Run(steps=join_outputs(run.steps), began=run.began) for run in runs),
        unreadable=unreadable,
    )


def log_version(head: str) -> int:
    """Return the version that the first line of a log names.

    Raises:
        UsageError: it names none, or one that cannot be read.
    """
    match = _HEADER.match(head)
    if not match:
        raise UsageError(
            "This is not a log of Ninja: its first line is not '# ninja log v...'.",
            looked=(f"the first line: {head[:80]!r}",),
            next_step="Name a build folder that Ninja has built in; its log is .ninja_log there.",
        )
    if int(match[1]) not in VERSIONS:
        raise UsageError(
            f"The log of Ninja has version {match[1]}; versions 5, 6 and 7 can be read.",
            next_step="Build with Ninja 1.5 to 1.13, or tell us which Ninja writes this version.",
        )
    return int(match[1])


def parse_lines(text: str, version: int) -> tuple[Step, ...]:
    """Return the steps in lines of a log, without its first, one for each edge, sorted by end."""
    return join_outputs(_lines(text, version)[0])


def join_outputs(steps: Iterable[Step]) -> tuple[Step, ...]:
    """Return one step for each edge: lines with equal times and command are its outputs."""
    edges: dict[tuple[float, float, str], list[Step]] = {}
    for step in steps:
        edges.setdefault((step.start, step.end, step.command), []).append(step)
    joined = [
        replace(
            same[0],
            output=(names := sorted({each.output for each in same}, key=_rank))[0],
            outputs=tuple(names),
        )
        for same in edges.values()
    ]
    return tuple(sorted(joined, key=lambda step: (step.end, step.start, step.output)))


def last_run(log: NinjaLog) -> Run | None:
    """Return the last run that compiled or linked something, else the last; None for an empty log."""
    real = [run for run in log.runs if any(kind_of(step.output) != "codegen" for step in run.steps)]
    return next(reversed(real or log.runs), None)


def steps_within(log: NinjaLog, started: float, finished: float) -> tuple[Step, ...]:
    """Return the steps of all runs that began in this time, on one axis: the first run's.

    Args:
        started: seconds since 1970; two more on each side count, because a manifest has whole seconds.
    """
    early = started - _SAME_RUN
    late = finished + _SAME_RUN
    runs = [(run.began, run) for run in log.runs if run.began is not None and early <= run.began <= late]
    zero = min((began for began, _ in runs), default=0.0)
    moved = [
        replace(step, start=step.start + began - zero, end=step.end + began - zero)
        for began, run in runs
        for step in run.steps
    ]
    return tuple(sorted(moved, key=lambda step: (step.end, step.start, step.output)))


_KINDS: Final = {
    "c": "C", "cc": "C++", "cpp": "C++", "cxx": "C++", "cu": "CUDA", "s": "assembler", "asm": "assembler",
    "m": "C", "mm": "C++", "hip": "HIP", "rc": "resource",
}  # fmt: skip
_LINKED: Final = ("so", "dll", "pyd", "exe", "dylib", "lib", "a")


def kind_of(output: str) -> str:
    """Return the kind of step for an output: a language, link, install or codegen, by its suffix."""
    name = file_name(output).lower()
    parts = name.split(".")
    if parts[-1] in ("o", "obj"):
        return _KINDS.get(parts[-2] if len(parts) > 2 else "", "object")
    if parts[-1] in _LINKED or (len(parts) > 2 and "so" in parts[1:]):
        return "link"
    if parts[-1] == "util" and parts[0].startswith("install"):
        return "install"
    return "link" if len(parts) == 1 and "bin/" in output else "codegen"


def _lines(body: str, version: int) -> tuple[list[Step], int]:
    lines = []
    unreadable = 0
    for line in body.splitlines(keepends=True):
        step = _line(line, version) if line.endswith("\n") else None
        if step is not None:
            lines.append(step)
        elif line.strip() and not line.startswith("#"):
            unreadable += 1
    return lines, unreadable


def _line(line: str, version: int) -> Step | None:
    fields = line.rstrip("\r\n").split("\t")
    if len(fields) != 5 or not all(field.isdecimal() and len(field) < 20 for field in fields[:3]):
        return None
    start = int(fields[0]) / 1000
    end = int(fields[1]) / 1000
    stamp = _since_1970(int(fields[2]))
    if end < start or not fields[3]:
        return None
    began = stamp - (start if version >= _STAMP_IS_START else end) if stamp else None
    return Step(output=fields[3], start=start, end=end, command=fields[4], began=began)


def _since_1970(stamp: int) -> float:
    """Return the seconds since 1970 of a stamp; 0 where there is none."""
    if stamp < _SECONDS_BELOW:
        return float(stamp)
    return stamp / 1e7 + _WINDOWS_ZERO if stamp < _WINDOWS_BELOW else stamp / 1e9


def _rank(output: str) -> tuple[bool, int, str]:
    absolute = output.startswith(("/", "\\")) or output[1:2] == ":"
    return (absolute, len(output), output)


def _by_order(lines: Sequence[Step]) -> list[Run]:
    """Split the steps into runs: Ninja appends lines as steps end, so an earlier end begins another run."""
    groups: list[list[Step]] = []
    for line in lines:
        if not groups or line.end < groups[-1][-1].end:
            groups.append([])
        groups[-1].append(line)
    whole: list[list[Step]] = []
    for group in groups:
        whole += [[line] for line in group] if _is_torn(group) else [group]
    return [Run(steps=tuple(group), began=_start_of_run(group)) for group in whole]


def _is_torn(group: Sequence[Step]) -> bool:
    """Say whether a short group mixes several runs: in random order only a few ends rise by chance."""
    times = [line.began for line in group if line.began is not None]
    return len(group) < _BY_CHANCE and bool(times) and max(times) - min(times) > _SAME_RUN


def _start_of_run(steps: Sequence[Step]) -> float | None:
    """Return the median start of the run by its steps: an unchanged output of a generator has an old time."""
    times = [step.began for step in steps if step.began is not None]
    return statistics.median(times) if times else None


def _join_torn_runs(runs: list[Run]) -> list[Run]:
    """Join runs with the same start: Ninja rewrites a long log in random order, which splits runs."""
    timed = sorted((run.began, index) for index, run in enumerate(runs) if run.began is not None)
    joined: list[list[int]] = []
    last = float("-inf")
    for began, index in timed:
        if began - last > _SAME_RUN:
            joined.append([])
        joined[-1].append(index)
        last = began
    whole = [[index] for index, run in enumerate(runs) if run.began is None] + joined
    groups = [[step for index in sorted(indexes) for step in runs[index].steps] for indexes in whole]
    return [Run(steps=tuple(group), began=_start_of_run(group)) for group in groups]
