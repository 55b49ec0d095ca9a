"""Read what CMake has looked for in vain: the names that it tried, and how a place is given by hand."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from torchbuild_tasks.features.diagnosis.kinds import Kind

_UNSET: Final = re.compile(r"are set to NOTFOUND\.(?s:.*?)CMake files:\s*(?P<list>[^\0]*)")
# A variable of that list; a folder for headers is shown as a path. What uses it stands below, indented.
_VARIABLE: Final = re.compile(r"(?m)^(?:\S{0,300}[/\\])?([A-Za-z]\w{2,60})(?: \(ADVANCED\))?\s*$")
_PROGRAM: Final = re.compile(r"_(?:EXECUTABLE|PROGRAM|COMMAND)$")
_FOLDER: Final = re.compile(r"INCLUDE|_(?:DIRS?|ROOT|HOME|PREFIX)$|(?<!LIBRARY)_PATH$")


def list_sought(kind: Kind) -> Sequence[str]:
    """Return the names by which the part may be known: those of its files first, then its own."""
    return (*filter(None, kind.groups.get("names", "").split(", ")), kind.looked_up)


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
    if kind.row.look == "tool" or _PROGRAM.search(name):
        return "PROGRAM"
    return "FOLDER" if _FOLDER.search(name) else "FILE"
