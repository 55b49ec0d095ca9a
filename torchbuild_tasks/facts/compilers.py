"""Find C and C++ compilers: those in CC and CXX, Visual Studio's, then those on PATH."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from torchbuild_tasks.facts.probe import Probe, map_parallel
from torchbuild_tasks.facts.tools import version_in
from torchbuild_tasks.model import Tool, Windows

LAUNCHERS = frozenset({"ccache", "sccache", "distcc", "icecc", "buildcache"})
PLAIN = ("g++", "gcc", "c++", "cc", "clang++", "clang")
# On Windows c++, cc and names with a number are not used.
PLAIN_WINDOWS = ("cl", "clang-cl", "clang++", "clang", "g++", "gcc")
MSVC_LIKE = ("cl", "clang-cl")  # one program for both languages
HOST = "CUDAHOSTCXX"
VARIABLES = {"CXX": "c++", "CC": "cc"}
# Folders of dnf's and yum's additional GCCs (gcc-toolset-12, devtoolset-9), which only `scl enable` selects.
COLLECTIONS = "/opt/rh"

SYSTEM = ("/usr/bin/", "/bin/", "/usr/lib/")  # whose compilers take the system's headers
LOADER = "/etc/ld.so.conf.d"  # ldconfig(8)

_NUMBERED = re.compile(r"(?:g\+\+|gcc|clang\+\+|clang)-(\d+(?:\.\d+)*)")
_GENERIC = re.compile(r"(?:.*-)?(g\+\+|gcc|clang\+\+|clang|c\+\+|cc)(?:-\d+(?:\.\d+)*)?")
_GLIBC = re.compile(r"^#define\s+__GLIBC__\s+(\d+)$.*?^#define\s+__GLIBC_MINOR__\s+(\d+)$", re.M | re.S)
_NAMES = {"gcc": ("gcc", "g++"), "clang": ("clang", "clang++"), "": ("cc", "c++")}  # by maker: for C, for C++


class _Candidate(NamedTuple):
    """A possible compiler: its command (`path`), and the program behind it.

    `masked` is true when `path` is a link to a launcher; `real` is then the compiler that
    the launcher would start, or None when it finds none.
    """

    path: str
    found_via: str
    cxx: bool
    real: str | None
    masked: bool = False
    aliases: tuple[str, ...] = ()


def look_for_compilers(probe: Probe, windows: Windows | None = None) -> tuple[Tool, ...]:
    """Return every compiler once, in this order: CXX and CC, toolsets, PATH by name, PATH by number.

    A symbolic link and what it points to are one compiler, but its C and its C++ side are
    two. So are a compiler and a link called g++ that points to ccache. `found_via` is
    "... through ccache" for such a link and for CXX="ccache g++". When no C++ (or C) compiler
    was found at all, a tool named c++ (or cc; on Windows cl) without a path has the places looked at.
    """
    *named, host = (_look_up_named(probe, variable) for variable in (*VARIABLES, HOST))
    missing = [item for item in (*named, host) if isinstance(item, Tool)]
    # HOST last: it is nvcc's host compiler, and not preferred for CXX.
    found = (*named, *_in_toolsets(windows), *_on_path(probe), host)
    distinct = _distinct(probe, (item for item in found if isinstance(item, _Candidate)))
    programs = list(dict.fromkeys(_program(probe, candidate) for candidate in distinct))
    answers = dict(zip(programs, map_parallel(lambda program: _ask(probe, program), programs), strict=True))
    compilers = [_tool(probe, candidate, answers[_program(probe, candidate)]) for candidate in distinct]
    return (*missing, *compilers, *_missing(probe, distinct, windows))


def _missing(probe: Probe, candidates: list[_Candidate], windows: Windows | None) -> Iterator[Tool]:
    if windows:
        if not any(probe.names.stem(candidate.path) == "cl" for candidate in candidates):
            yield Tool(name="cl", looked=(*windows.looked, *probe.path_folders))
        return
    for generic, cxx in (("c++", True), ("cc", False)):
        if not any(candidate.cxx == cxx for candidate in candidates):
            yield Tool(name=generic, looked=probe.path_folders)


def _look_up_named(probe: Probe, variable: str) -> _Candidate | Tool | None:
    """Return the compiler in CC or CXX, which may have launchers before and options after it."""
    words = _words(probe, probe.variable(variable))
    stem = probe.names.stem
    launchers = [word for word in words if stem(word) in LAUNCHERS]
    rest = [word for word in words if stem(word) not in LAUNCHERS]
    if not rest:
        return None
    via = f"environment {variable}"
    path = _locate(probe, rest[0])
    cxx = _is_cxx(stem(rest[0]), variable != "CC") or variable == HOST
    if path is None and variable == HOST and probe.is_dir(rest[0]):
        return None  # nvcc's -ccbin accepts a folder, too
    if path is None:
        is_place = probe.names.is_path(rest[0])
        looked = (probe.absolute(rest[0]),) if is_place else probe.path_folders
        return Tool(
            name=_generic_name(stem(rest[0])) or VARIABLES.get(variable, "c++"), found_via=via, looked=looked
        )
    via += "".join(f" through {stem(launcher)}" for launcher in launchers)
    via += f" with {shlex.join(rest[1:])}" if rest[1:] else ""
    return _candidate(probe, path, via, cxx)


def _words(probe: Probe, value: str) -> tuple[str, ...]:
    """Split words as the shell does; the name of an existing file is one word, even with blanks."""
    if probe.names.is_path(value) and probe.is_file(value.strip()):
        return (value.strip(),)
    return probe.names.split_words(value)


def _locate(probe: Probe, word: str) -> str | None:
    if not probe.names.is_path(word):
        return probe.which(word)
    return probe.program_at(probe.absolute(word))


def _in_toolsets(windows: Windows | None) -> Iterator[_Candidate]:
    """Yield every cl.exe of every Visual Studio, the newest first."""
    via = {studio.path: studio.found_via for studio in windows.visual_studios} if windows else {}
    for toolset in windows.toolsets if windows else ():
        if toolset.cl:
            found_via = via.get(toolset.visual_studio, "known folder")
            yield _Candidate(path=toolset.cl, found_via=found_via, cxx=True, real=toolset.cl)


def _on_path(probe: Probe) -> Iterator[_Candidate]:
    """Yield the plain names in the order of PATH, then the numbered ones, newest first."""
    for name in PLAIN_WINDOWS if probe.windows else (*PLAIN, *_list_numbered(probe)):
        for path in probe.which_all(name):
            yield _candidate(probe, path, "PATH", _is_cxx(name, False))
    for folder in () if probe.windows else sorted(probe.children(COLLECTIONS), key=_newest_first):
        for name in ("g++", "gcc"):
            if there := probe.program_at(f"{COLLECTIONS}/{folder}/root/usr/bin/{name}"):
                yield _candidate(probe, there, COLLECTIONS, name == "g++")


def _list_numbered(probe: Probe) -> list[str]:
    names = {name for folder in probe.path_folders for name in probe.children(folder)}
    return sorted(filter(_NUMBERED.fullmatch, names), key=_newest_first)


def _newest_first(name: str) -> tuple[list[int], str]:
    return [-int(part) for part in name.rpartition("-")[2].split(".") if part.isdecimal()], name


def _candidate(probe: Probe, path: str, via: str, cxx: bool) -> _Candidate:
    """Return the compiler behind a launcher: a folder such as /usr/lib/ccache has links g++ -> ccache.

    ccache itself takes the next program of that name on PATH, so we do the same.
    """
    real = probe.realpath(path)
    stem = probe.names.stem
    if stem(real) not in LAUNCHERS:
        return _Candidate(path=path, found_via=via, cxx=cxx, real=real)
    behind = [probe.realpath(other) for other in probe.which_all(probe.names.base(path))]
    compiler = next((other for other in behind if stem(other) not in LAUNCHERS), None)
    via = f"{via} through {stem(real)}"
    return _Candidate(path=path, found_via=via, cxx=cxx, real=compiler, masked=True)


def _distinct(probe: Probe, candidates: Iterable[_Candidate]) -> list[_Candidate]:
    first: dict[tuple[object, ...], _Candidate] = {}
    for candidate in candidates:
        key = (probe.names.key(candidate.real or candidate.path), candidate.cxx, candidate.masked)
        known = first.setdefault(key, candidate)
        names = {probe.names.key(path) for path in (known.path, *known.aliases)}
        if probe.names.key(candidate.path) not in names:
            first[key] = known._replace(aliases=(*known.aliases, candidate.path))
    return list(first.values())


def _program(probe: Probe, candidate: _Candidate) -> str | None:
    """Return the compiler itself to query, not the launcher, which would count the call in its statistics.

    clang++ is a link to clang, whose version does not depend on what it is called; starting it costs most
    of all programs.
    """
    is_clang = candidate.real is not None and _generic_name(probe.names.stem(candidate.real)) == "clang"
    return candidate.real if candidate.masked or is_clang else candidate.path


def _ask(probe: Probe, program: str | None) -> tuple[str, str | None, str | None]:
    """Return a compiler's version output, the version in it, and the C library that it has of its own."""
    if program is None:
        return "", None, None
    if probe.names.stem(program) == "cl":
        return "", _version_of_cl(probe, program), None
    text = _answer(probe, program, "--version")
    version = version_in(text) if text else None
    if text and version is None:
        version = version_in(_answer(probe, program, "-dumpfullversion", "-dumpversion"))
    own = _maker(text, probe.names.stem(program)) == "gcc" and not probe.windows
    return text, version, _own_libc(probe, program) if own else None


