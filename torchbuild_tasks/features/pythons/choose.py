"""Decide which wheels `--python 3.11,3.12` means, and say what each of them took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.model import BuildPlan, Finding, verdict
from torchbuild_tasks.model.record import VerifyReport
from torchbuild_tasks.text.show import columns
from torchbuild_tasks.text.words import counted
from torchbuild_tasks.values import replace


class MadeWheel(msgspec.Struct, frozen=True, kw_only=True):
    """A wheel for one Python: how long its build took, how many steps of Ninja, and what a clean venv showed.

    `steps` are the outputs that Ninja made for it.
    """

    python: str
    wheel: str
    seconds: float
    steps: tuple[str, ...]
    verified: VerifyReport


def split_pythons(python: str | None) -> tuple[str, ...]:
    """Return the Pythons of a list, one for anything else.

    Raises:
        UsageError: one is named twice, or left out between two commas.
    """
    names = tuple(word.strip() for word in (python or "").split(","))
    if len(names) > 1 and (len(set(names)) < len(names) or "" in names):
        raise UsageError(f"--python {python}: name each Python once, with one comma between two: 3.11,3.12")
    return names


def require_wheels(mode: str, python: str, others: Sequence[str]) -> None:
    """Check that several Pythons are asked for what several can have.

    Raises:
        UsageError: it is something else than wheels.
    """
    if mode != "wheel" or others:
        why = f"{', '.join(others)} is for one" if others else "an editable install is of one"
        raise UsageError(
            f"--python {python}: wheels are made for several Pythons, and {why}.",
            next_step="Add --mode wheel, or name one Python.",
        )


def with_others(plan: BuildPlan, first: str, others: Mapping[str, BuildPlan]) -> BuildPlan:
    """Return the plan for the first of several Pythons, with what is found of the others."""
    text = f"this is the plan for Python {first}; `build` also makes a wheel for {', '.join(others)}"
    told = [Finding.ok("python", text)]
    for other in others.values():
        told += (each for each in other.findings if each.id.startswith("python") or each.status == "error")
    findings = tuple(dict.fromkeys((*plan.findings, *told)))
    return replace(plan, findings=findings, verdict=verdict(findings))


def summary_text(wheels: Sequence[MadeWheel]) -> str:
    """Say what was made for each Python, and what each had compiled, generated or linked."""
    rows = [
        (
            each.python,
            f"{each.seconds:.0f} s",
            counted(len(each.steps), "step"),
            f"{sum(check.outcome == 'passed' for check in each.verified.checks)} checks passed",
            each.wheel,
        )
        for each in wheels
    ]
    return f"{counted(len(wheels), 'wheel')} from one build tree, each tried in a clean venv\n{columns(rows)}"
