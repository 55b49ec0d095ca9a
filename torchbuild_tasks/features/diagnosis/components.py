"""Find the component of a build that a header, library, symbol, module, package or program belongs to.

Names are looked up in data/components.toml. A mangled symbol is read up to its qualified name.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from typing import Final

from torchbuild_tasks.catalog.diagnosis import ComponentRow

_LENGTH: Final = re.compile(r"(\d{1,3})")
_ITANIUM: Final = re.compile(
    r"_{1,2}Z(?:TV|TI|TS|TT|GV|GR|Th\w{1,4}_|T\w{0,6}_)?(N[KVrRO]{0,2})?(St|S[absiod])?"
)
_BELONGS_TO: Final = re.compile(
    r"^(?:(?:non-virtual|virtual) thunk to|vtable for|VTT for|typeinfo (?:name )?for|guard variable for"
    r"|construction vtable for|covariant return thunk to) "
)
# What MSVC writes before the type and name of a symbol.
_DECLARED: Final = re.compile(r"^(?:__declspec\(\w+\) |(?:public|protected|private): |(?:static|virtual) )+")
_IMPORTED: Final = re.compile(r"^__imp_+(?=\w|\?)")
_OPERATOR: Final = re.compile(r"([A-Za-z_]\w*(?:::[\w~]+)*)::operator\b")
_TEMPLATE: Final = re.compile(r"<[^<>]*>")
_ENDING: Final = re.compile(r"(?:\.so(?:[.\d]*)|\.a|\.lib|\.dll|\.pyd|\.dylib|\.obj|\.o)$", re.IGNORECASE)
_NATIVE: Final = re.compile(r"\.(?:cpython|cp|abi3|pypy)[\w-]*$")
# How the name of a library goes on that is another build of it: its number, its hash in a wheel, its threads.
_BUILT_AS: Final = re.compile(
    r"(?:[-_.]?[aefhlmpqw])?(?:[-_.]{0,2}(?:r?\d[\d._]*|[0-9a-f]{8}|static(?:d|_nocallback)?|shared|dynamic|debug"
    r"|release|serial|threads?|openmp|omp|pthreads?|mpi|wapi|atlas|netlib|reference|md|mt|st|dll|lite))*[_dst]?"
)
# Where the folder of a part begins in a path.
_INSIDE: Final = re.compile(
    r"(?:^|.*/)(?:third_party|third-party|3rdparty|external|include(?:/[\w]+-linux-gnu)?|site-packages|_deps)/(?=.)"
)


def readable(symbol: str) -> str:
    """Return a symbol as a person calls it: the qualified name of a mangled one, without its parameters."""
    symbol = symbol.strip().strip("'`")
    if symbol.startswith('"'):  # MSVC: "public: void __cdecl a::b(int)" (?b@a@@...)
        symbol = symbol[1:].partition('"')[0]
    symbol = _IMPORTED.sub("", _DECLARED.sub("", symbol))
    if match := _ITANIUM.match(symbol):
        return _itanium(symbol, match) or symbol
    if symbol.startswith("?"):
        return _microsoft(symbol)
    return symbol


def _itanium(symbol: str, match: re.Match[str]) -> str:
    """Return a::b of _ZN1a1bEv. Source: the Itanium C++ ABI, 5.1 Mangling."""
    parts, at = (["std"] if match[2] else []), match.end()
    while length := _LENGTH.match(symbol, at):
        at = length.end() + int(length[1])
        parts.append(symbol[length.end() : at])
        if not match[1]:
            break
        while symbol.startswith("B", at) and (tag := _LENGTH.match(symbol, at + 1)):  # B5cxx11
            at = tag.end() + int(tag[1])
    return "::".join(parts)


def _microsoft(symbol: str) -> str:
    """Return a::b of ?b@a@@... ; operators and templates keep their codes."""
    names = symbol.lstrip("?").partition("@@")[0].split("@")
    return "::".join(reversed([name for name in names if name]))


def owner(symbol: str) -> str:
    """Return the qualified name of a symbol, without return type and parameters, by which it is looked up."""
    name = _BELONGS_TO.sub("", readable(symbol))
    while (shorter := _TEMPLATE.sub("", name)) != name:
        name = shorter
    if name.startswith("operator "):
        return name
    if member := _OPERATOR.search(name):  # MSVC writes the type that it converts to behind it
        return member[1]
    head = name.partition("(")[0].strip()
    return head.rpartition(" ")[2].lstrip("*&") or name


def bare_name(look: str, subject: str) -> str:
    """Return the name as the rows write it."""
    if look == "library":
        name = subject.removeprefix("-l").rpartition("::")[2].lstrip(":").rpartition("/")[2]
        name = _NATIVE.sub("", _ENDING.sub("", name))
        return name.removeprefix("lib").lower()
    if look == "tool":
        return subject.rpartition("/")[2].removesuffix(".exe")
    return re.sub(r"^(?:\.{1,2}/)+", "", subject)


class Components:
    """The parts that rows know, found by the beginnings of names: looking at every row took long."""

    def __init__(self, rows: Sequence[ComponentRow]) -> None:
        self.rows: Final = rows
        self._begun: dict[str, tuple[int, Mapping[str, Sequence[tuple[int, str, ComponentRow]]]]] = {}

    def find(self, look: str, subject: str) -> ComponentRow | None:
        """Return the part that a thing of this kind belongs to; None where no row knows it."""
        if not subject:
            return None
        if look == "symbol":
            name = owner(subject)
            return next((row for pattern, row in self._symbols if pattern.match(name)), None)
        subject = subject.replace("\\", "/")
        if look in ("header", "path") and (row := self._of_path(subject)):
            return row
        return self._nearest(look, _INSIDE.sub("", subject) if look == "path" else bare_name(look, subject))

    @functools.cached_property
    def _symbols(self) -> Sequence[tuple[re.Pattern[str], ComponentRow]]:
        return [(re.compile(each), row) for row in self.rows for each in row.symbols]

    def _of_path(self, path: str) -> ComponentRow | None:
        """Return the part whose submodule's folder is the innermost in a path; a copy may lie elsewhere."""
        inside = f"third_party/{path[place.end() :]}/" if (place := _INSIDE.match(path)) else ""
        rows_inside = [row for row in self.rows if row.submodule and inside.startswith(f"{row.submodule}/")]
        return max(rows_inside, key=lambda row: len(row.submodule), default=None)

    def _nearest(self, look: str, name: str) -> ComponentRow | None:
        """Return the row with the longest beginning of the name; of several the first."""
        longest, begun = self._beginnings(look)
        lower = name[:longest].lower()
        met = (entry for end in range(1, len(lower) + 1) for entry in begun.get(lower[:end], ()))
        found = [(len(each), -number, row) for number, each, row in met if _fits(look, each, name)]
        return max(found, key=lambda item: item[:2])[2] if found else None

    def _beginnings(self, look: str) -> tuple[int, Mapping[str, Sequence[tuple[int, str, ComponentRow]]]]:
        """Return the longest, and all by what they begin with, of the names of this kind, numbered."""
        if look not in self._begun:
            begun: dict[str, list[tuple[int, str, ComponentRow]]] = {}
            names = ((each, row) for row in self.rows for each in _names(look, row))
            for number, (each, row) in enumerate(names):
                begun.setdefault(each.rstrip("$*#").lower(), []).append((number, each, row))
            self._begun[look] = max(map(len, begun), default=0), begun
        return self._begun[look]


