"""Whether a DLL gets the functions that it imports, and a runtime of Microsoft that is new enough."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from torchbuild_tasks.core.closure.graph import HERE, Graph, Node, Shelf, below
from torchbuild_tasks.model.closure import Loader, Symbol

_RUNTIME: Final = "msvcp140.dll"  # what std::mutex is in 14.40 crashes with an older one
_MICROSOFT: Final = 14  # the major of the linker and of the runtime, from Visual Studio 2015 on


def check_imports(graph: Graph, loader: Loader, shelf: Shelf) -> None:
    """Hold the functions that each DLL takes by name against what the DLL gives that it gets.

    The known DLLs are Windows itself, and no copy of them is ever wrong.
    """
    for node in below(graph.roots):
        if node.how == HERE or node.name.lower() in loader.cache:
            continue
        wanted: dict[str, list[Symbol]] = {}
        for symbol in shelf.wanted(node.path):
            wanted.setdefault(symbol.library.lower(), []).append(symbol)
        for giver in node.needs:
            symbols = wanted.get(giver.name.lower(), ())
            if symbols and giver.name.lower() not in loader.cache:
                _check(graph, node, giver, symbols, shelf)


def _check(graph: Graph, node: Node, giver: Node, symbols: Sequence[Symbol], shelf: Shelf) -> None:
    given = set(shelf.exported(giver.path, symbols))
    lacking = sorted({symbol.name for symbol in symbols if symbol not in given})
    if lacking:
        graph.breaks.append(giver.at_fault("symbol", "error", needer=node, lacking=lacking))


def check_runtime(graph: Graph) -> None:
    """Warn of a runtime that is older than the toolset that linked what uses it.

    Source: learn.microsoft.com, "C++ binary compatibility between Visual Studio versions": the
    Redistributable must be at least as new as the newest toolset.
    """
    told = False
    for node in below(graph.roots):
        major, minor = node.image.linker
        for runtime in node.needs:
            name, release = runtime.name.lower(), runtime.image.release
            late = major == release[0] == _MICROSOFT and release[1] < minor
            if name == _RUNTIME and late and not told:
                told = True
                detail = f"{release[0]}.{release[1]}, older than toolset {major}.{minor} of"
                graph.breaks.append(runtime.at_fault("old runtime", "warn", needer=node, detail=detail))
