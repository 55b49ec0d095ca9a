"""The doctor's table of checks, its findings on a plan, and the repairs of `doctor --fix`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import msgspec

from torchbuild_tasks.features.doctor import check_machine, check_network, check_surroundings
from torchbuild_tasks.features.doctor.check import View
from torchbuild_tasks.model import BuildPlan, Command, Finding, verdict
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.values import replace

CHECKS: Final[Mapping[str, Callable[[View], tuple[Finding, ...]]]] = {
    "disk": check_machine.check_disk,
    "noexec": check_machine.check_starts,
    "places": check_machine.check_places,
    "memory": check_machine.check_memory,
    "open-files": check_machine.check_open_files,
    "locale": check_machine.check_locale,
    "clock": check_machine.check_clock,
    "dev-drive": check_surroundings.check_dev_drive,
    "git": check_surroundings.check_git,
    "conda": check_surroundings.check_conda,
    "names": check_surroundings.check_names,
    "shadow": check_surroundings.check_shadow,
    "cudas": check_surroundings.check_cudas,
    "stubs": check_surroundings.check_stubs,
    "trees": check_surroundings.check_trees,
    "proxy": check_network.check_proxy,
    "dns": check_network.check_dns,
    "https": check_network.check_https,
}
# The plan says these of what it has looked at, the doctor of more.
_OF_THE_PLAN: Final = ("disk", "memory", "noexec")
# Without a checkout there is no plan to check the machine for.
_WITHOUT_TREE: Final = ("disk", "names", "trees", "shadow", "cudas")


def diagnose(question: Question, plan: BuildPlan) -> BuildPlan:
    """Return the plan with the doctor's findings, and the verdict on all."""
    if question.facts.health is None:  # a dump that no doctor made
        return plan
    findings = _findings(View(question, plan, question.facts.health))
    return replace(plan, findings=findings, verdict=verdict(findings))


def _findings(view: View) -> tuple[Finding, ...]:
    """Return all findings: those of the plan, then those of the doctor."""
    own = tuple(finding for finding in view.plan.findings if finding.id not in _OF_THE_PLAN)
    skipped = _WITHOUT_TREE if view.facts.tree.problem else ()
    checks = (check for id, check in CHECKS.items() if id not in skipped)
    return (*own, *(finding for check in checks for finding in check(view)))


# ---------------- repairs: harmless commands, in the checkout that the user named


class Repair(msgspec.Struct, frozen=True, kw_only=True):
    """A command that fixes a finding; `id` is the finding's."""

    id: str
    command: Command


def _git(question: Question, *words: str, because: str) -> Command:
    root = question.facts.tree.root
    return Command(argv=("git", "-C", root, *words), cwd=root, because=because)


def _submodules(question: Question) -> Command | None:
    """Return the command that fills empty submodules; others may be at commits of the user's."""
    tree = question.facts.tree
    empty = [path for path in tree.empty if path.count("/") == 1 and path not in tree.linkless]
    if not tree.git or not empty:
        return None
    words = ("submodule", "update", "--init", "--recursive", "--jobs", "8", "--", *empty)
    return _git(question, *words, because="fills the folders that are empty, and touches no other")


def _configure(key: str, value: str, question: Question) -> Command:
    return _git(question, "config", key, value, because="of this checkout; the global one stays")


REPAIRS: Final[Mapping[str, Callable[[Question], Command | None]]] = {
    "submodules": _submodules,
    "git-autocrlf": partial(_configure, "core.autocrlf", "input"),
    "git-long-paths": partial(_configure, "core.longpaths", "true"),
}


def repairs(question: Question, plan: BuildPlan) -> tuple[Repair, ...]:
    """Return the repairs for the findings, each once."""
    wrong = dict.fromkeys(finding.id for finding in plan.findings if finding.status in ("warn", "error"))
    repairs = ((id, REPAIRS[id](question)) for id in wrong if id in REPAIRS)
    return tuple(Repair(id=id, command=command) for id, command in repairs if command is not None)
