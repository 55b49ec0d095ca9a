"""Find the row that applies, by era, torch version, mode and name."""

from __future__ import annotations

import fnmatch
import functools
import re
from typing import Final

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from torchbuild_tasks.catalog import Catalog
from torchbuild_tasks.catalog.rows import EntryRow, MemoryRow, PresetRow, TorchRow, VariableRow

_LONGEST: Final = 200  # characters of a version
_MARK: Final = re.compile(r"[*?\[]")


@functools.lru_cache(maxsize=4096)
def parse_version(text: str | None) -> Version | None:
    """Parse a version; None without one, or if it is not PEP 440."""
    try:
        return Version(text) if text and len(text) <= _LONGEST else None
    except ValueError:  # also of int, which takes 4,300 digits
        return None


@functools.lru_cache(maxsize=1024)
def parse_requirement(text: str) -> Requirement | None:
    """Parse a requirement (PEP 508), which nobody may change; None if it is invalid."""
    try:
        return Requirement(text)
    except InvalidRequirement:
        return None


def counts_for(requirement: Requirement, python: str) -> bool:
    """Say whether a requirement counts for a Python of this version ("" for ours), without extras."""
    own = {"python_version": series(python), "python_full_version": python} if python else {}
    return requirement.marker is None or requirement.marker.evaluate({"extra": "", **own})


@functools.lru_cache(maxsize=4096)
def row_version(text: str) -> Version:
    """Return the version of a row; cached, because one plan needs those of all rows repeatedly."""
    return Version(text)


def series(version: str | None) -> str:
    """Return the first two numbers of a version, on which ABIs and folder names depend."""
    return ".".join((version or "").split(".")[:2])


def admits(specifier: str, version: str | Version | None) -> bool | None:
    """Say whether a PEP 440 specifier contains a version; None if the version is unknown.

    Pre-releases count, for a checkout says 2.14.0a0 for months before it is 2.14.
    """
    parsed = version if isinstance(version, Version) else parse_version(version)
    if parsed is None:
        return None
    return _contains(specifier, parsed)


@functools.lru_cache(maxsize=4096)
def _contains(specifier: str, version: Version) -> bool:
    """Say whether a specifier contains a version; cached: a plan compares few pairs thousands of times."""
    return SpecifierSet(specifier).contains(version, prereleases=True)


def applies(specifier: str, version: Version | None) -> bool:
    """Say whether a row's `torch` column contains this version; an empty one contains all."""
    return not specifier or version is None or bool(admits(specifier, version))


@functools.lru_cache(maxsize=1024)
def torch_row(catalog: Catalog, version: Version | None) -> tuple[TorchRow, bool]:
    """Return the row of a version's series and True, or the nearest older (else oldest) row and False."""
    series = (version.major, version.minor) if version else (0, 0)
    ordered = sorted(catalog.torch, key=lambda row: row_version(row.version))
    older = [row for row in ordered if row_version(row.version).release[:2] <= series]
    row = older[-1] if older else ordered[-1] if version is None else ordered[0]
    return row, row_version(row.version).release[:2] == series


def entry_row(catalog: Catalog, era: str, mode: str, version: Version | None) -> EntryRow:
    """Return the row of the command that builds a tree of this era and version in this mode."""
    return next(
        row for row in catalog.entry if row.era == era and row.mode == mode and applies(row.torch, version)
    )


def configure_row(catalog: Catalog, era: str, version: Version | None) -> EntryRow | None:
    """Return the row that runs only CMake in a tree of this era and version; None if only a build does."""
    rows = (row for row in catalog.entry if row.era == era and row.mode == "configure")
    return next((row for row in rows if applies(row.torch, version)), None)


@functools.lru_cache(maxsize=8192)
def variable_row(catalog: Catalog, name: str, era: str, version: Version | None) -> VariableRow | None:
    """Return the first row for a variable's name in this era; None if nothing reads it."""
    rows = (row for row in catalog.variable if row.era in ("", era) and covers(row.name, name))
    return next((row for row in rows if applies(row.torch, version)), None)


def covers(pattern: str, name: str) -> bool:
    """Say whether a row's name is this one, or a pattern that matches it.

    A pattern is only compiled for names that begin as it does before its first mark.
    """
    start = _MARK.split(pattern, maxsplit=1)[0]
    return pattern == name or (
        start != pattern and name.startswith(start) and fnmatch.fnmatchcase(name, pattern)
    )


def preset_rows(catalog: Catalog, name: str, os: str) -> tuple[PresetRow, ...]:
    """Return the preset and its overlay for this OS, in the order of their application."""
    return tuple(row for row in catalog.preset if row.name == name and row.os in ("", os))


def memory_row(catalog: Catalog, kind: str) -> MemoryRow:
    return next(row for row in catalog.memory if row.kind == kind)
