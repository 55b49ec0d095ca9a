"""The names in the sentences of rows, as this machine and this build have them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from torchbuild_tasks.catalog import GIB, Catalog
from torchbuild_tasks.core.jobs import usable_memory
from torchbuild_tasks.core.packages import install_line
from torchbuild_tasks.core.rows import parse_version
from torchbuild_tasks.model import BuildPlan, Facts

_GROUP: Final = re.compile(r"\{(\d)\}")
# A name may hold a group itself: {package:g++-{1}}.
_NAME: Final = re.compile(r"\{((?:[^{}]|\{\d\})+)\}")


class Machine:
    """What is known by name; a name that is not known has no value.

    Args:
        facts: the machine and the tree.
        plan: what this build was to do, or what one here would do.
        catalog: the rows of packages.
        built: whether the log is of that very build; else nobody knows what its jobs and architectures were.
    """

    def __init__(self, facts: Facts, plan: BuildPlan, catalog: Catalog, *, built: bool) -> None:
        self._facts, self._catalog = facts, catalog
        self._values = {**_values(facts, plan), **(_of_the_build(facts, plan) if built else {})}

    def value(self, name: str) -> str:
        """What a name stands for here; empty when that is not known."""
        if name.startswith("package:"):
            return self._install(name.removeprefix("package:"))
        if name.startswith("g++<="):
            return self._newest_gcc(name.removeprefix("g++<="))
        return self._values.get(name, "")

    def fill(self, sentences: Sequence[str], groups: Sequence[str]) -> str:
        """The first of these sentences whose names are all known, filled in; "" for none."""
        return next(filter(None, (self._filled(sentence, groups) for sentence in sentences)), "")

    def _filled(self, sentence: str, groups: Sequence[str]) -> str:
        """A sentence with its names filled in, in one pass: what a log says is never read as a name."""
        values: dict[str, str] = {}
        for name in _NAME.findall(sentence):
            if name.isdecimal():
                values[name] = _group(name, groups)
            else:
                inner = _GROUP.sub(lambda match: _group(match[1], groups), name)
                values[name] = self.value(inner)
        return _NAME.sub(lambda match: values[match[1]], sentence) if all(values.values()) else ""

    def _install(self, package: str) -> str:
        """The command that installs a package; without a package manager, a sentence that names it."""
        return install_line(self._facts, self._catalog, package) or f"install {package}"

    def _newest_gcc(self, limit: str) -> str:
        """The path of the newest installed g++ of at most this major version."""
        named = (
            (parse_version(tool.version), tool.path) for tool in self._facts.compilers if tool.name == "g++"
        )
        found = [(version, path) for version, path in named if version and path]
        most = int(limit) if limit.isdecimal() else 0
        fitting = [(version, path) for version, path in found if version.major <= most]
        return max(fitting)[1] if fitting else ""


def _group(number: str, groups: Sequence[str]) -> str:
    return groups[int(number) - 1] if int(number) <= len(groups) else ""


def _values(facts: Facts, plan: BuildPlan) -> Mapping[str, str]:
    choices = {choice.name: choice.value for choice in plan.choices}
    here = facts.tree.problem is None
    values = {
        "source": plan.source if here else ".",
        "build": plan.build_dir if here else "build",
        "python": plan.environment.python if here and plan.environment.python else "python",
        "toolset": choices.get("toolset", ""),
        "libc": facts.host.libc or "",
    }
    if choices.get("jobs", "").isdecimal():
        values["jobs"] = str(max(1, int(choices["jobs"]) // 2))
    if facts.cuda is not None:
        values["gpus"] = ";".join(sorted({gpu.capability for gpu in facts.cuda.gpus if gpu.capability}))
        values["driver cuda"] = (facts.cuda.driver.cuda or "") if facts.cuda.driver else ""
    return values


def _of_the_build(facts: Facts, plan: BuildPlan) -> Mapping[str, str]:
    choices = {choice.name: choice.value for choice in plan.choices}
    room = usable_memory(facts.memory)
    return {
        "planned jobs": choices.get("jobs", ""),
        "free memory": f"{room[0] / GIB:.1f} GiB" if room else "",
        "archs": choices.get("TORCH_CUDA_ARCH_LIST", ""),
    }
