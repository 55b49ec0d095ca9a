"""`doctor`: check the machine and the checkout, and report problems."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from torchbuild_tasks.errors import PlanRefused
from torchbuild_tasks.options import BuildRequest, own_flag
from torchbuild_tasks.verbs import Outcome

if TYPE_CHECKING:
    from torchbuild_tasks.build.work import Reporter
    from torchbuild_tasks.model import BuildPlan, Facts
    from torchbuild_tasks.plan.question import Question


@dataclasses.dataclass(frozen=True, kw_only=True)
class DoctorRequest(BuildRequest):
    """The flags of `doctor`."""

    fix: bool = own_flag("fix what can be fixed safely; asks before each (--yes answers)", default=False)


def run(request: DoctorRequest, report: Reporter) -> Outcome:
    """Check the machine, the tree and their surroundings, and report problems."""
    from torchbuild_tasks.text.show import doctor_text

    facts, plan = examine(request, report)
    return Outcome(
        {"verdict": plan.verdict, "findings": plan.findings, "facts": facts},
        doctor_text(plan, facts, verbose=request.verbose),
        PlanRefused.exit_code if plan.verdict == "refuse" else 0,
    )


def examine(request: DoctorRequest, report: Reporter) -> tuple[Facts, BuildPlan]:
    """Gather all facts and check them; with --fix run repairs, and check again.

    Returns:
        What was seen, and the plan with everything that is wrong among its findings.
    """
    question, plan = _look(request)
    if request.fix and not request.facts:
        from torchbuild_tasks.features.doctor.act import repair
        from torchbuild_tasks.features.doctor.choose import repairs
        from torchbuild_tasks.system.signals import interruptible

        with interruptible():
            repaired = repair(repairs(question, plan), report, yes=request.yes)
        if repaired:
            question, plan = _look(request)
    return question.facts, plan


def _look(request: DoctorRequest) -> tuple[Question, BuildPlan]:
    from torchbuild_tasks.context import decide, look
    from torchbuild_tasks.features.doctor.choose import diagnose
    from torchbuild_tasks.features.doctor.health import PATIENCE, examine

    question = look(request, patience=PATIENCE)
    plan = decide(question)
    if not request.facts:
        question = examine(question, plan)
    return question, diagnose(question, plan)
