"""What `doctor --fix` may do: commands that harm nothing, in the checkout that the user named.

Nothing here touches the system, the user's own settings or another Python; those fixes are only told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from torchbuild_tasks.model import BuildPlan, Command
from torchbuild_tasks.plan.question import Question


class Repair(msgspec.Struct, frozen=True, kw_only=True):
    """A command that puts a finding right; `id` is the finding's."""

    id: str
    command: Command


def _git(question: Question, *words: str, because: str) -> Command:
    root = question.facts.tree.root
    return Command(argv=("git", "-C", root, *words), cwd=root, because=because)


def _submodules(question: Question) -> Command | None:
    """Fills the checkout's own that are empty; the others, which may be on commits of the user's, stay."""
    empty = [path for path in question.facts.tree.empty if path.count("/") == 1]
    if not question.facts.tree.git or not empty:
        return None
    words = ("submodule", "update", "--init", "--recursive", "--jobs", "8", "--", *empty)
    return _git(question, *words, because="fills the folders that are empty, and touches no other")


def _autocrlf(question: Question) -> Command:
    return _git(
        question, "config", "core.autocrlf", "input", because="of this checkout; the global one stays"
    )


def _long_paths(question: Question) -> Command:
    return _git(
        question, "config", "core.longpaths", "true", because="of this checkout; the global one stays"
    )


REPAIRS: Final[Mapping[str, Callable[[Question], Command | None]]] = {
    "submodules": _submodules,
    "git-autocrlf": _autocrlf,
    "git-long-paths": _long_paths,
}


def repairs(question: Question, plan: BuildPlan) -> tuple[Repair, ...]:
    """What can be put right of the findings, each once."""
    wrong = dict.fromkeys(finding.id for finding in plan.findings if finding.status in ("warn", "error"))
    found = ((id, REPAIRS[id](question)) for id in wrong if id in REPAIRS)
    return tuple(Repair(id=id, command=command) for id, command in found if command is not None)
