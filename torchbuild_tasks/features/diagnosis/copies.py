"""Tell which copy of a part an error is about: a second version, an installed file, what a link names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from torchbuild_tasks.catalog.diagnosis import ComponentRow
from torchbuild_tasks.features.diagnosis.components import owner, readable
from torchbuild_tasks.features.diagnosis.kinds import COMPILED, Kind
from torchbuild_tasks.features.diagnosis.machine import Machine

# A file that a package or a toolkit brought, and no build made.
INSTALLED: Final = re.compile(r"/(?:usr|opt|lib\d*)/|.*-packages[/\\]|[A-Za-z]:[/\\]Program Files")
_HEADER: Final = re.compile(r"(?:/|[A-Za-z]:[/\\]).*\.(?:h|hh|hpp|hxx|cuh|inl)$")
_QUALIFIED: Final = re.compile(r"[A-Za-z_]\w*(?:::\w+)+")
# Which of torch's own libraries has a symbol; the first that fits counts.
_TORCH_LIBRARIES: Final = (
    (re.compile(r"c10::cuda\b"), "-lc10_cuda"),
    (re.compile(r"(?:\w+::)*THC?P|torch::(?:PyWarningHandler|python::|utils::)"), "-ltorch_python"),
    (re.compile(r"at::cuda\b|c10d::ProcessGroupNCCL"), "-ltorch_cuda"),
    (re.compile(r"c10::"), "-lc10"),
    (re.compile(r"at::|torch::|c10d::"), "-ltorch_cpu"),
)
# A command that links: it names objects and what they become.
_LINKS: Final = re.compile(
    r"^(?!.*\s-c\s)(?=.*(?:\s-shared\b|\s-o \S|/(?:OUT|out):|/DLL\b))(?=.*\.(?:o|obj|a|lib)\b)", re.MULTILINE
)
# What a linker says of a symbol, in its own words and not in those of a loader.
_LINKER_SAYS: Final = re.compile(
    r"\bld[\w.]{0,5}: error: undefined symbol|undefined reference|\bLNK20(?:01|19)\b"
    r"|^Undefined symbols for architecture|^\s*\".{1,400}\", referenced from:"
)


def list_copies(kind: Kind, row: ComponentRow | None, machine: Machine) -> Mapping[str, str]:
    """Return the part of which two versions are mixed, the part of a parameter's type, the installed file."""
    return {
        "mixed": _mixed(kind, row, machine),
        "parameter": _parameter(kind, row, machine),
        "installed": _installed(kind, machine),
    }


def _mixed(kind: Kind, row: ComponentRow | None, machine: Machine) -> str:
    """Return the part whose own header uses a name that this very part does not have."""
    if row is None or kind.row.id != "api-mismatch":
        return ""
    if row.name == "torch" and machine.builds_torch:  # a header that was edited
        return ""
    lines = (kind.line.text, *machine.audience.text.splitlines())
    file = next((found["file"] for line in lines if (found := COMPILED.match(line.strip()))), "")
    return row.name if _HEADER.match(file) and machine.component("path", file) is row else ""


def _parameter(kind: Kind, row: ComponentRow | None, machine: Machine) -> str:
    """Return the bundled part that a parameter's type of an undefined function is of, where it is another."""
    if kind.row.id != "undefined-symbol" or row is None:
        return ""
    name = readable(kind.subject)
    parameters = name.partition(owner(name))[2]
    rows = (machine.component("symbol", each) for each in _QUALIFIED.findall(parameters))
    return next((each.name for each in rows if each and each is not row and each.submodule), "")


def _installed(kind: Kind, machine: Machine) -> str:
    """Return the file that no build made: its folder tells, or that it is a library which none builds."""
    if INSTALLED.match(kind.subject):
        return kind.subject
    row = machine.component("library", kind.subject) if kind.row.id == "bad-object" else None
    built = row is None or row.name == "torch" or (row.submodule and machine.builds_torch)
    return "" if built else kind.subject


def list_links(kind: Kind, row: ComponentRow | None, machine: Machine) -> Mapping[str, str]:
    """Return the library that defines a symbol, and whether the command that failed names it."""
    link = row.link if row else ""
    if row and row.name == "torch" and kind.row.look == "symbol" and not machine.builds_torch:
        name = owner(kind.subject)
        link = next((library for form, library in _TORCH_LIBRARIES if form.match(name)), "")
    if not link:
        return dict.fromkeys(("link", "linked", "unlinked", "made here", "torch link"), "")
    names = [each.removeprefix("-l") for each in link.split() if each.startswith("-l")]
    own = max((each for each in names if kind.subject.startswith(each)), key=len, default="")
    if own:  # of several libraries the one whose name the symbol has
        link, names = f"-l{own}", [own]
    text = machine.audience.text
    linked = any(
        re.search(rf"(?:-l|[/\\](?:lib)?){re.escape(each)}(?:\.(?:so|a|lib|dylib)|\s)", text)
        for each in names
    )
    made = (
        re.search(rf"(?<=\s)(?:[\w-]+/){{0,9}}lib{re.escape(each)}\.(?:so|a)(?=\s)", text) for each in names
    )
    unlinked = bool(names) and not linked and _LINKS.search(text) is not None
    of_torch = ""
    if row and row.name == "torch" and not (linked or unlinked):  # torch's own row is more exact
        of_torch = (
            link if _LINKER_SAYS.search(kind.line.text) and machine.audience.doing != "extension" else ""
        )
        link = ""
    if machine.audience.system == "windows" and not machine.audience.mingw:
        link = (row.link_windows if row else "") or re.sub(r"-l(\S+)", r"\1.lib", link)
    return {
        "link": link,
        "linked": link if linked else "",
        "unlinked": link if unlinked else "",
        "torch link": of_torch,
        "made here": next((found[0] for found in made if found), "") if linked else "",
    }
