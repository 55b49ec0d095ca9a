"""The programs around a compiler that a build uses or could use."""

from __future__ import annotations

from typing import NamedTuple

from torchbuild_tasks.facts.parallel import each
from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.facts.versions import version_of
from torchbuild_tasks.model import Tool


class _Row(NamedTuple):
    """A tool, the file names that it goes by (best first), and whether --version is asked."""

    name: str
    files: tuple[str, ...]
    versioned: bool = True


# A plain sh (dash) takes --version for a script's name; nothing depends on sh's version.
TOOLS: tuple[_Row, ...] = (
    _Row("cmake", ("cmake", "cmake3")),
    _Row("ninja", ("ninja", "ninja-build")),
    _Row("git", ("git",)),
    _Row("make", ("make", "gmake")),
    _Row("ld", ("ld", "ld.bfd")),
    _Row("ld.gold", ("ld.gold",)),
    _Row("ld.lld", ("ld.lld",)),
    _Row("mold", ("mold",)),
    _Row("ccache", ("ccache",)),
    _Row("sccache", ("sccache",)),
    _Row("sh", ("sh",), versioned=False),
    _Row("bash", ("bash",)),
    _Row("patchelf", ("patchelf",)),
)


def look_for_tools(probe: Probe) -> tuple[Tool, ...]:
    """Every tool of `TOOLS` in its order, found on PATH or not; a miss lists the folders of PATH."""
    return each(lambda row: _look(probe, row), TOOLS)


def _look(probe: Probe, row: _Row) -> Tool:
    path = next((found for file in row.files if (found := probe.which(file))), None)
    if path is None:
        return Tool(name=row.name, looked=probe.path_folders)
    version = version_of(probe, path) if row.versioned else None
    return Tool(name=row.name, path=path, version=version, found_via="PATH")
