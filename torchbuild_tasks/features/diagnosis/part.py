"""Tell which part of a build an error is about, how it stands here, and how one gets it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from torchbuild_tasks.catalog.diagnosis import ComponentRow
from torchbuild_tasks.features.diagnosis.components import bare_name, readable
from torchbuild_tasks.features.diagnosis.kinds import Kind
from torchbuild_tasks.features.diagnosis.machine import Machine
from torchbuild_tasks.features.diagnosis.programs import list_sought

WIDTH: Final = 200  # of a subject: a symbol may take a page
_NOT_THERE: Final = (
    "It is of {0} on {1}, and this is built for {2}, which has none: leave it out there (an #ifdef, a name of"
    " the link line), or take a release of the source for that system."
)
_INSTALLS: Final = re.compile(r"Run: |Install |\S*python\S* -m pip ")  # how a fix begins that brings a part
_PLAIN_NAMES: Final = 13  # from this CUDA on most of its wheels have no number in their names
_NUMBER: Final = re.compile(r"\.so\.(1[1-9])\b")
_FROM_SUBMODULE: Final = ("missing-header", "missing-source", "missing-package")
_BELOW: Final = (
    "It puts them into a folder {0}, which no compiler searches by itself: name that, too"
    " (-I/usr/include/{0}, include_dirs, CPATH; in conda $CONDA_PREFIX/include/{0})"
)
# What NVIDIA's wheels have no file for; those of CUDA 12 and 13 hold libX.so.N alone.
_UNNUMBERED: Final = (
    "That package has lib{0}.so.N alone, and -l{0} asks for lib{0}.so: in its lib folder make the link"
    " (ln -s lib{0}.so.N lib{0}.so), or write -l:lib{0}.so.N"
)
# A source line as GCC and clang show it below their message, with a header in quotes or in brackets.
_SHOWN: Final = re.compile(r"#\s*include\s*(?:\"(?P<own>[^\"]{1,200})\"|<[^>]{1,200}>)")


def find_component(kind: Kind, machine: Machine) -> ComponentRow | None:
    """Return the component that an error of this kind is about; a source's own file belongs to none."""
    found = (machine.component(kind.row.look, name) for name in list_sought(kind))
    row = next(filter(None, found), None)
    return None if own_header(kind, row, machine) else row


def read_part(
    kind: Kind, row: ComponentRow | None, machine: Machine, *, by_import: bool
) -> Mapping[str, str]:
    """Return the names about the part: what it is called, how it stands here, and what brings it.

    Args:
        kind: the kind of the error.
        row: the part's row; without one the only name is that of CUDA's packages.
        machine: the machine and what the log shows.
        by_import: whether Python wanted it, and no program that was started.
    """
    packages = {"cuda packages": machine.cuda_packages(row)}
    if row is None:
        return packages
    subject = read_subject(kind)
    brings = _brings(kind, row, machine)
    named = "" if _has_same_name(kind, row) else row.name
    cuda = _its_cuda(row, subject)
    return {
        "component": named,
        "?component": f", of {named}" if named else "",
        "?state": _state(kind, row, machine),
        "brings": brings,
        "by package": brings if brings.startswith("Run: ") else "",
        "had": _had(brings, machine),
        "installs": "" if subject.endswith(".dylib") else _installs(row, machine),
        "runtime": machine.fill((row.runtime,), (), {"by import": "Python" if by_import else ""}),
        "its cuda": cuda,
        "its wheel": _its_wheel(row, cuda),
        "vendored": row.name if row.submodule and not machine.builds_torch else "",
        "packaged": _packaged(kind, machine) if row.submodule else "",
        "bundled": row.submodule if machine.builds_torch else "",
        "cmake": kind.program if kind.program == "CMake" and not (row.fix or row.like) else "",
        "?aside": f" {row.aside}" if row.aside else "",
        **packages,
        "of cuda": row.name if row.name.startswith("the CUDA toolkit") else "",
        "of torch": row.name if row.name == "torch" and not machine.builds_torch else "",
        "system header": subject if "libc" in row.names.get("apt", "") else "",
    }


def read_subject(kind: Kind) -> str:
    """Return what the error is about as a sentence may show it: a symbol readable, nothing of a page."""
    subject = readable(kind.subject) if kind.row.look == "symbol" else kind.subject
    subject = subject.partition(" Call Stack (most recent")[0]
    if subject[1:].endswith(".") and not subject.endswith(".."):  # a sentence's
        subject = subject[:-1]
    return subject if len(subject) <= WIDTH else f"{subject[:WIDTH]} ..."


