"""Recognise a build that ran out of memory, and choose the lower number of jobs to go on with.

Linux kills the largest process (signal 9, exit code 137), and reports that only in the kernel's log;
compilers whose allocation fails print messages of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import msgspec

# Attempts with fewer jobs before the build fails.
ATTEMPTS: Final = 2
# The user's Ctrl-C, as Python and as a shell show it.
_INTERRUPTED: Final = (-2, 130)
_KILLED: Final = (-9, 137)
_CUDA: Final = re.compile(r"\b(nvcc|cicc|ptxas|cudafe\+\+|nvlink|fatbinary)\b|\.cu\b")
_LINK: Final = re.compile(r"\b(ld(\.\w+)?|collect2|lld|mold|link)\b|LNK\d")

# Patterns of lines that report it. They are anchored, so that they do not match a source line quoted by a
# compiler, a file's name or a command. Sources: gcc's libiberty (xmalloc) and gcc.c, clang's
# Driver, sccache's commands.rs, binutils, NVIDIA's and EDG's messages, learn.microsoft.com (C1060, C1002,
# C3859, LNK1102; ntstatus).
_REPORTS: Final = tuple(
    re.compile(pattern)
    for pattern in (
        r"^\S*(gcc|g\+\+|cc|c\+\+)[\w.+-]*: (fatal error|internal compiler error|error): "
        r"Killed (signal terminated program|\(program) ",
        r"^(/bin/sh: (line )?\d+: *\d+ )?Killed\b(?! by)(\s{2,}\S.*)?$",
        r"^(/bin/)?(ba|da)?sh: (line )?\d+: +\d+ Killed\b",
        r"^collect2: (fatal )?error: ld terminated with signal 9\b",
        r"^\S*clang[\w.+-]*: error: (unable to execute command: Killed|.* command failed due to signal 9\b)",
        r"^nvcc error +: '[\w+]+' died due to signal 9\b",
        r"^sccache: Compiler killed by signal 9\b",
        r"^\S*make(\.exe)?(\[\d+\])?: \*\*\* \[.*\] (Killed|Error 137)$",
        r"^FAILED: \[code=(137|-9|3221225495|-1073741801|3221226505|-1073740791)\] ",
        r"^virtual memory exhausted: ",
        r"^\S*(cc1|cc1plus|as|ld[\w.]*|cudafe\+\+|cicc|ptxas)(\.exe)?: out of memory allocating \d+ bytes",
        r"^\S*ld[\w.]*: .*(memory exhausted|[Cc]annot allocate memory)",
        r"^(\S+\(\d+\) ?: |\S+:\d+:\d+: |\S*: )?(catastrophic|fatal) error( \w+)?: "
        r"([Oo]ut of memory|error in backend: out of memory)\b",
        r"^LLVM ERROR: [Oo]ut of memory",
        r"^ptxas (fatal|error) *: .*([Mm]emory allocation failure|[Oo]ut of memory)",
        r"^terminate called after throwing an instance of 'std::bad_alloc'",
        r"^[^|\"']*\bfatal error C(1060|1002|3859)\b",
        r"^[^|\"']*\bfatal error LNK1102\b",
        r"^[^|\"']*\b(exit code|exited with|returned) .*(0xC0000017|0xC0000409|-1073741801|-1073740791)\b",
    )
)


class Killed(msgspec.Struct, frozen=True, kw_only=True):
    """A step that ran out of memory: `kind` is "c++", "cuda", "link" or "build" (Ninja itself), by `line`."""

    kind: str
    line: str


class Lowered(msgspec.Struct, frozen=True, kw_only=True):
    """The number of jobs to go on with, and the reason as a sentence."""

    jobs: int
    because: str


def find_killed(lines: Iterable[str], rc: int) -> Killed | None:
    """Return the step that ran out of memory, by the exit code and the first error's lines; else None."""
    if rc == 0 or rc in _INTERRUPTED:
        return None
    lines = [line.strip() for line in lines]
    for line in lines:
        if any(pattern.search(line) for pattern in _REPORTS):
            return Killed(kind=_kind(line, lines), line=line[:200])
    if rc in _KILLED:
        return Killed(kind="build", line=f"exit code {rc}")
    return None


def lower_jobs(jobs: int, killed: Killed, attempt: int) -> Lowered | None:
    """Return the jobs to go on with after failure number `attempt`; None if they cannot be lowered.

    The pool of heavy kernels is fixed in CMake's cache, so only the number of jobs can be lowered.
    """
    if attempt > ATTEMPTS or jobs < 2:
        return None
    what = {"cuda": "A CUDA compile", "link": "A link", "build": "The build"}.get(killed.kind, "A compile")
    again = f"going on from there, time {attempt} of {ATTEMPTS}"
    because = f"{what} ran out of memory ({killed.line}); {again}, with {jobs // 2} jobs, not {jobs}."
    return Lowered(jobs=jobs // 2, because=because)


def _kind(line: str, lines: list[str]) -> str:
    """Return the kind from the reporting line, else from the others: a bare "Killed" names no program."""
    for text in (line, *lines):
        if _CUDA.search(text):
            return "cuda"
        if _LINK.search(text) and text is line:
            return "link"
        if text is line and "cc1plus" in text:
            return "c++"
    return "c++"
