"""Say how a part of a build gets here: its submodule, a package that has the very file, pip, its own fix."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from torchbuild_tasks.catalog.diagnosis import ComponentRow
from torchbuild_tasks.features.diagnosis.components import bare_name
from torchbuild_tasks.features.diagnosis.kinds import Kind
from torchbuild_tasks.features.diagnosis.machine import Machine
from torchbuild_tasks.features.diagnosis.programs import is_numbered

_NOT_THERE: Final = (
    "It is of {0} on {1}, and this is built for {2}, which has none: leave it out there (an #ifdef, a name of"
    " the link line), or take a release of the source for that system."
)
# Windows' own package manager has programs, and no libraries for a build.
_ON_WINDOWS: Final = (
    "conda install -c conda-forge {0} brings it, into the folder Library of that environment: name that in"
    " CMAKE_PREFIX_PATH, or its include in INCLUDE and its lib in LIB. Without conda: vcpkg install, mostly"
    " by the same name, with CMAKE_TOOLCHAIN_FILE naming vcpkg's"
)
_INSTALLS: Final = re.compile(r"Run: |Install |\S*python\S* -m pip ")  # how a fix begins that brings a part
_OF_PYPI: Final = " -m pip install "
_SPLIT: Final = ("apt", "dnf", "yum", "zypper")  # whose packages are parts of a project
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


def _is_submodule(kind: Kind, row: ComponentRow | None, machine: Machine) -> bool:
    of_torch = row is not None and bool(row.submodule) and machine.builds_torch
    return of_torch and kind.row.id in _FROM_SUBMODULE


def submodule_word(kind: Kind, row: ComponentRow | None, machine: Machine) -> str:
    """Say how the submodule of a part is here; "" for a part of another kind."""
    if row is None or not _is_submodule(kind, row, machine):
        return ""
    states = {"empty": f" ({row.submodule} is empty here)", "here": f" ({row.submodule} lies here)"}
    return states.get(machine.submodule_state(row.submodule), "")


def bring(kind: Kind, row: ComponentRow, machine: Machine) -> str:
    """Return how to get a component: its submodule, its package, pip, and its row's fix."""
    if row.systems and machine.audience.system not in ("", *row.systems):
        return _NOT_THERE.format(row.name, *map(str.title, (row.systems[0], machine.audience.system)))
    if kind.row.id == "undefined-symbol":  # what is linked lacks it, whatever is installed
        fix = machine.fix_of(row)
        return "" if _INSTALLS.match(fix) or _OF_PYPI in fix else fix
    if row.name.startswith("python3-") and kind.row.look == "tool":  # a program of PyPI, for this Python
        return f"Run: {machine.value('python')} -m pip install {row.name.removeprefix('python3-')}."
    ways = []
    if _is_submodule(kind, row, machine):
        ways.append(_submodule(row.submodule, machine))
    ways.extend(_list_installs(kind, row, machine, from_submodule=bool(ways)))
    # Where a program is wanted, what is told of the same part's libraries is no help.
    of_program = kind.row.look != "tool" or not (row.libs and row.names)
    if of_program and (fix := machine.fix_of(row)) and (machine.builds_torch or not ways):
        ways.append(f"{fix} {row.aside}".strip())
    if kind.row.id == "missing-library" and any("pip install nvidia-" in way for way in ways):
        ways.append(_UNNUMBERED.format(bare_name("library", kind.subject)))
    return " ".join(each if each.endswith(".") else f"{each}." for each in ways)


def _list_installs(kind: Kind, row: ComponentRow, machine: Machine, *, from_submodule: bool) -> Iterator[str]:
    """Yield the commands that install a part: of the system's package manager, else of another one."""
    by_pip = kind.row.look == "module" and row.pip  # a package of the system's has modules for its own Python
    holder = find_holder(kind, row, machine)
    if not (by_pip or from_submodule) and (install := machine.brings(holder)):
        yield f"Run: {install}"
        if row.include and kind.row.look == "header" and holder is row:
            yield _BELOW.format(row.include)
    elif not from_submodule and machine.manager == "winget" and row.packages and "conda" in row.names:
        yield _ON_WINDOWS.format(row.names["conda"])
    elif row.pip and (
        kind.row.id in ("missing-module", "missing-tool") or kind.row.look == "header" and row.pip_headers
    ):
        yield f"Run: {machine.value('python')} -m pip install {row.pip}"


def find_holder(kind: Kind, row: ComponentRow, machine: Machine) -> ComponentRow:
    """Return what brings the very file: the package that Debian's index has it in, else the part itself.

    A part has beginnings of names, and its packages may hold other files of these than the one that lacks.
    Other managers than these have the whole of a project in one package.
    """
    own = row.names.get("apt", "").split()
    if kind.subject in (*row.headers, *own) or is_numbered(kind, row) or machine.manager not in _SPLIT:
        return row
    found = machine.packaged(kind.row.look, kind.looked_up)
    return found if found and own and found.name not in own else row


def packages_had(brings: str, machine: Machine) -> str:
    """Return the packages of a command that installs, where the log shows all of them as installed."""
    command = brings.removeprefix("Run: ").partition(". ")[0].rstrip(".").split()
    names = (
        command[command.index("install") + 1 :] if "install" in command and brings.startswith("Run: ") else []
    )
    return " ".join(names) if names and machine.audience.installed.issuperset(names) else ""


def cuda_of_library(row: ComponentRow | None, subject: str) -> str:
    """Return the release of CUDA that a shared library is of, by the number in its name."""
    number = _NUMBER.search(subject)
    return number[1] if row and row.wheel and number else ""


def install_for_loader(row: ComponentRow, machine: Machine) -> str:
    """Return the command that installs what the loader looks for, and nothing that only a build takes."""
    if row in machine.catalog.packaged:  # a package for building, of the current release alone
        return ""
    by_pip = f"{machine.value('python')} -m pip install {row.pip}" if row.pip and not row.modules else ""
    install = by_pip or machine.brings(row)
    return "" if install.startswith("install ") else install


def our_command(kind: Kind, row: ComponentRow | None, machine: Machine) -> str:
    """Return our command that fetches an empty submodule; "" where that is not what lacks."""
    if (
        row is None
        or not _is_submodule(kind, row, machine)
        or machine.submodule_state(row.submodule) != "empty"
    ):
        return ""
    ways = (
        "torchbuild source update --source {checkout}",
        "torchbuild source get {release} --source {beside}",
    )
    return machine.fill_command(ways, ())


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
