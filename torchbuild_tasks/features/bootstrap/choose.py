"""Decide which missing packages a build needs, and the commands that install them."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from torchbuild_tasks.catalog.match import series
from torchbuild_tasks.catalog.packaging import ManagerRow, WantRow
from torchbuild_tasks.errors import RequirementsError, UsageError
from torchbuild_tasks.model import Command
from torchbuild_tasks.plan.environment import ChosenPython, choose_python
from torchbuild_tasks.plan.packages import (
    install_line,
    name_here,
    package_name,
    package_row,
    repository_line,
    system_manager,
)
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.text.show import shell_text
from torchbuild_tasks.values import replace

Become = tuple[str, ...] | None

# -n: a password cannot be typed into a command whose output is read.
BECOME: Final = (("sudo", "-n"), ("doas", "-n"))


class Missing(msgspec.Struct, frozen=True, kw_only=True):
    """One missing package; `name` is its name in the package manager, "" if it has none."""

    package: str
    kind: Literal["needed", "faster"]
    because: str
    name: str = ""


class Bootstrap(msgspec.Struct, frozen=True, kw_only=True):
    """The missing packages and the commands for them; after these `ran`, the packages that are `left`.

    `commands` are for what is needed, `faster` for the rest: a package manager that lacks one name installs
    none of those in its command. `elsewhere` are lines for packages of repositories that are off: to turn one
    on is for whoever owns the machine to decide. With `rootless`, no program here makes anyone root, and the
    commands are for root's own shell.
    """

    manager: str
    missing: tuple[Missing, ...]
    commands: tuple[Command, ...]
    faster: tuple[Command, ...] = ()
    elsewhere: tuple[str, ...] = ()
    rootless: bool = False
    ran: bool = False
    left: tuple[Missing, ...] = ()


def plan_bootstrap(question: Question, *, become: Become) -> Bootstrap:
    """Decide what to install, and with which commands.

    Args:
        question: the machine and the flags; --manager names another package manager than the system's.
        become: the words before a command that needs root; None where nothing here gives these rights.
    """
    facts, catalog = question.facts, question.catalog
    own = system_manager(facts, catalog)
    name = question.request.manager or own
    row = next((row for row in catalog.manager if row.name == name), None)
    missing = tuple(
        replace(
            each,
            name=name_here(facts, catalog, each.package)
            if name == own
            else package_name(catalog, name, each.package),
        )
        for each in _missing(question)
    )
    if row is None:
        return Bootstrap(manager="", missing=missing, commands=())
    off = {
        each
        for each in missing
        if each.name and name == own and repository_line(facts, catalog, each.package)
    }
    here = [each for each in missing if each.name and each not in off]
    needed = _commands(question, row, [each for each in here if each.kind == "needed"], become)
    faster = _commands(question, row, [each for each in here if each.kind == "faster"], become)
    return Bootstrap(
        manager=name,
        missing=missing,
        commands=(*_refresh(question, row, become), *needed) if needed or faster else (),
        faster=faster,
        elsewhere=tuple(install_line(facts, catalog, each.package) for each in missing if each in off),
        rootless=row.root and become is None,
    )


def typed(command: Command) -> str:
    """Return a command as a person types it, who can give a password."""
    argv = command.argv
    return shell_text(argv[:1] + argv[2:] if argv[:2] in BECOME else argv)


def require_commands(plan: Bootstrap) -> None:
    """Refuse a plan that cannot install all needed packages.

    Raises:
        UsageError: no package manager is known here, or it has no name for what is needed.
        RequirementsError: only root may call it, and nothing here makes anyone root.
    """
    if plan.rootless and (commands := (*plan.commands, *plan.faster)):
        raise RequirementsError(
            f"{plan.manager} installs for root alone, and neither sudo nor doas is here.",
            next_step="\n".join(("Become root (su -), and run there:", *map(typed, commands))),
        )
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
    question: Question, manager: ManagerRow, named: list[Missing], become: Become
) -> tuple[Command, ...]:
    """Return the commands that install these: one, or one each where the manager takes one."""
    groups = [[each] for each in named] if manager.single else [named] if named else []
    return tuple(
        Command(
            argv=(
                *_root_words(manager, become),
                *manager.install,
                *_words(question, manager.name, group),
            ),
            cwd=_root(question),
            because=", ".join(each.package for each in group),
        )
        for group in groups
    )


def _refresh(question: Question, manager: ManagerRow, become: Become) -> tuple[Command, ...]:
    """Return the command by which the manager learns which packages there are, if it needs one."""
    argv = (*_root_words(manager, become), *manager.refresh)
    command = Command(argv=argv, cwd=_root(question), because="which packages there are")
    return (command,) if manager.refresh else ()


def _root_words(manager: ManagerRow, become: Become) -> tuple[str, ...]:
    return (become or ()) if manager.root else ()


def _root(question: Question) -> str:
    return "/" if question.facts.host.os != "windows" else "C:\\"


def _words(question: Question, manager: str, group: list[Missing]) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(each.name for each in group))
    rows = (package_row(question.catalog, each.package)[0] for each in group)
    options = (word for row in rows if row for word in row.options.get(manager, ()))
    return (*names, *options)