def _own_libc(probe: Probe, program: str) -> str | None:
    """Return the glibc of a GCC's own sysroot, which conda-forge's and those of many toolchains have."""
    if probe.realpath(program).startswith(SYSTEM):
        return None
    root = _answer(probe, program, "-print-sysroot").strip()
    if root.strip("/") == "" or not root.startswith("/") or not probe.is_dir(root):
        return None
    found = _GLIBC.search(probe.read(probe.join(root, "usr/include/features.h")) or "")
    return f"glibc {found[1]}.{found[2]}" if found else None


def _tool(probe: Probe, candidate: _Candidate, answer: tuple[str, str | None, str | None]) -> Tool:
    text, version, libc = answer
    program = candidate.real if candidate.masked else candidate.path
    stem = probe.names.stem(program or candidate.path)
    name = stem if stem in MSVC_LIKE else _NAMES[_maker(text, stem)][candidate.cxx]
    return Tool(
        name=name,
        path=candidate.path,
        version=version,
        found_via=candidate.found_via,
        aliases=candidate.aliases,
        libc=libc,
        loaded=_is_loaded(probe, candidate.path) if name == "g++" and not probe.windows else None,
    )


def _is_loaded(probe: Probe, path: str) -> bool | None:
    """Say whether the loader finds a compiler's own C++ library; None for the system's, and without one."""
    real = probe.realpath(path)
    prefix = real.rpartition("/bin/")[0]
    folders = (f"{prefix}/lib64", f"{prefix}/lib")
    own = next((each for each in folders if probe.exists(f"{each}/libstdc++.so.6")), "")
    if real.startswith(SYSTEM) or not own:
        return None
    files = ("/etc/ld.so.conf", *(f"{LOADER}/{name}" for name in probe.children(LOADER)))
    lines = "\n".join(probe.read(file) or "" for file in files).split()
    named = {probe.realpath(each) for each in (*probe.variable("LD_LIBRARY_PATH").split(":"), *lines) if each}
    return probe.realpath(own) in named


