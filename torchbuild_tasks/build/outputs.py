"""Tell which files of a checkout are outputs of a build, by the rows of data/outputs.toml."""

from __future__ import annotations

import fnmatch
import functools
import re
from collections.abc import Callable, Iterable, Mapping, Set
from typing import Final

import msgspec

from torchbuild_tasks.catalog import Catalog
from torchbuild_tasks.values import replace

# Modified (ns), size (bytes), changed (ns; on Windows: created). Folders: 0, 0, changed.
Stamp = tuple[int, int, int]
Listing = Mapping[str, Stamp]
CHANGED: Final = "changed since the build"
TRACKED: Final = "tracked by git"
UNNAMED: Final = "came while a build ran, and neither Ninja nor CMake nor an install names it"
FOLDERS: Final = frozenset(
    (
        *(".git", ".hg", ".torchbuild", "__pycache__", "dist", "node_modules"),
        *(".idea", ".vscode", ".vs", ".cache", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".lintbin"),
    )
)
# Vim, Emacs, Kate, GNOME's and JetBrains' editors, Visual Studio, common names for temporary files, and ours.
FILES: Final = (
    *("*.swp", "*.swo", "*.swx", "*~", ".#*", "#*#", "4913", ".*.kate-swp", ".goutputstream-*"),
    *("*___jb_tmp___", "*___jb_old___", "*.tmp", "*.TMP", "*.pyc", "*.log", "env_set.*", ".DS_Store"),
    ".*.torchbuild-partial",  # system/files.py
)
BUILD: Final = "build/"  # how the rows begin that are about the build folder


def patterns(catalog: Catalog, era: str) -> Outputs:
    """Return the outputs of a build of this era, as the rows of data/outputs.toml have them."""
    return Outputs(patterns=tuple(row.pattern for row in catalog.output if row.era in ("", era)))


def recordable(catalog: Catalog, era: str) -> Outputs:
    """Return the same patterns, and what a build of the other era may have left in this checkout before.

    Of these a build claims what it is named for, and what needs no name.
    """
    others = tuple(row.pattern for row in catalog.output if row.era not in ("", era))
    sure = tuple(row.pattern for row in catalog.output if not row.named)
    return replace(patterns(catalog, era), others=others, sure=sure)


def of_either_era(catalog: Catalog, era: str) -> Outputs:
    """Return the outputs of builds of both eras, to be claimed: a wheel is laid in place in either."""
    outputs = recordable(catalog, era)
    return replace(outputs, patterns=(*outputs.patterns, *outputs.others), others=())


def find_emptied_folders(catalog: Catalog) -> tuple[tuple[str, str], ...]:
    """Return the folders of a build folder that their maker empties, each with the tag that it looks for."""
    rows = (row for row in catalog.output if row.tag)
    return tuple((row.pattern.removeprefix(BUILD).removesuffix("/**"), row.tag) for row in rows)


