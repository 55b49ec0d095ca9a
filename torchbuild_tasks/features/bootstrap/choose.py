"""Decide which missing packages a build needs, and the commands that install them."""

from __future__ import annotations

from typing import Literal

import msgspec

from torchbuild_tasks.catalog.match import series
from torchbuild_tasks.catalog.rows import ManagerRow, WantRow
from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.model import Command
from torchbuild_tasks.plan.environment import ChosenPython, choose_python
from torchbuild_tasks.plan.packages import package_name, package_row, system_manager
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.values import replace


class Missing(msgspec.Struct, frozen=True, kw_only=True):
    """One missing package; `name` is its name in the package manager, "" if it has none."""

    package: str
    kind: Literal["needed", "faster"]
    because: str
    name: str = ""


class Bootstrap(msgspec.Struct, frozen=True, kw_only=True):
    """The missing packages and the commands for them; after these `ran`, the packages that are `left`."""

    manager: str
    missing: tuple[Missing, ...]
    commands: tuple[Command, ...]
    ran: bool = False
    left: tuple[Missing, ...] = ()


def plan_bootstrap(question: Question, *, administrator: bool) -> Bootstrap:
    """Decide what to install, and with which commands.

    Args:
        question: the machine and the flags; --manager names another package manager than the system's.
        administrator: whether the commands run as root anyway.
    """
    name = question.request.manager or system_manager(question.facts, question.catalog)
    row = next((row for row in question.catalog.manager if row.name == name), None)
    missing = tuple(
        replace(each, name=package_name(question.catalog, name, each.package)) for each in _missing(question)
    )
    commands = _commands(question, row, missing, administrator) if row else ()
    return Bootstrap(manager=name if row else "", missing=missing, commands=commands)


def require_commands(plan: Bootstrap) -> None:
    """Refuse a plan that cannot install all needed packages.

    Raises:
        UsageError: no package manager is known here, or it has no name for what is needed.
    """
    nameless = [each for each in plan.missing if each.kind == "needed" and not each.name]
    if not nameless:
        return
    raise UsageError(
        f"No package of {plan.manager or 'this system'} is known for: "
        f"{', '.join(each.package for each in nameless)}",
        looked=tuple(f"{each.package}: {each.because}" for each in nameless),
        next_step="Install it by hand, or name another manager: --manager conda",
    )


def _missing(question: Question) -> tuple[Missing, ...]:
    rows = (row for row in question.catalog.want if row.os in ("", question.facts.host.os))
    chosen = choose_python(question)
    version = series(chosen.python.version) if chosen.python else ""
    missing = []
    for row in rows:
        if _is_missing(question, row, chosen):
            package = f"{row.package}-{version}" if row.part.startswith("python ") else row.package
            missing.append(Missing(package=package, kind=row.kind, because=row.because))
    return tuple(missing)


def _is_missing(question: Question, row: WantRow, chosen: ChosenPython) -> bool:
    facts = question.facts
    if row.tools:
        programs = (*facts.compilers, *facts.tools)
        return not any(tool.name in row.tools and tool.path for tool in programs)
    if row.part == "msvc":
        return facts.windows is not None and not any(toolset.cl for toolset in facts.windows.toolsets)
    usable = chosen.python if chosen.python and not chosen.python.problem else None
    if row.part == "python":
        return usable is None
    if usable is None or facts.tree.sample:
        return False
    if row.part == "python venv":
        return usable.venv is False and chosen.environment.create is not None
    return usable.headers is False


def _commands(
    question: Question, manager: ManagerRow, missing: tuple[Missing, ...], administrator: bool
) -> tuple[Command, ...]:
    # -n: a password cannot be typed into a command whose output is read.
    before = ("sudo", "-n") if manager.root and not administrator else ()
    named = [each for each in missing if each.name]
    groups = [[each] for each in named] if manager.single else [named] if named else []
    commands = [
        Command(
            argv=(*before, *manager.install, *_words(question, manager.name, group)),
            cwd="/" if question.facts.host.os != "windows" else "C:\\",
            because=", ".join(each.package for each in group),
        )
        for group in groups
    ]
    if commands and manager.refresh:
        refresh = Command(
            argv=(*before, *manager.refresh), cwd=commands[0].cwd, because="which packages there are"
        )
        commands.insert(0, refresh)
    return tuple(commands)


def _words(question: Question, manager: str, group: list[Missing]) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(each.name for each in group))
    rows = (package_row(question.catalog, each.package)[0] for each in group)
    options = (word for row in rows if row for word in row.options.get(manager, ()))
    return (*names, *options)
