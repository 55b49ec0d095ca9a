"""Tell a program that is to be installed from a file of the build or of a release, and what CMake sought."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from torchbuild_tasks.catalog.diagnosis import ComponentRow
from torchbuild_tasks.features.diagnosis.kinds import Kind
from torchbuild_tasks.features.diagnosis.machine import Machine

_ABSOLUTE: Final = re.compile(r"/|[A-Za-z]:[/\\]")
# What a shell runs as a file of its own, and where no source lies.
_SCRIPT: Final = re.compile(r"\.(?:sh|bash|py|pl|rb|awk)$|/(?:configure|autogen|bootstrap|gradlew|mvnw)$")
_PACKED: Final = re.compile(r"(/usr/bin)/[\w.+-]+$")  # where a system's packages put their programs
_OF_SYSTEM: Final = re.compile(r"/(?:usr|bin|sbin|opt)/")
# That a program was to be run, and no file to be written, and files that no one runs.
_RUNS: Final = re.compile(
    r"execv|posix_spawn|(?i:could not|cannot|failed to|unable to) (?:execute|run|start|spawn)\b|^env: "
    r"|\bsh: (?:line )?\d+: (?!cannot )|^zsh: permission denied|^bash: \.{0,2}/"
    r"|make(?:\.exe)?(?:\[\d+\])?: \S{1,200}: Perm"
)
_RUN_BY: Final = re.compile(r'subprocess\.py", line \d+, in _execute_child')
_NOT_RUN: Final = re.compile(r"/$|\.(?!sh$|py$|pl$|run$|bin$|exe$)[a-z]\w{0,9}$")
_PYTHON: Final = re.compile(r"(?:^|[/\\])python(\d\.\d{1,2})t?$")
_NUMBERED: Final = re.compile(r"(.+?)-?(\d{1,3}(?:\.\d{1,3}){0,2})$")
# Variables of CMake that are set to NOTFOUND.
_UNSET: Final = re.compile(r"are set to NOTFOUND\.(?s:.*?)CMake files:\s*(?P<list>[^\0]*)")
# A variable of that list; a folder for headers is shown as a path. What uses it stands below, indented.
_VARIABLE: Final = re.compile(r"(?m)^(?:\S{0,300}[/\\])?([A-Za-z]\w{2,60})(?: \(ADVANCED\))?\s*$")
_OF_PROGRAM: Final = re.compile(r"_(?:EXECUTABLE|PROGRAM|COMMAND)$")
_FOLDER: Final = re.compile(r"INCLUDE|_(?:DIRS?|ROOT|HOME|PREFIX)$|(?<!LIBRARY)_PATH$")


def read_program(kind: Kind, row: ComponentRow | None, machine: Machine) -> Mapping[str, str]:
    """Return what decides how a program gets here, or to run: it is the build's own, or of a release."""
    subject = kind.subject if kind.row.look == "tool" else ""
    own = _is_own(subject)
    wanted = machine.audience.said.get("wanted tool", "")
    brought = machine.component("tool", wanted) if wanted else None
    from_here = machine.brings(brought) if brought else ""
    return {
        "own program": subject if own else "",
        "system program": found[1]
        if not is_numbered(kind, row) and (found := _PACKED.match(subject))
        else "",
        "path": subject if _ABSOLUTE.match(subject) and not own else "",
        "numbered": subject if is_numbered(kind, row) else "",
        "numbered python": found[1] if (found := _PYTHON.search(subject)) else "",
        "executed": _executed(kind, machine),
        "plain tool": _plain(subject),
        "automake": subject if _plain(subject) in ("aclocal", "automake") else "",
        "?tool from": f" ({from_here})" if from_here else "",
    }


def is_numbered(kind: Kind, row: ComponentRow | None) -> bool:
    """Return whether a program of some release is wanted, whose package brings a name without a number."""
    name = kind.subject.rpartition("/")[2]
    return kind.row.look == "tool" and row is not None and bool(_plain(name)) and name not in row.tools


def _plain(name: str) -> str:
    found = _NUMBERED.match(name.rpartition("/")[2])
    return found[1] if found else ""


def _is_own(subject: str) -> bool:
    if _ABSOLUTE.match(subject):
        return _SCRIPT.search(subject) is not None and _OF_SYSTEM.match(subject) is None
    return "/" in subject or "\\" in subject


def _executed(kind: Kind, machine: Machine) -> str:
    """Return the file that may not be run, where the error is about that and not about writing it."""
    runs = _RUNS.search(kind.line.text.strip()) or _RUN_BY.search(machine.audience.text)
    return kind.subject if kind.row.id == "permission" and runs and not _NOT_RUN.search(kind.subject) else ""


def list_sought(kind: Kind) -> Sequence[str]:
    """Return the names by which the part may be known: those of its files first, then its own."""
    names = (*filter(None, kind.groups.get("names", "").split(", ")), kind.looked_up)
    if kind.row.look != "tool":
        return names
    variable = _OF_PROGRAM.sub("", kind.groups.get("variable", ""))  # PKG_CONFIG_EXECUTABLE of PkgConfig
    return (*names, kind.looked_up.lower(), variable.lower().replace("_", "-"))


def read_sought(kind: Kind, text: str) -> Mapping[str, str]:
    """Return the options of CMake that give by hand what it did not find.

    Args:
        kind: the kind of the error.
        text: the lines of the error.
    """
    unset = _UNSET.search(text) if "unfound" in kind.groups else None
    names = _VARIABLE.findall(unset["list"]) if unset else []
    variable = kind.groups.get("variable") or kind.groups.get("unfound", "")
    given = names or [variable] if variable else []
    return {"by hand": " ".join(f"-D{name}={_value(name, kind)}" for name in dict.fromkeys(given))}


def _value(name: str, kind: Kind) -> str:
    if kind.row.look == "tool" or _OF_PROGRAM.search(name):
        return "PROGRAM"
    return "FOLDER" if _FOLDER.search(name) else "FILE"