class Outputs(msgspec.Struct, frozen=True, kw_only=True):
    """Patterns of what a build writes. `build` is the build folder in the checkout, ending in `/`.

    `others` are those of builds of the other era: owned while they are there, never claimed again. What no
    pattern of `sure` matches is claimed only when something of the build names it; None: everything is sure.
    """

    patterns: tuple[str, ...]
    others: tuple[str, ...] = ()
    build: str = ""
    sure: tuple[str, ...] | None = None

    def below(self, folder: str) -> Outputs:
        """Return the same with everything below `folder`, the build folder; "" when it lies elsewhere."""
        return replace(self, build=folder)

    def matches(self, path: str) -> bool:
        """Return whether a build may have made this file or folder."""
        return self._among(path, (*self.patterns, *self.others))

    def _among(self, path: str, patterns: tuple[str, ...]) -> bool:
        if self.build and path.startswith(self.build):
            return True
        return "/__pycache__/" not in path and _whole(patterns).fullmatch(path) is not None

    def needs_name(self, path: str) -> bool:
        """Return whether matching a pattern alone does not show that a build made this."""
        if self.sure is None:
            return False
        sure = self.sure
        if self.build not in ("", BUILD):
            sure = (*sure, *(self.build + row.removeprefix(BUILD) for row in sure if row.startswith(BUILD)))
        return _whole(sure).fullmatch(path) is None

    def reaches(self, folder: str) -> bool:
        """Return whether anything below this folder could match."""
        if self.build and (folder.startswith(self.build) or self.build.startswith(folder)):
            return True
        patterns = (*self.patterns, *self.others)
        return not folder.endswith("/__pycache__/") and _leading(patterns).fullmatch(folder) is not None

    def claim(
        self, before: Listing, after: Listing, earlier: Listing, *, until: int | None = None
    ) -> dict[str, Stamp]:
        """Return what builds own after one that found `before` and left `after`.

        `earlier` is what builds owned already. `until` is set when the build was killed,
        to the time (ns) of its last word: what was written later is not claimed.
        """
        owned = {}
        for path, stamp in after.items():
            known = before.get(path)
            wrote = stamp[:2] != known[:2] if known else self._among(path, self.patterns)
            if until is not None and stamp[2] > until and not self._outlives(path):
                wrote = False
            if wrote and (path not in before or path in earlier):
                owned[path] = stamp
            elif path in earlier:
                owned[path] = earlier[path]
        return owned

    def _outlives(self, path: str) -> bool:
        """Return whether what a killed build's compilers wrote after its last word is known as theirs."""
        return self.sure is not None and (path.startswith(self.build or "\0") or self.needs_name(path))

    def find_unnamed(
        self, claimed: Listing, earlier: Listing, find_named: Callable[[Set[str]], Iterable[str]]
    ) -> frozenset[str]:
        """Return what of the claimed nothing names, so that something else may have made it.

        Args:
            claimed: what came while a build ran, as `claim` returns it.
            earlier: what builds owned before.
            find_named: returns those of some files that something of the build names.
        """
        # A folder needs none: it goes only with nothing in it.
        unknown = {
            path for path in claimed if not (path in earlier or path.endswith("/")) and self.needs_name(path)
        }
        return frozenset(unknown).difference(find_named(unknown)) if unknown else frozenset()

    def sort_out(
        self, owned: Listing, now: Listing, tracked: Iterable[str]
    ) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
        """Return files that a clean may remove, and those it keeps, each with the reason."""
        tracked = frozenset(tracked)
        remove, kept = [], []
        for path in sorted(path for path in owned if path in now and not path.endswith("/")):
            if path in tracked:
                kept.append((path, TRACKED))
            elif owned[path][:2] != now[path][:2]:
                kept.append((path, CHANGED))
            else:
                remove.append(path)
        return tuple(remove), tuple(kept)


@functools.lru_cache(maxsize=8)
def _whole(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(_regex(pattern) for pattern in patterns), re.DOTALL)


@functools.lru_cache(maxsize=8)
def _leading(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """Return an expression for the folders above what the patterns match."""
    folders = set()
    for pattern in patterns:
        parts = pattern.split("/")
        for depth, part in enumerate(parts[:-1], start=1):
            deeper = "/.*" if parts[depth] == "**" else "/"
            folders.add(_regex("/".join(parts[:depth])) + deeper)
            if part == "**":
                break
    return re.compile("|".join(folders), re.DOTALL)


def _regex(pattern: str) -> str:
    """`*` within a folder, `**/` for any number of folders, a final `/**` for all below."""
    tokens = {"**/": "(?:[^/]+/)*", "/**": "/.*", "*": "[^/]*"}
    pieces = re.split(r"(\*\*/|/\*\*$|\*)", pattern)
    return "".join(tokens.get(piece) or re.escape(piece) for piece in pieces)


# ---- which saves of a file start a build: those of all but outputs, and what editors and tools write


def starts_build(path: str, outputs: Outputs) -> bool:
    """Return whether the save of a file, relative to the checkout with `/`, is worth a build."""
    *folders, name = path.split("/")
    if FOLDERS.intersection(folders) or name in FOLDERS:
        return False
    return not any(fnmatch.fnmatchcase(name, pattern) for pattern in FILES) and not outputs.matches(path)
