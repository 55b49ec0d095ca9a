"""Decide which files of a checkout are outputs of a build, by the rows of data/outputs.toml."""

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
BUILD: Final = "build/"  # the start of rows about the build folder


def patterns(catalog: Catalog, era: str) -> Outputs:
    """Return the outputs of a build of this era, as the rows of data/outputs.toml have them."""
    return Outputs(patterns=tuple(row.pattern for row in catalog.output if row.era in ("", era)))


def recordable_outputs(catalog: Catalog, era: str) -> Outputs:
    """Return the patterns of this era, and those of the other for files of earlier builds.

    A build claims files of the other era if it names them, or if their pattern is sure.
    """
    others = tuple(row.pattern for row in catalog.output if row.era not in ("", era))
    sure = tuple(row.pattern for row in catalog.output if not row.named)
    return replace(patterns(catalog, era), others=others, sure=sure)


def outputs_of_both_eras(catalog: Catalog, era: str) -> Outputs:
    """Return the outputs of both eras as claimable: a wheel is laid over a checkout of either."""
    outputs = recordable_outputs(catalog, era)
    return replace(outputs, patterns=(*outputs.patterns, *outputs.others), others=())


def find_emptied_folders(catalog: Catalog) -> tuple[tuple[str, str], ...]:
    """Return the folders that scikit-build-core empties, each with the name of its tag file."""
    rows = (row for row in catalog.output if row.tag)
    return tuple((row.pattern.removeprefix(BUILD).removesuffix("/**"), row.tag) for row in rows)


class Outputs(msgspec.Struct, frozen=True, kw_only=True):
    """Patterns of a build's outputs. `build` is the build folder in the checkout, ending in `/`.

    `others` are those of builds of the other era: owned while they are there, never claimed again. What no
    pattern of `sure` matches is claimed only when something of the build names it; None: everything is sure.
    """

    patterns: tuple[str, ...]
    others: tuple[str, ...] = ()
    build: str = ""
    sure: tuple[str, ...] | None = None

    def below(self, folder: str) -> Outputs:
        """Return the outputs including everything below the build folder; "" for a build folder elsewhere."""
        return replace(self, build=folder)

    def matches(self, path: str) -> bool:
        """Say whether a build may have written this file or folder."""
        return self._among(path, (*self.patterns, *self.others))

    def _among(self, path: str, patterns: tuple[str, ...]) -> bool:
        if self.build and path.startswith(self.build):
            return True
        return "/__pycache__/" not in path and _any_of(patterns).fullmatch(path) is not None

    def needs_name(self, path: str) -> bool:
        """Say whether a file that matches a pattern may also be someone else's, unless the build names it."""
        if self.sure is None:
            return False
        sure = self.sure
        if self.build not in ("", BUILD):
            sure = (*sure, *(self.build + row.removeprefix(BUILD) for row in sure if row.startswith(BUILD)))
        return _any_of(sure).fullmatch(path) is None

    def reaches(self, folder: str) -> bool:
        """Say whether anything below this folder could match."""
        if self.build and (folder.startswith(self.build) or self.build.startswith(folder)):
            return True
        patterns = (*self.patterns, *self.others)
        return not folder.endswith("/__pycache__/") and _parents_of(patterns).fullmatch(folder) is not None

    def claim(
        self, before: Listing, after: Listing, earlier: Listing, *, until: int | None = None
    ) -> dict[str, Stamp]:
        """Return the files that builds own after one that found `before` and left `after`.

        `earlier` are the files that builds owned before. `until` is set for a killed build, to the time (ns)
        of its last output: files written later are not claimed.
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
        """Say whether a file written after a killed build's last output is known to be a compiler's."""
        return self.sure is not None and (path.startswith(self.build or "\0") or self.needs_name(path))

    def find_unnamed(
        self, claimed: Listing, earlier: Listing, find_named: Callable[[Set[str]], Iterable[str]]
    ) -> frozenset[str]:
        """Return the claimed files that nothing names, so that something else may have written them.

        Args:
            claimed: what came while a build ran, as `claim` returns it.
            earlier: what builds owned before.
            find_named: returns those of some files that something of the build names.
        """
        # A folder needs no name: only an empty one is removed.
        unknown = {
            path for path in claimed if not (path in earlier or path.endswith("/")) and self.needs_name(path)
        }
        return frozenset(unknown).difference(find_named(unknown)) if unknown else frozenset()

    def split_removable(
        self, owned: Listing, now: Listing, tracked: Iterable[str]
    ) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
        """Return files that a clean may remove, and those it keeps, each with the reason."""
        tracked = frozenset(tracked)
        remove = []
        kept = []
        for path in sorted(path for path in owned if path in now and not path.endswith("/")):
            if path in tracked:
                kept.append((path, TRACKED))
            elif owned[path][:2] != now[path][:2]:
                kept.append((path, CHANGED))
            else:
                remove.append(path)
        return tuple(remove), tuple(kept)


@functools.lru_cache(maxsize=8)
def _any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(_regex(pattern) for pattern in patterns), re.DOTALL)


@functools.lru_cache(maxsize=8)
def _parents_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """Return a regular expression for the folders above what the patterns match."""
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


# ---- which saves start a build: all but those of outputs and of files that editors and tools write


def starts_build(path: str, outputs: Outputs) -> bool:
    """Say whether saving this file (relative to the checkout, with `/`) starts a build."""
    *folders, name = path.split("/")
    if FOLDERS.intersection(folders) or name in FOLDERS:
        return False
    return not any(fnmatch.fnmatchcase(name, pattern) for pattern in FILES) and not outputs.matches(path)
