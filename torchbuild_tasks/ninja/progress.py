"""Read the progress of a build from its output: Ninja, Make, MSBuild, CMake, pip, setup.py."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, Literal

import msgspec

Phase = Literal["configure", "codegen", "compile", "link", "install", "package"]


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of a build. `total` is 0 while unknown; Make counts in percent.

    `what` is short: a source file without the build folder's part of its path, a
    library's name, or a few words of the tool.
    """

    phase: Phase
    done: int = 0
    total: int = 0
    what: str = ""


# The first words of steps of Ninja or Make. Other steps run a command: code generation.
_STEPS: Final[tuple[tuple[str, Phase], ...]] = (
    ("Building ", "compile"),
    ("Linking ", "link"),
    ("Install", "install"),
    ("Re-running CMake", "configure"),
    ("Re-checking", "configure"),
    ("Built target", "compile"),
)
# The beginnings of lines that start a phase.
_PHASES: Final[tuple[tuple[str, Phase], ...]] = (
    ("-- Install configuration", "install"),
    ("-- Installing: ", "install"),
    ("-- Up-to-date: ", "install"),
    ("*** Configuring CMake", "configure"),
    ("*** Building project", "compile"),
    ("*** Installing project", "install"),
    ("*** Making ", "package"),
    ("running build_ext", "compile"),
    ("running bdist_wheel", "package"),
    ("running install", "install"),
    ("running develop", "install"),
    ("adding '", "package"),
    ("Created wheel for ", "package"),
    ("Installing collected packages", "install"),
)
_NINJA: Final = re.compile(r"\[(\d+)/(\d+)\] (.*)")
# Ninja's own status, which NINJA_STATUS replaces (https://ninja-build.org/manual.html, 1.13).
_COUNTED: Final = "[%f/%t] "
_STATUS: Final = "NINJA_STATUS"
_MAKE: Final = re.compile(r"\[ *(\d+)%\] (.*)")
_OUTPUT: Final = re.compile(r" [-/](?:o |Fo|out:)\s*(\S+)")
_MSBUILD_PROJECT: Final = re.compile(r'Project ".+" \(\d+\) is building "(?:.*[\\/])?(.+?)"')
_LINES: Final = 64
# Share of the steps before which no time left is estimated: from 2.6.0's first step, a written file, it was
# 0:15, where 1,766 steps took hours.
EARLY: Final = 0.01
_TAIL: Final = 16 * 1024
_SOURCES: Final = (".cpp", ".cc", ".c", ".cxx", ".cu")


def counting(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment with Ninja's count before the user's own NINJA_STATUS.

    What the user wants to see stays in the log and on a terminal; without the count it could not be told
    how far the build is, nor that a dry run would build something.
    """
    wanted = environ.get(_STATUS)
    if wanted is None or wanted.startswith(_COUNTED):
        return dict(environ)
    return {**environ, _STATUS: _COUNTED + " ".join(wanted.splitlines())}  # a second line would hide the step


class ProgressParser:
    """Parses lines of output; returns the progress for lines that show any."""

    def __init__(self) -> None:
        self._configuring = True

    def feed(self, line: str) -> Progress | None:
        """Read one line; pip's indentation does not matter."""
        return self._newest((line,))

    def feed_block(self, block: bytes) -> Progress | None:
        """Return the last progress of a block, if its last lines show one."""
        return self._newest(_backwards(block))

    def _newest(self, backwards: Iterable[str]) -> Progress | None:
        text = ""
        for line in backwards:
            progress = _read(line)
            if progress is not None:
                self._configuring = progress.phase == "configure"
                if text and self._configuring:
                    break
                return progress
            if not text and "-- " in line[:12] and line.lstrip().startswith("-- "):
                text = line.strip("- ")
        # A status line of a nested CMake does not reset the progress.
        return Progress(phase="configure", what=text[:80]) if text and self._configuring else None


def _backwards(block: bytes) -> Iterator[str]:
    """Yield the last lines of a block in reverse."""
    end = len(block) - 1
    least = len(block) - _TAIL
    for _ in range(_LINES):
        start = block.rfind(b"\n", max(least, 0), end) + 1
        if not start and least > 0:
            return  # the rest is not a complete line
        yield block[start:end].decode(errors="replace")
        end = start - 1
        if end < 0:
            return


def _read(line: str) -> Progress | None:
    text = line.lstrip() if line.startswith(" ") else line
    reader = _READERS.get(text[:1])
    if reader is not None:
        return reader(text)
    # MSBuild prints each file that it compiles as an indented name.
    bare = line.startswith("  ") and text.endswith(_SOURCES) and " " not in text and "/" not in text
    return Progress(phase="compile", what=text) if bare else None


def eta(elapsed: float, done: int, total: int) -> float | None:
    """Return the seconds left at the speed so far; None while too little is done."""
    if done <= 0 or total < done or done < EARLY * total:
        return None
    return elapsed / done * (total - done)


def _step(text: str) -> Progress | None:
    """`[n/m] ...` of Ninja, `[ 12%] ...` of Make."""
    if ninja := _NINJA.match(text):
        done = int(ninja[1])
        total = int(ninja[2])
        words = ninja[3]
    elif make := _MAKE.match(text):
        done = int(make[1])
        total = 100
        words = make[2]
    else:
        return None
    # The user's own status may be between the count and the description, with or without a space.
    phase: Phase | None = next((phase for start, phase in _STEPS if start in words), None)
    if phase is not None:
        return Progress(phase=phase, done=done, total=total, what=short_path(words.rpartition(" ")[2]))
    return _command(done, total, words)


def _command(done: int, total: int, words: str) -> Progress:
    """Return a step shown as its command (`-v`), or as another description."""
    output = _OUTPUT.search(words)
    if output is None:
        return Progress(phase="codegen", done=done, total=total, what=words[:80])
    phase: Phase = "compile" if " -c " in words or " /c " in words else "link"
    return Progress(phase=phase, done=done, total=total, what=short_path(output[1]))


def short_path(path: str) -> str:
    """Return an output's path, shortened; `__` is CMake's `..`.

    `caffe2/CMakeFiles/x.dir/__/aten/a.cpp.o` -> `aten/a.cpp`
    """
    path = path.replace("\\", "/")
    base, cut, inside = path.partition("CMakeFiles/")
    if not cut:
        return path
    folders = base.rstrip("/").split("/") if base else []
    parts = inside.split("/")[1:]
    while parts and parts[0] == "__":
        parts, folders = parts[1:], folders[:-1]
    return "/".join([*folders, *parts]).removesuffix(".o").removesuffix(".obj")


def _phase(text: str) -> Progress | None:
    """Return a line that starts a phase, with its subject."""
    for start, phase in _PHASES:
        if text.startswith(start):
            return Progress(phase=phase, what=text.strip("*- ")[:80])
    return None


def _project(text: str) -> Progress | None:
    match = _MSBUILD_PROJECT.match(text)
    return Progress(phase="compile", what=match[1]) if match else _phase(text)


# By the first character, so that irrelevant lines cost little.
_READERS: Final[dict[str, Callable[[str], Progress | None]]] = {
    "[": _step,
    "-": _phase,
    "*": _phase,
    "r": _phase,
    "a": _phase,
    "C": _phase,
    "I": _phase,
    "P": _project,
}
