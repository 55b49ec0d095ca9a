"""What a check of the doctor sees, and how it speaks."""

from __future__ import annotations

from functools import cached_property

import msgspec

from torchbuild_tasks.model import BuildPlan, Facts, Finding, Health, Python, Status
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.plan.variables import is_cuda

Said = tuple[Finding, ...]


class View(msgspec.Struct, frozen=True, dict=True):
    """One doctor's look: what was asked, the plan that follows, and the surroundings."""

    question: Question
    plan: BuildPlan
    health: Health

    @property
    def facts(self) -> Facts:
        """The machine and the tree."""
        return self.question.facts

    @property
    def windows(self) -> bool:
        """Whether it is a Windows machine."""
        return self.facts.host.os == "windows"

    @property
    def cuda(self) -> bool:
        """Whether the build has CUDA."""
        return is_cuda(self.question)

    def choice(self, name: str) -> str:
        """The value of a choice of the plan; "" where it has none."""
        return next((choice.value for choice in self.plan.choices if choice.name == name), "")

    @cached_property
    def python(self) -> Python | None:
        """The interpreter that gets torch, or the one that its venv stands on."""
        target = self.plan.environment.python
        exact = (python for python in self.facts.pythons if python.executable == target)
        usable = (python for python in self.facts.pythons if not python.problem)
        return next(exact, next(usable, None))


def said(id: str, status: Status, text: str, fix: str = "") -> Said:
    """One finding, as a check returns it."""
    return (Finding(id=id, status=status, text=text, fix=fix),)
