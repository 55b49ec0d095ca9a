"""Tell why Python does not find a module: it is a part of a package, or a file hides it, or it is gone."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import Final

from packaging.specifiers import SpecifierSet

from torchbuild_tasks.catalog.diagnosis import ComponentRow
from torchbuild_tasks.features.diagnosis.kinds import Kind
from torchbuild_tasks.features.diagnosis.machine import Machine
from torchbuild_tasks.features.diagnosis.part import read_subject
from torchbuild_tasks.text.words import with_and

_FILE: Final = re.compile(r'File "([^"\n]{1,400})"')
# The package or module of a frame that was installed, and the series of the Python that runs it.
_OF_PACKAGES: Final = re.compile(
    r'File "[^"\n]{0,300}(?:site|dist)-packages[/\\](\w+)(?:\.py|[/\\][^"\n]{1,300})"'
)
_SERIES: Final = re.compile(r"[/\\][Pp]ython(3\.\d{1,2})[/\\]")
# The file of a module of Python's own.
_OF_PYTHON: Final = re.compile(r"[/\\](?:lib\d*[/\\]python\d[\w.]*|Lib)[/\\](?!(?:site|dist)-packages)")
# What Python's own build leaves out without a word where a library's headers are missing.
_OF_PYTHON_BUILD: Final = ("_ctypes", "_ssl", "_hashlib", "_lzma", "_bz2", "_sqlite3", "readline", "zlib")


def read_module(kind: Kind, row: ComponentRow | None, machine: Machine) -> Mapping[str, str]:
    """Return the names about a module, by the part that it belongs to, if a row has that."""
    subject = read_subject(kind)
    top = subject.partition(".")[0]
    standard = top in sys.stdlib_module_names
    imports = kind.groups.get("imports", "")
    return {
        "top": top,
        "distribution": (row.pip or top).partition(" --")[0] if row else top,
        "standard": subject if standard else "",
        "of python": subject if standard and _OF_PYTHON.search(kind.line.text) else "",
        "unbuilt": subject if subject in _OF_PYTHON_BUILD else "",
        "dotted": subject if _lacks_part(kind, row) else "",
        "hider": _hider(subject, machine) if row or standard else "",
        "built for": with_and(list(machine.audience.modules.get(subject.rpartition(".")[2], ()))),
        "itself": _itself(kind, machine),
        "shadow": _shadow(kind, machine) if row or standard else "",
        "found already": imports if imports in machine.audience.found else "",
        **_backport(machine),
    }


def _lacks_part(kind: Kind, row: ComponentRow | None) -> bool:
    """Return whether a missing module is a part of a package that is there."""
    top = kind.subject.partition(".")[0]  # Python would name that, if it were missing, too
    return (
        kind.row.id == "missing-module"
        and row is not None
        and top in row.modules
        and kind.subject not in row.modules
    )


def _hider(module: str, machine: Machine) -> str:
    """Return the file of a traceback that Python takes for a package, as it has the package's name."""
    name = f"{module.partition('.')[0]}.py"
    files = [
        file for file in _FILE.findall(machine.audience.text) if file.endswith((f"/{name}", f"\\{name}"))
    ]
    own = (file for file in files if "-packages" not in file and not _OF_PYTHON.search(file))
    return next(own, "")


def _shadow(kind: Kind, machine: Machine) -> str:
    """Return the folder outside of what is installed that is taken for the package whose part is missing."""
    if kind.row.look != "module" or "." not in f"{kind.subject}.{kind.groups.get('what', '')}".rstrip("."):
        return ""
    top = kind.subject.partition(".")[0]
    folder = re.compile(rf"(.{{1,300}}?[/\\]{re.escape(top)})[/\\]")
    files = (file for file in _FILE.findall(machine.audience.text) if "-packages" not in file)
    met = (folder.match(file) for file in files if not _OF_PYTHON.search(file) and ".egg" not in file)
    return next((found[1] for found in met if found), "")


def _backport(machine: Machine) -> Mapping[str, str]:
    """Return the module of a traceback that PyPI has for Pythons older than this one, and its package."""
    text = machine.audience.text
    series = _SERIES.search(text)
    for name in dict.fromkeys(_OF_PACKAGES.findall(text)):
        row = next((row for row in machine.catalog.backport if row.name.rstrip("0123456789") == name), None)
        if row and series and SpecifierSet(row.python).contains(series[1]):
            return {"backport": name, "distribution of backport": row.name}
    return {"backport": "", "distribution of backport": ""}


def _itself(kind: Kind, machine: Machine) -> str:
    """Return the package of which a file asks for a part of that very package."""
    frames = _OF_PACKAGES.findall(machine.audience.text)
    top = kind.subject.partition(".")[0]
    return top if kind.row.look == "module" and frames and frames[-1] == top else ""
