"""How two plans differ, apart from the folders that they are in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from torchbuild_tasks.model import BuildPlan
from torchbuild_tasks.model.source import Difference

CHECKOUT: Final = "<checkout>"
NOTHING: Final = "-"


def differences(one: BuildPlan, other: BuildPlan) -> tuple[Difference, ...]:
    """What the second plan would do otherwise: choices, the environment, the command."""
    return tuple(_differences(one, other))


def _differences(one: BuildPlan, other: BuildPlan) -> Iterator[Difference]:
    choices = [{choice.name: choice for choice in plan.choices} for plan in (one, other)]
    reasons = [{name: choice.because for name, choice in side.items()} for side in choices]
    values = [
        {name: _anywhere(choice.value, plan) for name, choice in side.items()}
        for side, plan in zip(choices, (one, other), strict=True)
    ]
    yield from _pairs(values, reasons)
    named = {*choices[0], *choices[1]}
    yield from _pairs([_environment(plan, named) for plan in (one, other)], [{}, {}])
    commands = [_anywhere(" ".join(plan.compile.argv), plan) for plan in (one, other)]
    yield from _pairs([{"command": command} for command in commands], [{}, {}])
    yield from _pairs([_extras(plan) for plan in (one, other)], [{}, {}])


def _environment(plan: BuildPlan, named: set[str]) -> dict[str, str]:
    """What the env file sets beyond the choices."""
    told: dict[str, list[str]] = {}
    for op in plan.env:
        if op.name not in named:
            told.setdefault(op.name, []).append(_anywhere(f"{op.op} {op.value}".strip(), plan))
    return {name: "; ".join(ops) for name, ops in told.items()}


def _extras(plan: BuildPlan) -> dict[str, str]:
    return {
        "helpers": " ".join(sorted(artifact.id for artifact in plan.artifacts)),
        "patches": " ".join(sorted(patch.id for patch in plan.patches)),
        "verdict": plan.verdict,
    }


def _pairs(values: list[dict[str, str]], reasons: list[dict[str, str]]) -> Iterator[Difference]:
    one, other = values
    for name in dict.fromkeys((*one, *other)):
        pair = (one.get(name, NOTHING), other.get(name, NOTHING))
        if pair[0] != pair[1]:
            yield Difference(
                name=name, values=pair, reasons=(reasons[0].get(name, ""), reasons[1].get(name, ""))
            )


def _anywhere(text: str, plan: BuildPlan) -> str:
    return text.replace(plan.source, CHECKOUT)
