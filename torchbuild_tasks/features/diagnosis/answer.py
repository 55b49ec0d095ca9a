"""Say what a kind of error means here: whose its subject is, in which state that is, and what brings it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from torchbuild_tasks.catalog import ComponentRow
from torchbuild_tasks.features.diagnosis.components import readable
from torchbuild_tasks.features.diagnosis.kinds import Kind
from torchbuild_tasks.features.diagnosis.machine import Machine
from torchbuild_tasks.model import Diagnosis

PAGE: Final = "https://github.com/torchbuild/torchbuild-tasks/blob/main/docs/diagnose.md"
_WIDTH: Final = 200  # of a subject: a symbol may take a page
_NOT_THERE: Final = (
    "It is of {0} on {1}, and this is built for {2}, which has none: leave it out there (an #ifdef, a name of"
    " the link line), or take a release of the source for that system."
)
# A file that a package or a toolkit brought, and no build made.
_INSTALLED: Final = re.compile(r"/(?:usr|opt|lib\d*)/|.*-packages[/\\]|[A-Za-z]:[/\\]Program Files")
_ABSOLUTE: Final = re.compile(r"/|[A-Za-z]:[/\\]")
_FROM_SUBMODULE: Final = ("missing-header", "missing-source", "missing-package")


NOTHING: Final[Mapping[str, str]] = dict.fromkeys(
    ("?component", "?state", "?file", "component", "brings", "installs", "bundled"), ""
)


def whose(kind: Kind, machine: Machine) -> ComponentRow | None:
    """Return the part of the build that an error of this kind is about."""
    return machine.component(kind.row.look, kind.looked_up)


def names(kind: Kind, machine: Machine) -> Mapping[str, str]:
    """Return the names that sentences about this error may use, for rows that know its very words too."""
    row = whose(kind, machine)
    subject = _subject(kind)
    return {
        **{name: value for name, value in kind.groups.items() if name != "subject"},
        "subject": subject,
        "program": kind.program,
        "component": row.name if row else "",
        "brings": _brings(kind, row, machine) if row else "",
        "installs": _installs(row, machine) if row and not subject.endswith(".dylib") else "",
        "bundled": row.submodule if row and not machine.audience.has_no_flags else "",
        "installed": subject if _INSTALLED.match(subject) else "",
        "path": subject if kind.row.look == "tool" and _ABSOLUTE.match(subject) else "",
        "?state": _state(kind, row, machine),
        "?subject": f": {subject}" if subject else "",
        "?component": f", of {row.name}" if row else "",
        "?file": f" ({kind.groups['file']})" if kind.groups.get("file") else "",
        "?what": f" ({kind.groups['what']})" if kind.groups.get("what") else "",
    }


def answer(kind: Kind, machine: Machine) -> Diagnosis:
    """Return the cause and the fix of an error of this kind."""
    row = whose(kind, machine)
    known = names(kind, machine)
    said = kind.line.text.strip()[:_WIDTH]
    bare = {**known, "subject": known["subject"] or said, "what": said}  # for a shape that names nothing
    cause = machine.fill(kind.row.cause, (), known) or machine.fill(kind.row.cause, (), bare)
    if cause.startswith(kind.program):
        cause = cause[:1].upper() + cause[1:]
    commands = machine.helpful(kind.row.command)
    return Diagnosis(
        id=kind.row.id,
        cause=cause,
        fix=machine.fill(kind.row.fix, (), known) or machine.fill(kind.row.fix, (), bare),
        command=_command(kind, row, machine) or machine.fill_command(commands, (), known),
        see=f"{PAGE}#kinds",
        component=row.name if row else "",
    )


def _subject(kind: Kind) -> str:
    subject = readable(kind.subject) if kind.row.look == "symbol" else kind.subject
    return subject if len(subject) <= _WIDTH else f"{subject[:_WIDTH]} ..."


def _is_submodule(kind: Kind, row: ComponentRow | None, machine: Machine) -> bool:
    of_torch = row is not None and bool(row.submodule) and not machine.audience.has_no_flags
    return of_torch and kind.row.id in _FROM_SUBMODULE


def _state(kind: Kind, row: ComponentRow | None, machine: Machine) -> str:
    if row is None or not _is_submodule(kind, row, machine):
        return ""
    states = {"empty": f" ({row.submodule} is empty here)", "here": f" ({row.submodule} lies here)"}
    return states.get(machine.submodule_state(row.submodule), "")


def _brings(kind: Kind, row: ComponentRow, machine: Machine) -> str:
    """Return what brings a part: its submodule, its package, pip, and what its row says."""
    if row.systems and machine.audience.system not in ("", *row.systems):
        return _NOT_THERE.format(row.name, *map(str.title, (row.systems[0], machine.audience.system)))
    if kind.row.id == "undefined-symbol":  # what is linked lacks it, whatever is installed
        return machine.fix_of(row)
    said = []
    if _is_submodule(kind, row, machine):
        said.append(_submodule(row.submodule, machine))
    if install := machine.brings(row):
        said.append(
            f"{install[:1].upper()}{install[1:]}" if install.startswith("install") else f"Run: {install}"
        )
    elif row.pip and kind.row.id in ("missing-module", "missing-tool", "missing-header"):
        said.append(f"Run: {machine.value('python')} -m pip install {row.pip}")
    if fix := machine.fix_of(row):
        said.append(fix)
    return " ".join(each if each.endswith(".") else f"{each}." for each in said)


def _installs(row: ComponentRow, machine: Machine) -> str:
    """Return the command that installs what the loader looks for, and nothing that only a build takes."""
    by_pip = f"{machine.value('python')} -m pip install {row.pip}" if row.pip else ""
    install = by_pip or machine.brings(row)
    return "" if install.startswith("install ") else install


def _submodule(path: str, machine: Machine) -> str:
    match machine.submodule_state(path):
        case "here":
            return f"In a build of torch it comes from {path}, which lies here: configure again with --clean."
        case "empty" if machine.value("checkout"):
            return f"torchbuild source update fills {path}."
        case "empty":
            return (
                "Git knows no submodules here, so none can be fetched: torchbuild source get gets a checkout."
            )
    return f"In a checkout of torch it comes from {path}: git submodule update --init --recursive {path}."


def _command(kind: Kind, row: ComponentRow | None, machine: Machine) -> str:
    if (
        row is None
        or not _is_submodule(kind, row, machine)
        or machine.submodule_state(row.submodule) != "empty"
    ):
        return ""
    got = (
        "torchbuild source update --source {checkout}",
        "torchbuild source get {release} --source {beside}",
    )
    return machine.fill_command(got, ())
