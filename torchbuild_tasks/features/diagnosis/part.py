"""Tell which part of a build an error is about, and what sentences may say of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from torchbuild_tasks.catalog.diagnosis import ComponentRow
from torchbuild_tasks.features.diagnosis.bringing import (
    bring,
    cuda_of_library,
    install_for_loader,
    packages_had,
    submodule_word,
)
from torchbuild_tasks.features.diagnosis.components import readable
from torchbuild_tasks.features.diagnosis.copies import INSTALLED
from torchbuild_tasks.features.diagnosis.kinds import COMPILED, Kind
from torchbuild_tasks.features.diagnosis.machine import Machine
from torchbuild_tasks.features.diagnosis.programs import list_sought

WIDTH: Final = 200  # of a subject: a symbol may take a page
# What pip writes behind the message that it quotes: the page that it asked for.
_REQUESTED: Final = re.compile(r"[\"']\)+[\"']?: /\S*$")
_PLAIN_NAMES: Final = 13  # from this CUDA on most of its wheels have no number in their names
_DRIVER: Final = "the NVIDIA driver"
_OF_LIBC: Final = ("gnu", "bits", "asm", "sys", "linux")  # parts of it are packages for one processor each
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
    brings = bring(kind, row, machine)
    named = "" if _has_same_name(kind, row) else row.name
    cuda = cuda_of_library(row, subject)
    return {
        "component": named,
        "?component": f", of {named}" if named else "",
        "?state": submodule_word(kind, row, machine),
        "brings": brings,
        "by package": brings if brings.startswith("Run: ") else "",
        "brew name": row.names.get("brew", ""),
        "had": packages_had(brings, machine),
        "installs": "" if subject.endswith(".dylib") else install_for_loader(row, machine),
        "runtime": machine.fill((row.runtime,), (), {"by import": "Python" if by_import else ""}),
        "its cuda": cuda,
        "its wheel": _its_wheel(row, cuda),
        "other cuda": _other(machine.value("cuda of packages"), cuda),
        "vendored": row.name if row.submodule and not machine.builds_torch else "",
        "packaged": _packaged(kind, machine) if row.submodule else "",
        "bundled": row.submodule if machine.builds_torch else "",
        "cmake": kind.program if kind.program == "CMake" and not (row.fix or row.like) else "",
        "?aside": f" {row.aside}" if row.aside else "",
        **packages,
        "of cuda": row.name if row.name.startswith("the CUDA toolkit") else "",
        "torn header": _torn_header(kind),
        "of driver": row.name if row.name == _DRIVER else "",
        "of torch": row.name if row.name == "torch" and not machine.builds_torch else "",
        "system header": subject if "libc" in row.names.get("apt", "") else "",
    }


def read_subject(kind: Kind) -> str:
    """Return what the error is about as a sentence may show it: a symbol readable, nothing of a page."""
    subject = readable(kind.subject) if kind.row.look == "symbol" else kind.subject
    subject = _REQUESTED.sub("", subject.partition(" Call Stack (most recent")[0])
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


def _torn_header(kind: Kind) -> str:
    """Return the installed header that includes another of its own folder, which is not there."""
    compiled = COMPILED.match(kind.line.text.strip()) if kind.row.look == "header" else None
    folder = kind.subject.replace("\\", "/").rpartition("/")[0].partition("/")[0]
    file = compiled["file"] if compiled else ""
    beside = (
        folder not in ("", *_OF_LIBC) and f"/{folder}/" in file.replace("\\", "/") and INSTALLED.match(file)
    )
    return file if beside else ""


def _has_same_name(kind: Kind, row: ComponentRow) -> bool:
    """Return whether a component's name is in the subject, as CUDA's of the CUDA toolkit."""
    part = row.name.lower()
    subject = kind.subject.lower()
    return part == subject or (kind.row.look == "package" and subject in part)


def _packaged(kind: Kind, machine: Machine) -> str:
    """Return the command that installs a part which torch builds from a submodule, where it has a package."""
    row = machine.packaged(kind.row.look, kind.looked_up)
    return machine.brings(row) if row else ""


def _other(release: str, cuda: str) -> str:
    """Return a release of CUDA that is here, where a library is of another."""
    return release if cuda and release != cuda else ""


def _its_wheel(row: ComponentRow, cuda: str) -> str:
    """Return the wheel that holds a shared library of this release of CUDA."""
    return f"{row.wheel}-cu{cuda}" if cuda and int(cuda) < _PLAIN_NAMES else row.wheel if cuda else ""
