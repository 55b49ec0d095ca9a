"""Look for what switches link with among the facts, before CMake turns the switch off or stops."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from torchbuild_tasks.catalog.match import applies
from torchbuild_tasks.catalog.rows import LinkedRow
from torchbuild_tasks.model import Choice, Finding, Status
from torchbuild_tasks.model.cuda import LIBRARIES, names_of
from torchbuild_tasks.plan.cuda.values import ChosenToolkit
from torchbuild_tasks.plan.dependent import State, truth
from torchbuild_tasks.plan.packages import installer, package_name, system_manager
from torchbuild_tasks.plan.question import PREFIX_PATH, SEARCHED, Question, say_unseen
from torchbuild_tasks.plan.variables import is_helper
from torchbuild_tasks.text.words import first_few
from torchbuild_tasks.values import replace

_SHOWN = 4
# What happens where CMake does not find it, and whether a build can go on from there.
_ENDS: Final[Mapping[str, tuple[str, Status]]] = {
    "off": ("it turns the switch off with a warning, and torch is built without it", "warn"),
    "own": ("it takes the checkout's own", "warn"),
    "stops": ("it stops", "error"),
    "fails": ("the compile stops", "error"),
}
_OWN_CHECK: Final = "USE_CUDNN"  # is told of whether it is asked for or not (plan/cuda/checks.py)


_REPOSITORY: Final = "developer.download.nvidia.com/compute/cuda/repos"


class Unlinked(NamedTuple):
    """A switch, and what it links with that was not found; `looked` says whether it was looked for."""

    choice: Choice
    rows: tuple[LinkedRow, ...]
    looked: bool

    @property
    def is_off(self) -> bool:
        """Say whether CMake will turn the switch off."""
        return self.looked and any(row.without == "off" for row in self.rows)


def find_unlinked(
    question: Question, toolkit: ChosenToolkit, choices: Iterable[Choice]
) -> tuple[Unlinked, ...]:
    """Return the switches of these choices that link with something that is not here."""
    if question.facts.tree.sample:
        return ()
    by_name = {choice.name: choice for choice in choices}
    state = State(question, {name: choice.value for name, choice in by_name.items()})
    found = []
    for name in dict.fromkeys(name for row in question.catalog.linked for name in row.names):
        choice = by_name.get(name)
        rows = tuple(_missing(question, toolkit, state, choice)) if choice else ()
        if choice and rows:
            looked = all(_was_looked_for(question, row) for row in rows)
            found.append(Unlinked(choice, rows, looked))
    return tuple(found)


def say_unlinked(choices: tuple[Choice, ...], unlinked: tuple[Unlinked, ...]) -> tuple[Choice, ...]:
    """Return the choices, where those that CMake turns off say so."""
    off = {each.choice.name: each for each in unlinked if each.is_off}
    return tuple(
        replace(choice, because=f"{choice.because}; CMake turns it off: {_names(off[choice.name])} not found")
        if choice.name in off
        else choice
        for choice in choices
    )


def check_linked(question: Question, unlinked: tuple[Unlinked, ...]) -> Iterator[Finding]:
    """Report what is asked for and links with something that is not here."""
    for each in unlinked:
        if each.choice.source != "preset" and each.choice.name != _OWN_CHECK:
            yield _report(question, each)


def _missing(question: Question, toolkit: ChosenToolkit, state: State, choice: Choice) -> Iterator[LinkedRow]:
    on = truth(choice.value)
    word = choice.name if on else f"{choice.name}=0" if on is False else ""
    for row in question.catalog.linked:
        needless = row.any and all(state.of(each) is False or state.why_off(each) for each in row.any)
        if word not in row.switches or needless or row.os not in ("", question.facts.host.os):
            continue
        here = _is_in_toolkit(question, toolkit, row) if row.toolkit else _is_here(question, row)
        if applies(row.torch, question.version) and not here:
            yield row


def _is_here(question: Question, row: LinkedRow) -> bool:
    facts = question.facts
    named = any(question.decided.get(each) for each in row.variables)
    brought = row.python and any(row.python in python.packages for python in facts.pythons)
    here = any(library.name == row.name for library in facts.linked or ())
    return bool(named or brought or here)


def _is_in_toolkit(question: Question, toolkit: ChosenToolkit, row: LinkedRow) -> bool:
    """Say whether the toolkit or another place has it; of a build without a toolkit others tell."""
    if toolkit.choice is None:
        return True
    from torchbuild_tasks.plan.cuda.variables import has_library, is_named  # a CPU build does without

    return any(
        has_library(question, toolkit, name) or is_named(question, name) or is_helper(question, name)
        for name in row.toolkit
    )


def _was_looked_for(question: Question, row: LinkedRow) -> bool:
    """Say whether the facts tell of it; on another machine nobody looked into what a flag names."""
    if question.unseen(*SEARCHED):
        return False
    return row.toolkit != () or question.facts.linked is not None


def _names(unlinked: Unlinked) -> str:
    names = [row.name for row in unlinked.rows]
    return f"{first_few(names, _SHOWN)} {'were' if len(names) > 1 else 'was'}"


def _report(question: Question, unlinked: Unlinked) -> Finding:
    choice, rows, looked = unlinked
    text = f"{choice.name}={choice.value} ({choice.because}): {_names(unlinked)} not "
    folders = list(dict.fromkeys(name for row in rows for name in _variables(row)))[:_SHOWN]
    unseen = question.unseen(*SEARCHED)
    if not looked and unseen:
        text += f"looked for in {say_unseen(unseen)}"
    elif not looked:
        text += f"looked for here, and nothing names its folder ({', '.join((*folders, PREFIX_PATH))})"
    else:
        text += f"found (looked in {', '.join((*folders, *_places(rows)))})"
    ends = list(dict.fromkeys(_end(question, row) for row in rows))
    text += f"; where CMake finds none, {', or '.join(says for says, _ in ends)}"
    status: Status = "error" if looked and any(state == "error" for _, state in ends) else "warn"
    status = "unknown" if not looked and unseen else status
    fix = "; or ".join(_ways(question, choice, rows))
    return Finding(id="linked", status=status, text=text, fix=f"{fix[0].upper()}{fix[1:]}.")


def _end(question: Question, row: LinkedRow) -> tuple[str, Status]:
    """Return what happens without it, and whether a build can go on from there."""
    tree = question.facts.tree
    if row.own and row.own in (*tree.empty, *tree.absent):
        return f"it stops, for {row.own} is empty", "error"
    return _ENDS[row.without]


def _variables(row: LinkedRow) -> tuple[str, ...]:
    """Return the variables that name the folder of what a row is about."""
    return (*row.variables, *(names_of(name)[0] for name in row.toolkit if name in LIBRARIES))


def _places(rows: tuple[LinkedRow, ...]) -> tuple[str, ...]:
    """Return where else was looked."""
    cuda = ("the toolkit", "NVIDIA's wheels") if any(row.toolkit for row in rows) else ()
    path = ("the folders beside those on PATH",) if any(not row.toolkit for row in rows) else ()
    prefix = (PREFIX_PATH,) if path else ()
    return (*cuda, *prefix, "conda", *path, "the system's folders")


def _ways(question: Question, choice: Choice, rows: tuple[LinkedRow, ...]) -> Iterator[str]:
    """Yield each way out: with it or without it."""
    if line := _install(question, rows):
        yield f"install what it needs: {line}"
    if line := _install_of_nvidia(question, rows):
        yield f"install it from NVIDIA's repository ({_REPOSITORY}): {line}"
    named = [row.only or PREFIX_PATH for row in rows if not row.toolkit]
    named += [row.only or name for row in rows if row.toolkit for name in _variables(row)[-1:]]
    made = (source.name for source in question.catalog.helper_source if source.os == question.facts.host.os)
    for name in {name for row in rows for name in row.toolkit}.intersection(made):
        yield f"make it: torchbuild helpers build {name} --cuda"
    if named:
        yield f"name its folder: {' '.join(f'--set {name}=FOLDER' for name in dict.fromkeys(named))}"
    yield f"drop {choice.name}"


def _install(question: Question, rows: tuple[LinkedRow, ...]) -> str:
    """Return the command that installs all of it; "" where the system has no package of one."""
    catalog, facts = question.catalog, question.facts
    manager = system_manager(facts, catalog)
    words = [package_name(catalog, manager, row.package) if row.package else "" for row in rows]
    packages = " ".join(shlex.quote(word) for text in words for word in text.split())
    return installer(facts, catalog).format(package=packages) if all(words) else ""


def _install_of_nvidia(question: Question, rows: tuple[LinkedRow, ...]) -> str:
    """Return the command that installs what NVIDIA's repository has of it; "" where no system's has."""
    manager = system_manager(question.facts, question.catalog)
    ends = {"apt": "-dev", **dict.fromkeys(("dnf", "yum", "zypper"), "-devel")}
    end = ends.get(manager)
    words = [f"{row.nvidia.removesuffix('-dev')}{end}" for row in rows if row.nvidia and end]
    return installer(question.facts, question.catalog).format(package=" ".join(words)) if words else ""
