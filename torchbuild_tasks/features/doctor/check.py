"""The input of the doctor's checks."""

from __future__ import annotations

from functools import cached_property

import msgspec

from torchbuild_tasks.model import BuildPlan, Facts, Health, Python
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.plan.variables import is_cuda


class View(msgspec.Struct, frozen=True, dict=True):
    """The input of a check: the question, the plan that follows, and the surroundings of the build."""

    question: Question
    plan: BuildPlan
    health: Health

    @property
    def facts(self) -> Facts:
        """The machine and the tree."""
        return self.question.facts

    @property
    def windows(self) -> bool:
        """True on a Windows machine."""
        return self.facts.host.os == "windows"

    @property
    def cuda(self) -> bool:
        """True for a build with CUDA."""
        return is_cuda(self.question)

    def choice(self, name: str) -> str:
        """Return the value of a choice of the plan; "" without it."""
        return self.plan.decided.get(name, "")

    @cached_property
    def python(self) -> Python | None:
        """The interpreter that gets torch, or the one below its venv."""
        target = self.plan.environment.python
        usable = (python for python in self.facts.pythons if not python.problem)
        return self.facts.python_at(target) or next(usable, None)
