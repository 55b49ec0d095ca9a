"""The C and C++ compilers: those the user names in CC and CXX, then those on PATH."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from torchbuild_tasks.facts.parallel import each
from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.facts.versions import version_in
from torchbuild_tasks.model import Tool

LAUNCHERS = frozenset({"ccache", "sccache", "distcc", "icecc", "buildcache"})
PLAIN = ("g++", "gcc", "c++", "cc", "clang++", "clang")
VARIABLES = {"CXX": "c++", "CC": "cc"}

_NUMBERED = re.compile(r"(?:g\+\+|gcc|clang\+\+|clang)-(\d+(?:\.\d+)*)")
_FAMILY = re.compile(r"(?:.*-)?(g\+\+|gcc|clang\+\+|clang|c\+\+|cc)(?:-\d+(?:\.\d+)*)?")
_NAMES = {
    ("gcc", True): "g++",
    ("gcc", False): "gcc",
    ("clang", True): "clang++",
    ("clang", False): "clang",
    ("", True): "c++",
    ("", False): "cc",
}


class _Candidate(NamedTuple):
    """A compiler that may be there: how it is called (`path`), and the program it comes down to.

    `masked` is true when `path` is a link to a launcher; `real` is then the compiler that
    the launcher would start, or None when it finds none.
    """

    path: str
    found_via: str
    cxx: bool
    real: str | None
    masked: bool = False
    aliases: tuple[str, ...] = ()


def look_for_compilers(probe: Probe) -> tuple[Tool, ...]:
    """Every compiler once, as it was found first: CXX and CC, PATH by name, PATH by number.

    A symbolic link and what it points to are one compiler, but its C and its C++ side are
    two. So are a compiler and a link called g++ that points to ccache. `found_via` says
    "through ccache" for such a link and for CXX="ccache g++". When no C++ (or C) compiler
    was found at all, a tool named c++ (or cc) without a path tells where we looked.
    """
    named = tuple(item for variable in VARIABLES if (item := _named(probe, variable)))
    missing = [item for item in named if isinstance(item, Tool)]
    found = _distinct([*(i for i in named if isinstance(i, _Candidate)), *_on_path(probe)])
    compilers = [*missing, *each(lambda candidate: _ask(probe, candidate), found)]
    for generic, cxx in (("c++", True), ("cc", False)):
        if not any(candidate.cxx == cxx for candidate in found):
            compilers.append(Tool(name=generic, looked=probe.path_folders))
    return tuple(compilers)


def _named(probe: Probe, variable: str) -> _Candidate | Tool | None:
    """What CC or CXX says: a compiler, perhaps with launchers before it and options after it."""
    words = _words(probe, probe.environ.get(variable, ""))
    launchers = [word for word in words if _base(word) in LAUNCHERS]
    rest = [word for word in words if _base(word) not in LAUNCHERS]
    if not rest:
        return None
    via = f"environment {variable}"
    path = _locate(probe, rest[0])
    cxx = _is_cxx(rest[0], variable == "CXX")
    if path is None:
        looked = (probe.absolute(rest[0]),) if "/" in rest[0] else probe.path_folders
        family = _FAMILY.fullmatch(_base(rest[0]))
        return Tool(name=family[1] if family else VARIABLES[variable], found_via=via, looked=looked)
    via += "".join(f" through {_base(launcher)}" for launcher in launchers)
    via += f" with {shlex.join(rest[1:])}" if rest[1:] else ""
    return _candidate(probe, path, via, cxx)


def _words(probe: Probe, value: str) -> list[str]:
    """Split as the shell would; the name of an existing file is one word, blanks and all."""
    if "/" in value and probe.is_file(value.strip()):
        return [value.strip()]
    try:
        return shlex.split(value)
    except ValueError:
        return value.split()


def _locate(probe: Probe, word: str) -> str | None:
    if "/" not in word:
        return probe.which(word)
    path = probe.absolute(word)
    return path if probe.is_program(path) else None


def _on_path(probe: Probe) -> Iterator[_Candidate]:
    """The plain names in the order of PATH, then the numbered ones, newest first."""
    numbered = {name for folder in probe.path_folders for name in probe.children(folder)}
    for name in (*PLAIN, *sorted(filter(_NUMBERED.fullmatch, numbered), key=_newest_first)):
        for path in probe.which_all(name):
            yield _candidate(probe, path, "PATH", _is_cxx(name, False))


def _newest_first(name: str) -> tuple[list[int], str]:
    return [-int(part) for part in name.rpartition("-")[2].split(".")], name


def _candidate(probe: Probe, path: str, via: str, cxx: bool) -> _Candidate:
    """A folder such as /usr/lib/ccache holds links g++ -> ccache: look behind them.

    ccache itself takes the next program of that name on PATH, so we do the same.
    """
    real = probe.realpath(path)
    if _base(real) not in LAUNCHERS:
        return _Candidate(path=path, found_via=via, cxx=cxx, real=real)
    behind = [probe.realpath(other) for other in probe.which_all(_base(path))]
    compiler = next((other for other in behind if _base(other) not in LAUNCHERS), None)
    via = f"{via} through {_base(real)}"
    return _Candidate(path=path, found_via=via, cxx=cxx, real=compiler, masked=True)


def _distinct(candidates: Iterable[_Candidate]) -> list[_Candidate]:
    first: dict[tuple[object, ...], _Candidate] = {}
    for candidate in candidates:
        key = (candidate.real or candidate.path, candidate.cxx, candidate.masked)
        known = first.setdefault(key, candidate)
        if candidate.path not in (known.path, *known.aliases):
            first[key] = known._replace(aliases=(*known.aliases, candidate.path))
    return list(first.values())


def _ask(probe: Probe, candidate: _Candidate) -> Tool:
    """Ask the compiler itself, not the launcher before it, which would count the call."""
    program = candidate.real if candidate.masked else candidate.path
    text = _answer(probe, program, "--version")
    version = version_in(text) if text else None
    if text and version is None:
        version = version_in(_answer(probe, program, "-dumpfullversion", "-dumpversion"))
    return Tool(
        name=_NAMES[_maker(text, candidate), candidate.cxx],
        path=candidate.path,
        version=version,
        found_via=candidate.found_via,
        aliases=candidate.aliases,
    )


def _answer(probe: Probe, path: str | None, *options: str) -> str:
    output = probe.run((path, *options)) if path else None
    return output.stdout if output and output.rc == 0 else ""


def _maker(text: str, candidate: _Candidate) -> str:
    """gcc, clang, or "" for another: by what it says, else by its name."""
    if "clang" in text.lower():
        return "clang"
    if "Free Software Foundation" in text:
        return "gcc"
    family = None if text else _FAMILY.fullmatch(_base(candidate.real or candidate.path))
    return (
        {"g++": "gcc", "gcc": "gcc", "clang++": "clang", "clang": "clang"}.get(family[1], "")
        if family
        else ""
    )


def _is_cxx(word: str, otherwise: bool) -> bool:
    """Whether a program of this name compiles C++; `otherwise` when the name does not tell."""
    family = _FAMILY.fullmatch(_base(word))
    return family[1].endswith("++") if family else otherwise


def _base(path: str) -> str:
    return path.rpartition("/")[2]
