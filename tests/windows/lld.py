"""A linker for clang on Windows: reads GNU ld's words, runs lld-link.

clang asks for GNU ld where the target is *-windows-gnu. The lld inside zig answers to that name for
Linux programs only; its lld-link makes Windows ones. Runs there, by itself: nothing of ours is imported.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

# Words that take the next one as their value and mean nothing to lld-link.
IGNORED_WITH_VALUE = {"-m", "-z", "--sysroot", "--image-base", "--stack", "--heap"} | {
    f"--{which}-{what}-version" for which in ("major", "minor") for what in ("os", "subsystem", "image")
}

SHARED = {"-shared", "--shared", "-dll", "--dll"}
STATIC = {"-Bstatic": True, "-static": True, "-Bdynamic": False}

# The words for one value, in both of their forms: `-e main`, `--entry=main`.
VALUES = {
    "-o": "output",
    "--output": "output",
    "-e": "entry",
    "--entry": "entry",
    "--subsystem": "subsystem",
    "--out-implib": "import_library",
}

SAME_MEANING = {"--export-all-symbols": "-export-all-symbols", "--gc-sections": "-opt:ref"}


@dataclass
class Link:
    """What is to be linked, and how."""

    output: str = "a.exe"
    entry: str = ""
    subsystem: str = "console"
    import_library: str = ""
    shared: bool = False
    folders: list[str] = field(default_factory=list)
    inputs: list[tuple[str, bool]] = field(default_factory=list)  # the word, and whether all of it is wanted
    more: list[str] = field(default_factory=list)
    libraries: dict[int, bool] = field(default_factory=dict)  # the inputs given by -l: static only?


def expanded(words: Iterable[str]) -> Iterator[str]:
    """Return the arguments, those of @files included."""
    for word in words:
        if word.startswith("@"):
            text = Path(word[1:]).read_text(encoding="utf-8")
            yield from expanded(shlex.split(text.replace("\\", "\\\\")))  # a backslash is a folder's
        else:
            yield word


# Words that hold for what follows them: what they switch, and to which state.
SWITCHES: dict[str, tuple[str, bool]] = {
    **{word: ("static", state) for word, state in STATIC.items()},
    "--whole-archive": ("whole", True),
    "--no-whole-archive": ("whole", False),
}


def understood(words: Iterable[str]) -> Link:
    """Read the arguments of a GNU ld command line."""
    link = Link()
    states = {"static": False, "whole": False}
    left = iter(words)
    for word in left:
        name, equals, value = word.partition("=")
        if name in VALUES:
            setattr(link, VALUES[name], value if equals else next(left))
        elif word in IGNORED_WITH_VALUE:
            next(left)
        elif word in SHARED:
            link.shared = True
        elif word in SWITCHES:
            name, state = SWITCHES[word]
            states[name] = state
        elif word in SAME_MEANING:
            link.more.append(SAME_MEANING[word])
        elif word.startswith("-L"):
            link.folders.append(word[2:] or next(left))
        elif word.startswith("-l"):
            link.libraries[len(link.inputs)] = states["static"]
            link.inputs.append((word[2:] or next(left), states["whole"]))
        elif not word.startswith("-"):
            link.inputs.append((word, states["whole"]))
        # What is left says how to lay the program out, and lld-link's own way is as good.
    return link


def library(name: str, folders: Iterable[str], static: bool, exists: Callable[[str], bool]) -> str:
    """The file that -lNAME means: the first folder that has one, a DLL's import library before an archive."""
    archives = [f"lib{name}.a", f"{name}.lib"]
    names = archives if static else [f"lib{name}.dll.a", f"{name}.dll.a", *archives]
    names = [name[1:]] if name.startswith(":") else names
    for folder in folders:
        for file in names:
            if exists(f"{folder}/{file}"):
                return f"{folder}/{file}"
    sys.exit(f"ld: cannot find -l{name}")


def translated(words: Iterable[str], exists: Callable[[str], bool]) -> list[str]:
    """Return the arguments for lld-link."""
    link = understood(words)
    entry = link.entry or ("DllMainCRTStartup" if link.shared else "mainCRTStartup")
    said = ["-lldmingw", "-nologo", "-machine:x64", f"-out:{link.output}", f"-entry:{entry}", "-opt:noicf"]
    said += ["-alternatename:__image_base__=__ImageBase", *link.more]
    said += ["-dll"] if link.shared else [f"-subsystem:{link.subsystem}"]
    said += [f"-implib:{link.import_library}"] if link.import_library else ["-noimplib"]
    said += [f"-libpath:{folder}" for folder in link.folders]
    for at, (word, whole) in enumerate(link.inputs):
        is_library = at in link.libraries
        file = library(word, link.folders, link.libraries[at], exists) if is_library else word
        said.append(f"-wholearchive:{file}" if whole and file.lower().endswith((".a", ".lib")) else file)
    return said


def main(linker: str, words: list[str]) -> int:
    """Link, or print the version for CMake."""
    if "--version" in words:
        print("GNU ld (a front for lld-link)")
        return 0
    command = [linker, "lld-link", *translated(expanded(words), lambda path: Path(path).is_file())]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
