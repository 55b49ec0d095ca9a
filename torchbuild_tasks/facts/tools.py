"""Find the programs other than compilers that a build uses or could use."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from torchbuild_tasks.facts.probe import Probe, map_parallel, program_files
from torchbuild_tasks.model import Tool, Windows


class _Row(NamedTuple):
    """A tool: its file names (best first), and the arguments that print its version.

    `ask` is None when it is not asked. `studio` and `installed` are folders that are looked at
    when PATH has none, in each Visual Studio and in Program Files. One that is `numbered` may go by
    names such as ld.lld-14 alone; the newest of these is taken.
    """

    name: str
    files: tuple[str, ...]
    ask: tuple[str, ...] | None = ("--version",)
    on: Literal["linux", "windows", "both"] = "both"
    studio: str | None = None
    installed: str | None = None
    numbered: bool = False


_VS = "Common7/IDE/CommonExtensions/Microsoft/CMake"
# dash takes --version for the name of a script, and sh's version is not needed. 7-Zip prints its
# version without arguments.
TOOLS: tuple[_Row, ...] = (
    _Row("cmake", ("cmake", "cmake3"), studio=f"{_VS}/CMake/bin", installed="CMake/bin"),
    _Row("ninja", ("ninja", "ninja-build"), studio=f"{_VS}/Ninja"),
    _Row("git", ("git",), installed="Git/cmd"),
    _Row("make", ("make", "gmake"), on="linux"),
    _Row("ld", ("ld", "ld.bfd"), on="linux"),
    _Row("ld.gold", ("ld.gold",), on="linux"),
    _Row("ld.lld", ("ld.lld",), on="linux", numbered=True),
    _Row("mold", ("ld.mold", "mold"), on="linux"),
    _Row("lld-link", ("lld-link",), on="windows", studio="VC/Tools/Llvm/x64/bin", installed="LLVM/bin"),
    _Row("ccache", ("ccache",)),
    _Row("sccache", ("sccache",)),
    _Row("recc", ("recc",), on="linux"),
    _Row("uv", ("uv",)),
    _Row("sh", ("sh",), ask=None, on="linux"),
    _Row("bash", ("bash",), on="linux"),
    _Row("patchelf", ("patchelf",), on="linux"),
    _Row("7z", ("7z", "7zz", "7za"), ask=(), on="windows", installed="7-Zip"),
)


def look_for_tools(probe: Probe, windows: Windows | None = None) -> tuple[Tool, ...]:
    """Return every tool of `TOOLS` for this system, in that order, found or not.

    A miss lists the folders of PATH, and the others that were looked at.
    """
    system = "windows" if probe.windows else "linux"
    return map_parallel(
        lambda row: _look(probe, row, windows), (row for row in TOOLS if row.on in (system, "both"))
    )


def _look(probe: Probe, row: _Row, windows: Windows | None) -> Tool:
    files = (*row.files, *_list_numbered(probe, row.name)) if row.numbered else row.files
    path = next((found for file in files if (found := probe.which(file))), None)
    if path is not None:
        return _look_at_tool(probe, row, path, "PATH")
    others = _other_folders(probe, row, windows)
    for folder, via in others:
        for file in row.files:
            if path := probe.program_at(probe.join(folder, file)):
                return _look_at_tool(probe, row, path, via)
    return Tool(name=row.name, looked=(*probe.path_folders, *(folder for folder, _ in others)))


def _list_numbered(probe: Probe, name: str) -> list[str]:
    """Return the names on PATH with a number, newest first; some distributions have only those."""
    pattern = re.compile(re.escape(name) + r"-(\d+)")
    numbers = {
        int(match[1])
        for folder in probe.path_folders
        for child in probe.children(folder)
        if (match := pattern.fullmatch(child))
    }
    return [f"{name}-{number}" for number in sorted(numbers, reverse=True)]


def _look_at_tool(probe: Probe, row: _Row, path: str, via: str) -> Tool:
    version = version_of(probe, path, row.ask) if row.ask is not None else None
    loose = row.name in _BY_PIP and is_by_any_python(probe, path)
    return Tool(name=row.name, path=path, version=version, found_via=via, by_any_python=loose)


# What pip installs as a script, or on Windows as a launcher with the script at its end (distlib).
_BY_PIP = ("cmake", "ninja")
_LARGEST = 1 << 20  # bytes of a launcher
_LOOSE = re.compile(
    rb'#![ \t]*(?:/usr/bin/env[ \t]+(?:-S[ \t]+)?)?"?python[\w.]*"?[ \t]*(?:-\w+[ \t]*)*\r?\n'
)
_ARCHIVE = b"PK\x03\x04"


def is_by_any_python(probe: Probe, path: str) -> bool:
    """Say whether a program is a script whose first line names python without a folder.

    WinPython's pip writes `#!python.exe`: once a venv is first on PATH, that venv's Python starts it, and
    has no such package.
    """
    if (probe.size(path) or _LARGEST) >= _LARGEST:
        return False
    data = probe.read_bytes(path) or b""
    if data.startswith(b"#!"):
        return _LOOSE.match(data) is not None
    return any(data.startswith(_ARCHIVE, found.end()) for found in _LOOSE.finditer(data))


def _other_folders(probe: Probe, row: _Row, windows: Windows | None) -> tuple[tuple[str, str], ...]:
    """Return further folders, each with its description: those of installers that are not on PATH."""
    if windows is None:
        return ()
    folders = []
    if row.installed:
        folders.append((probe.join(program_files(probe), row.installed), "Program Files"))
    if row.studio:
        folders += [(probe.join(s.path, row.studio), "Visual Studio") for s in windows.visual_studios]
    return tuple(folders)


# ---------------- versions

_VERSION = re.compile(r"(?:^|\s)v?(\d+(?:\.\d+)+)")
_BRACKETS = re.compile(r"\([^()]*\)")


def version_of(probe: Probe, path: str, ask: Sequence[str] = ("--version",)) -> str | None:
    """Return the version in the --version output of the program at `path`; None without one."""
    output = probe.ask((path, *ask))
    if output is None or output.rc != 0:
        return None
    return version_in(output.stdout) or version_in(output.stderr)


def version_in(text: str) -> str | None:
    """Return the first dotted number at the start of a word, not in brackets, in the first five lines.

    Brackets contain the packager: "GNU gold (GNU Binutils for Debian 2.40) 1.16". In
    the middle of a word it is part of a name: "g++-4.8 (Ubuntu) 4.8.5".
    """
    for line in text.splitlines()[:5]:
        count = 1
        while count:
            line, count = _BRACKETS.subn(" ", line)
        if match := _VERSION.search(line):
            return match[1]
    return None
