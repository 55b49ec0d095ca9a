"""The history of step times: costs of steps, compiles that were cache hits, and changes."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from torchbuild_tasks.model.history import History, PastBuild
from torchbuild_tasks.ninja.build_file import BuildFile
from torchbuild_tasks.ninja.log import Step, kind_of
from torchbuild_tasks.values import replace

CACHEABLE: Final = frozenset({"C", "C++", "CUDA", "HIP", "assembler", "object"})
_MOST_TIMES: Final = 4
_MOST_BUILDS: Final = 10
# A warm compiler cache takes 0.2 to 8 % of a compile (ccache, sccache; measured on 1.13.1), 34 % for
# nvcc through sccache. A tenth tells a hit from a file that became smaller.
_HIT: Final = 0.1
TOO_SHORT: Final = 0.25  # seconds: shorter times do not tell a hit from a small file


class Difference(msgspec.Struct, frozen=True):
    """The seconds of one step in this build and in its last real run; None without one."""

    output: str
    before: float | None
    now: float


def is_hit(output: str, seconds: float, usual: float) -> bool:
    """Say whether a compile took so little of its usual time that it was a cache hit."""
    return kind_of(output) in CACHEABLE and usual >= TOO_SHORT and seconds < _HIT * usual


def cost(output: str, times: Sequence[float]) -> float:
    """Return the seconds of a real run of a step: its newest time that was not a cache hit."""
    return _real(output, times)[0]


def costs(history: History) -> dict[str, float]:
    """Return the seconds of a real run of each known step: the median of its times.

    The newest alone would carry on what other programs did to one build.
    """
    return {output: statistics.median_low(_real(output, times)) for output, times in history.steps.items()}


def _real(output: str, times: Sequence[float]) -> list[float]:
    """Return the times that were no cache hits."""
    usual = max(times, default=0.0)
    return [each for each in times if not is_hit(output, each, usual)] or [usual]


def remember(
    history: History, steps: Sequence[Step], build: PastBuild, *, graph: BuildFile | None
) -> History:
    """Return the history with one more build, without steps that the graph no longer has."""
    times = dict(history.steps)
    likely_hits = _first_hits(history, steps)
    for step in steps:
        if step.output not in likely_hits:
            times[step.output] = _merge_times(step, times.get(step.output, ()))
    if there := graph.outputs if graph else frozenset():
        ran = {step.output for step in steps if there.intersection(step.outputs)}
        times = {output: each for output, each in times.items() if output in there or output in ran}
    return replace(history, steps=times, builds=(build, *history.builds)[:_MOST_BUILDS])


def _first_hits(history: History, steps: Sequence[Step]) -> set[str]:
    """Return the compiles that are new in the history, and as fast as the hits of this build.

    Their times are not those of real compiles. Steps left out get the average cost of such steps. In a build
    with mostly cache hits, that is most of them.
    """
    usual = costs(history)
    known = [step for step in steps if kind_of(step.output) in CACHEABLE and step.output in usual]
    answered = [step for step in known if is_hit(step.output, step.seconds, usual[step.output])]
    if len(answered) <= len(known) / 2:
        return set()
    slowest = max(step.seconds for step in answered)
    new = (step for step in steps if step.output not in usual and kind_of(step.output) in CACHEABLE)
    return {step.output for step in new if step.seconds <= slowest}


def _merge_times(step: Step, times: tuple[float, ...]) -> tuple[float, ...]:
    """Return the newest times, including one that was not a hit."""
    newest = (round(step.seconds, 3), *times)
    newest_times = newest[:_MOST_TIMES]
    real = cost(step.output, newest)
    return newest_times if real in newest_times else (*newest_times[:-1], real)


def differences(history: History, steps: Iterable[Step]) -> list[Difference]:
    """Return the time of each step and of its last real run, the greatest change first.

    The build itself may or may not be in the history already: a time that is exactly this step's
    counts as this build's.
    """
    changes = []
    for step in steps:
        times = history.steps.get(step.output, ())
        earlier = times[1:] if times[:1] == (round(step.seconds, 3),) else times
        before = cost(step.output, earlier) if earlier else None
        changes.append(Difference(step.output, before, step.seconds))
    return sorted(changes, key=lambda each: -abs(each.now - (each.before or 0.0)))


def find_removed_outputs(history: History, graph: BuildFile | None) -> list[str]:
    """Return outputs in the history that no step builds any more; empty if the graph is unknown."""
    made = graph.outputs if graph else frozenset()
    return sorted(output for output in history.steps if output not in made) if made else []


def builds_before(history: History, started: str) -> tuple[PastBuild, ...]:
    """Return the builds that ended before this one started; all but the newest if that is unknown."""
    if not started:
        return history.builds[1:]
    return tuple(build for build in history.builds if build.finished < started)


def hits(history: History, steps: Iterable[Step]) -> list[Step]:
    """Return the steps that must have been cache hits, by their usual time."""
    usual = costs(history)
    return [step for step in steps if is_hit(step.output, step.seconds, usual.get(step.output, 0.0))]


def compiler_of(choices: Mapping[str, str]) -> str:
    """Return the key of a checkout's history: the plan's C++ compiler, and nvcc."""
    return " ".join(filter(None, (choices.get("CXX"), choices.get("CUDACXX"))))