def _answer(probe: Probe, path: str, *options: str) -> str:
    output = probe.ask((path, *options))
    return output.stdout if output and output.rc == 0 else ""


def _version_of_cl(probe: Probe, path: str) -> str | None:
    """Return the version of the program's resource, else of its first line without arguments."""
    resource = probe.file_version(path)
    if resource and resource.startswith("19."):  # cl of Visual Studio 2015 and later
        return ".".join(resource.split(".")[:3])
    output = probe.run((path,))
    match = re.search(r"\b19\.\d+\.\d+", output.stderr + output.stdout) if output else None
    return match[0] if match else None


def _maker(text: str, stem: str) -> str:
    """Return gcc, clang, or "" for another, by its version output, else by its name."""
    if "clang" in text.lower():
        return "clang"
    if "Free Software Foundation" in text:
        return "gcc"
    known = {"g++": "gcc", "gcc": "gcc", "clang++": "clang", "clang": "clang"}
    return "" if text else known.get(_generic_name(stem) or "", "")


def _generic_name(stem: str) -> str | None:
    """Return the generic name of a compiler: g++ for x86_64-linux-gnu-g++-12."""
    generic = _GENERIC.fullmatch(stem)
    return stem if stem in MSVC_LIKE else generic[1] if generic else None


def _is_cxx(stem: str, otherwise: bool) -> bool:
    """Say whether a program of this name compiles C++; `otherwise` if the name leaves it open."""
    called = _generic_name(stem)
    return called in MSVC_LIKE or (called.endswith("++") if called else otherwise)
