"""The history of step times: what a step costs, which compiles a cache answered, and what changed since."""

from __future__ import annotations

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
TOO_SHORT: Final = 0.25  # seconds: below it, a hit and a small file look the same


class Difference(msgspec.Struct, frozen=True):
    """One step in this build and the last time that it really ran; None where it never did."""

    output: str
    before: float | None
    now: float | None


def is_hit(output: str, seconds: float, usual: float) -> bool:
    """Say whether a compile took so little of its usual time that a cache must have answered."""
    return kind_of(output) in CACHEABLE and usual >= TOO_SHORT and seconds < _HIT * usual


def cost(output: str, times: Sequence[float]) -> float:
    """Return seconds of a step that really runs: its newest time that was not a cache hit."""
    usual = max(times, default=0.0)
    return next((each for each in times if not is_hit(output, each, usual)), usual)


def costs(history: History) -> dict[str, float]:
    """Return what each step that is known takes when it really runs: the middle of its times.

    The newest alone would carry on what other programs did to one build.
    """
    return {output: _middle(output, times) for output, times in history.steps.items()}


def _middle(output: str, times: Sequence[float]) -> float:
    usual = max(times, default=0.0)
    real = sorted(each for each in times if not is_hit(output, each, usual)) or [usual]
    return real[(len(real) - 1) // 2]


def remember(
    history: History, steps: Sequence[Step], build: PastBuild, *, graph: BuildFile | None
) -> History:
    """Return the history with one more build; what a graph does not know any more is forgotten."""
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
    """Return compiles that ran for the first time, and were as quick as the hits of this build.

    Their time says nothing about what a compile takes; what is left out costs what such steps do on
    average. In a build that a cache mostly answered, that is most of them.
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
    """Return the newest times, and one that was not a hit, however many hits came since."""
    newest = (round(step.seconds, 3), *times)
    newest_times = newest[:_MOST_TIMES]
    real = cost(step.output, newest)
    return newest_times if real in newest_times else (*newest_times[:-1], real)


def differences(history: History, steps: Iterable[Step]) -> list[Difference]:
    """Return what each step of a build took, and the last time it really ran; the greatest change first.

    The build itself may or may not be in the history already: a time that is exactly this step's
    counts as this build's.
    """
    changes = []
    for step in steps:
        times = history.steps.get(step.output, ())
        earlier = times[1:] if times[:1] == (round(step.seconds, 3),) else times
        before = cost(step.output, earlier) if earlier else None
        changes.append(Difference(step.output, before, step.seconds))
    return sorted(changes, key=lambda each: -abs((each.now or 0.0) - (each.before or 0.0)))


def find_removed_outputs(history: History, graph: BuildFile | None) -> list[str]:
    """Return outputs that the history knows and nothing makes any more; empty when the graph is not known."""
    made = graph.outputs if graph else frozenset()
    return sorted(output for output in history.steps if output not in made) if made else []


def builds_before(history: History, started: str) -> tuple[PastBuild, ...]:
    """Return the builds that ended before this one started; all but the newest where that is not known."""
    if not started:
        return history.builds[1:]
    return tuple(build for build in history.builds if build.finished < started)


def hits(history: History, steps: Iterable[Step]) -> list[Step]:
    """Return the steps that a compiler cache must have answered, by their usual time."""
    usual = costs(history)
    return [step for step in steps if is_hit(step.output, step.seconds, usual.get(step.output, 0.0))]


def compiler_of(choices: Mapping[str, str]) -> str:
    """Return what tells two histories of a checkout apart: the plan's C++ compiler, and nvcc."""
    return " ".join(filter(None, (choices.get("CXX"), choices.get("CUDACXX"))))
