"""Check that what a switch links with is on the machine, before CMake turns the switch off or stops."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from torchbuild_tasks.catalog.match import applies
from torchbuild_tasks.catalog.rows import LinkedRow
from torchbuild_tasks.model import Choice, Finding
from torchbuild_tasks.plan.dependent import State, truth
from torchbuild_tasks.plan.packages import installer, package_name, system_manager
from torchbuild_tasks.plan.question import Question

PREFIX_PATH = "CMAKE_PREFIX_PATH"
_SHOWN = 4


def check_linked(question: Question, off: set[str]) -> Iterator[Finding]:
    """Report what is asked for and links with something that is not here; `off` cannot be on anyway."""
    if question.facts.tree.sample:
        return
    state = State(question, {name: choice.value for name, choice in question.decided.items()})
    switches = dict.fromkeys(name for row in question.catalog.linked for name in row.switches)
    for name in switches:
        choice = question.decided.get(name)
        if choice is None or choice.source == "preset" or name in off or not truth(choice.value):
            continue
        if missing := [row for row in question.catalog.linked if _is_missing(question, state, row, name)]:
            yield _report(question, choice, missing)


def _is_missing(question: Question, state: State, row: LinkedRow, name: str) -> bool:
    facts = question.facts
    needless = row.any and all(state.of(each) is False or state.why_off(each) for each in row.any)
    if name not in row.switches or needless or row.os not in ("", facts.host.os):
        return False
    named = any(question.decided.get(each) for each in row.variables)
    brought = row.python and any(row.python in python.packages for python in facts.pythons)
    here = any(library.name == row.name for library in facts.linked or ())
    return applies(row.torch, question.version) and not (named or brought or here)


def _report(question: Question, choice: Choice, missing: list[LinkedRow]) -> Finding:
    names = [row.name for row in missing]
    shown = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
    several = "were" if len(names) > 1 else "was"
    folders = list(dict.fromkeys(each for row in missing for each in row.variables))[:_SHOWN]
    text = f"{choice.name}={choice.value} ({choice.because}): "
    if question.facts.linked is None:
        named = ", ".join((*folders, PREFIX_PATH))
        text += f"{shown} {several} not looked for here, and nothing names its folder ({named})"
    else:
        looked = (*folders, PREFIX_PATH, "conda, the folders beside those on PATH", "the system's folders")
        text += f"{shown} {several} not found (looked in {', '.join(looked)})"
    ends = dict.fromkeys(row.without for row in missing)
    text += f"; where CMake finds none, {', or '.join(ends)}"
    ways = [f"name its folder: --set {PREFIX_PATH}=FOLDER", f"drop {choice.name}"]
    if line := _install(question, missing):
        ways.insert(0, f"install what it needs: {line}")
    fix = "; or ".join(ways)
    return Finding(id="linked", status="warn", text=text, fix=f"{fix[0].upper()}{fix[1:]}.")


def _install(question: Question, missing: list[LinkedRow]) -> str:
    """Return the command that installs all of it; "" where the system has no package of one."""
    catalog, facts = question.catalog, question.facts
    manager = system_manager(facts, catalog)
    words = [package_name(catalog, manager, row.package) if row.package else "" for row in missing]
    packages = " ".join(shlex.quote(word) for text in words for word in text.split())
    return installer(facts, catalog).format(package=packages) if all(words) else ""