def own_header(kind: Kind, row: ComponentRow | None, machine: Machine) -> str:
    """Return the name of a header that is the source's own: no package has it.

    That is shown by its path, a folder that the including file lies in too, or the quotes around it.
    """
    if kind.row.look != "header" or (row and row not in machine.catalog.packaged):
        return ""
    name = kind.subject.replace("\\", "/")
    file = kind.line.text.strip().partition(":")[0].replace("\\", "/")
    if "-packages/" in file or file.startswith("/usr/"):
        return ""
    shown = next((match for match in _SHOWN.finditer(machine.audience.text) if name in match[0]), None)
    quoted = shown is not None and shown["own"] is not None
    same_folder = "/" in name and f"/{name.partition('/')[0]}/" in f"/{file}"
    return name.rpartition("/")[2] if quoted or same_folder or name.startswith(".") else ""


def _has_same_name(kind: Kind, row: ComponentRow) -> bool:
    """Return whether a component's name is in the subject, as CUDA's of the CUDA toolkit."""
    part = row.name.lower()
    subject = kind.subject.lower()
    return part == subject or (kind.row.look == "package" and subject in part)


def _packaged(kind: Kind, machine: Machine) -> str:
    """Return the command that installs a part which torch builds from a submodule, where it has a package."""
    row = machine.packaged(kind.row.look, kind.looked_up)
    return machine.brings(row) if row else ""


def _is_submodule(kind: Kind, row: ComponentRow | None, machine: Machine) -> bool:
    of_torch = row is not None and bool(row.submodule) and machine.builds_torch
    return of_torch and kind.row.id in _FROM_SUBMODULE


def _state(kind: Kind, row: ComponentRow | None, machine: Machine) -> str:
    if row is None or not _is_submodule(kind, row, machine):
        return ""
    states = {"empty": f" ({row.submodule} is empty here)", "here": f" ({row.submodule} lies here)"}
    return states.get(machine.submodule_state(row.submodule), "")


def _brings(kind: Kind, row: ComponentRow, machine: Machine) -> str:
    """Return how to get a component: its submodule, its package, pip, and its row's fix."""
    if row.systems and machine.audience.system not in ("", *row.systems):
        return _NOT_THERE.format(row.name, *map(str.title, (row.systems[0], machine.audience.system)))
    if kind.row.id == "undefined-symbol":  # what is linked lacks it, whatever is installed
        fix = machine.fix_of(row)
        return "" if _INSTALLS.match(fix) else fix
    if row.name.startswith("python3-") and kind.row.look == "tool":  # a program of PyPI, for this Python
        return f"Run: {machine.value('python')} -m pip install {row.name.removeprefix('python3-')}."
    ways = []
    if _is_submodule(kind, row, machine):
        ways.append(_submodule(row.submodule, machine))
    by_pip = kind.row.look == "module" and row.pip  # a package of the system's has modules for its own Python
    if not (by_pip or ways) and (install := machine.brings(row)):
        ways.append(f"Run: {install}")
        if row.include and kind.row.look == "header":
            ways.append(_BELOW.format(row.include))
    elif row.pip and (
        kind.row.id in ("missing-module", "missing-tool") or kind.row.look == "header" and row.pip_headers
    ):
        ways.append(f"Run: {machine.value('python')} -m pip install {row.pip}")
    if (fix := machine.fix_of(row)) and (machine.builds_torch or not ways):
        ways.append(f"{fix} {row.aside}".strip())
    if kind.row.id == "missing-library" and any("pip install nvidia-" in way for way in ways):
        ways.append(_UNNUMBERED.format(bare_name("library", kind.subject)))
    return " ".join(each if each.endswith(".") else f"{each}." for each in ways)


def _had(brings: str, machine: Machine) -> str:
    """Return the packages of a command that installs, where the log shows all of them as installed."""
    command = brings.removeprefix("Run: ").partition(". ")[0].rstrip(".").split()
    names = (
        command[command.index("install") + 1 :] if "install" in command and brings.startswith("Run: ") else []
    )
    return " ".join(names) if names and machine.audience.installed.issuperset(names) else ""


def _its_cuda(row: ComponentRow, subject: str) -> str:
    """Return the release of CUDA that a shared library is of, by the number in its name."""
    number = _NUMBER.search(subject)
    return number[1] if row.wheel and number else ""


def _its_wheel(row: ComponentRow, cuda: str) -> str:
    """Return the wheel that holds a shared library of this release of CUDA."""
    return f"{row.wheel}-cu{cuda}" if cuda and int(cuda) < _PLAIN_NAMES else row.wheel if cuda else ""


def _installs(row: ComponentRow, machine: Machine) -> str:
    """Return the command that installs what the loader looks for, and nothing that only a build takes."""
    if row in machine.catalog.packaged:  # a package for building, of the current release alone
        return ""
    by_pip = f"{machine.value('python')} -m pip install {row.pip}" if row.pip and not row.modules else ""
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
                "Git knows no submodules here, so none can be fetched: torchbuild source get clones torch"
                " with all of them into a folder of its own."
            )
    return f"In a checkout of torch it comes from {path}: git submodule update --init --recursive {path}."


def choose_command(kind: Kind, row: ComponentRow | None, machine: Machine) -> str:
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
