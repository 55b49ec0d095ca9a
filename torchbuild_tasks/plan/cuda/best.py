"""Choose among the CUDA toolkits that are installed, by what the checks of a plan say of each."""

from __future__ import annotations

from typing import NamedTuple

from packaging.version import Version

from torchbuild_tasks.model import Toolkit
from torchbuild_tasks.plan.cuda.archs import without_own_code
from torchbuild_tasks.plan.cuda.candidates import judge, weigh
from torchbuild_tasks.plan.cuda.devices import devices
from torchbuild_tasks.plan.cuda.toolkit import (
    choose_toolkit,
    cuda_row,
    distance,
    is_picked,
    series_of,
    torch_rows,
    why_unusable,
)
from torchbuild_tasks.plan.cuda.values import ChosenToolkit, Device
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.values import replace


def choose_best(question: Question) -> ChosenToolkit:
    """Decide the toolkit; if none is requested, the installed one that fits best.

    Of those that fit equally well the one that is on PATH stays, or where /usr/local/cuda leads: that is a
    choice. Of the others it is the one of which least is to be said for these GPUs and this torch.
    """
    first = choose_toolkit(question)
    able = [toolkit for toolkit in question.cuda.toolkits if not why_unusable(toolkit)]
    if first.toolkit is None or len(able) < 2 or first.choice is None or first.choice.source != "default":
        return first
    gpus = devices(question)
    judged = {each.path: judge(question, each.path, gpus) for each in able}
    weights = {path: weigh(found) for path, found in judged.items()}
    best = min(able, key=lambda each: weights[each.path])
    if weights[best.path] < weights[first.root]:
        return _instead(first, best, min(judged[first.root], key=lambda each: each.status != "error").text)
    if is_picked(first.toolkit):
        return first
    beside = [each for each in able if each.found_via == first.toolkit.found_via]
    equal = [each for each in beside if weights[each.path] == weights[first.root]]
    best = min(equal, key=lambda each: drawbacks_of(question, series_of(each.version), gpus))
    mine, other = (drawbacks_of(question, series_of(each.version), gpus) for each in (first.toolkit, best))
    return first if mine <= other else _instead(first, best, _say_drawback(first, mine, other, gpus))


class Drawbacks(NamedTuple):
    """What is to be said against a toolkit that fits, the weightier first.

    `old`: it calls a GPU here deprecated. `unbuilt`: upstream did not build this torch with it. `unusual`:
    that, or it makes no code of their own for the GPUs here. `distance`: how far it is from upstream's own.
    """

    old: bool
    unbuilt: bool
    unusual: bool
    distance: int


def drawbacks_of(question: Question, version: Version | None, gpus: tuple[Device, ...]) -> Drawbacks:
    row = cuda_row(question, version)
    present = {device.capability for device in gpus}
    return Drawbacks(
        old=row is not None and bool(present & {*row.deprecated}),
        unbuilt=version not in _built(question),
        unusual=version is None or not is_usual(question, version, gpus),
        distance=distance(question, version),
    )


def _say_drawback(first: ChosenToolkit, mine: Drawbacks, other: Drawbacks, gpus: tuple[Device, ...]) -> str:
    """Say the first thing that one toolkit has against it, and the other that is taken has not."""
    here = ", ".join(dict.fromkeys(f"{each.name} ({each.capability})" for each in gpus if each.capability))
    if mine.old != other.old:
        return f"{first.name} calls a GPU that is here deprecated ({here})"
    if mine.unbuilt != other.unbuilt:
        return f"upstream did not build this torch with {first.name}"
    if mine.unusual != other.unusual:
        return f"{first.name} makes no code of its own for each GPU that is here ({here})"
    return f"{first.name} is further from what upstream builds this torch with"


def _built(question: Question) -> set[Version]:
    """Return what upstream built this torch with."""
    return {Version(text) for row in torch_rows(question) for text in row.built}


def is_usual(question: Question, version: Version, gpus: tuple[Device, ...]) -> bool:
    """Say whether upstream built this torch with a release, and that makes code of their own for these GPUs.

    A GPU runs the code of an older one of its major, so what upstream never built with is not better for it.
    """
    return version in _built(question) and not without_own_code(question, version, gpus)


def _instead(first: ChosenToolkit, best: Toolkit, against: str) -> ChosenToolkit:
    passed = (*first.passed_over, f"{first.root}: {against}")
    assert first.choice is not None
    text = f"{best.name}, found via {best.found_via}; passed over {passed[-1]}"
    return ChosenToolkit(
        choice=replace(first.choice, value=best.path, because=text),
        toolkit=best,
        version=series_of(best.version),
        passed_over=passed,
    )
