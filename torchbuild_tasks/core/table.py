"""The table of `versions`: every torch series, held against this machine."""

from __future__ import annotations

from dataclasses import dataclass

from packaging.version import Version

from torchbuild_tasks.catalog import Catalog, TorchRow
from torchbuild_tasks.core.rows import admits, parse_version
from torchbuild_tasks.model import Facts, Status


@dataclass(frozen=True, kw_only=True)
class VersionLine:
    """One series: its row's figures and whether this machine's tools fit it."""

    version: str
    released: str
    python: str
    cxx: int
    gcc: str
    cmake: str
    here: bool
    status: Status
    because: str


def version_lines(catalog: Catalog, facts: Facts) -> tuple[VersionLine, ...]:
    """Newest first; `here` marks the series of the checkout that was looked at."""
    ordered = sorted(catalog.torch, key=lambda row: Version(row.version), reverse=True)
    return tuple(_line(row, facts) for row in ordered)


def newest_fit(catalog: Catalog, facts: Facts) -> TorchRow | None:
    """The newest series that fits this machine, else the newest of which that is not known."""
    ordered = sorted(catalog.torch, key=lambda row: Version(row.version), reverse=True)
    states = {row.version: _fit(row, facts)[0] for row in ordered}
    for wanted in ("ok", "unknown"):
        for row in ordered:
            if states[row.version] == wanted:
                return row
    return None


def _line(row: TorchRow, facts: Facts) -> VersionLine:
    status, because = _fit(row, facts)
    checkout = parse_version(facts.tree.version)
    return VersionLine(
        version=row.version,
        released=row.released,
        python=row.python,
        cxx=row.cxx,
        gcc=row.gcc,
        cmake=row.cmake,
        here=checkout is not None and checkout.release[:2] == Version(row.version).release[:2],
        status=status,
        because=because,
    )


def _fit(row: TorchRow, facts: Facts) -> tuple[Status, str]:
    """Error when no Python or no g++ of this machine fits; unknown when none could be read."""
    pythons = [admits(row.python, python.version) for python in facts.pythons if not python.problem]
    gccs = [admits(row.gcc, tool.version) for tool in facts.compilers if tool.name == "g++" and tool.path]
    lacks = []
    if pythons and True not in pythons:
        lacks.append(f"no Python {row.python} here")
    if gccs and True not in gccs and None not in gccs:
        lacks.append(f"no g++ {row.gcc} here")
    if lacks:
        return "error", "; ".join(lacks)
    if True not in pythons or True not in gccs:
        return "unknown", "no Python or no g++ of known version to compare with"
    return "ok", "a fitting Python and g++ are here"