def _names(look: str, row: ComponentRow) -> Sequence[str]:
    columns = {
        "header": row.headers,
        "path": row.headers,
        "library": row.libs,
        "module": row.modules,
        "package": row.packages,
        "tool": row.tools,
    }
    return columns[look]


def _fits(look: str, each: str, name: str) -> bool:
    if each.endswith("$"):
        return name == (each[:-1].lower() if look == "library" else each[:-1])
    match look:
        case "library":
            wanted = each.lower()
            if wanted.endswith("#"):
                own = wanted[:-1]
                return name.startswith(own) and _BUILT_AS.fullmatch(name[len(own) :]) is not None
            return name.startswith(wanted[:-1]) if wanted.endswith("*") else name == wanted
        case "module":
            return f"{name}.".startswith(f"{each}.")
        case "tool":
            return name == each or name.startswith(f"{each}-")
        case "package":  # CMake's NUMA is numa elsewhere
            if not name.lower().startswith(each.lower()):
                return False
            rest = name[len(each) :]
            return not rest or each[-1] in "_:-" or rest[0] in "_:." or rest[0].isdigit() or rest[0].isupper()
    # A header's name goes on with another word: png.h and png_x.h, and not pngwriter.h.
    rest = name[len(each) :]
    return name.startswith(each) and (each[-1] in "/_-." or not rest[:1].islower())
