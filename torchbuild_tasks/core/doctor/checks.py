"""Every check of the doctor in one table: what it looks at, and the function that judges it.

A check has one finding id. What the plan's own findings already say is not said again: `disk` counts all
that is written on a file system, so it takes the place of the plan's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from torchbuild_tasks.core.doctor import hosts, machine, surroundings
from torchbuild_tasks.core.doctor.view import Said, View
from torchbuild_tasks.model import BuildPlan, Finding
from torchbuild_tasks.plan.make import verdict
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.values import replace

CHECKS: Final[Mapping[str, Callable[[View], Said]]] = {
    "disk": machine.check_disk,
    "places": machine.check_places,
    "memory": machine.check_memory,
    "open-files": machine.check_open_files,
    "locale": machine.check_locale,
    "clock": machine.check_clock,
    "dev-drive": surroundings.check_dev_drive,
    "git": surroundings.check_git,
    "conda": surroundings.check_conda,
    "names": surroundings.check_names,
    "shadow": surroundings.check_shadow,
    "cudas": surroundings.check_cudas,
    "trees": surroundings.check_trees,
    "proxy": hosts.check_proxy,
    "dns": hosts.check_dns,
    "https": hosts.check_https,
}
_OF_THE_PLAN: Final = ("disk",)
# Without a checkout there is no plan to hold the machine against.
_WITHOUT_TREE: Final = ("disk", "names", "trees", "shadow", "cudas")


def diagnosed(question: Question, plan: BuildPlan) -> BuildPlan:
    """The plan with the findings of the doctor, and the verdict on them all."""
    if question.facts.health is None:  # a dump that no doctor made
        return plan
    findings = _examine(View(question, plan, question.facts.health))
    return replace(plan, findings=findings, verdict=verdict(findings))


def _examine(view: View) -> tuple[Finding, ...]:
    """All findings: those of the plan, then those of the doctor."""
    own = tuple(finding for finding in view.plan.findings if finding.id not in _OF_THE_PLAN)
    left = _WITHOUT_TREE if view.facts.tree.problem else ()
    checks = (check for id, check in CHECKS.items() if id not in left)
    return (*own, *(finding for check in checks for finding in check(view)))
