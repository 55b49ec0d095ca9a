"""Whether what a library of Linux needs is in those that it gets: versions, then functions.

Python loads with RTLD_NOW, so a function that nobody gives fails at once. Sources: _dl_check_map_versions
in elf/dl-version.c and _dl_lookup_symbol_x in elf/dl-lookup.c of glibc.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Literal

from torchbuild_tasks.core.closure.elf_places import places
from torchbuild_tasks.core.closure.graph import HERE, MOST, PRELOADED, Graph, Node, Shelf, below
from torchbuild_tasks.model.closure import Break, Image, Loader, Symbol


def check_versions(graph: Graph, loader: Loader, shelf: Shelf) -> None:
    """Hold the versions that each library needs of another against those that one defines.

    Each library that lacks some is told once, with the first that needs them: that is the loader's own word.
    """
    told: set[int] = set()
    for node in below(graph.roots):
        for name, versions in node.image.wants.items():
            giver = _giver(node, name)
            if giver is None or not giver.image.versions or id(giver) in told:
                continue
            lacking = [version for version in versions if version not in giver.image.versions]
            if lacking:
                told.add(id(giver))
                others = _copies(name, node, graph, loader, shelf)
                better = next((path for path, image in others if image.versions.issuperset(lacking)), "")
                graph.breaks.append(_lacks("version", node, sorted(lacking, key=_newest), giver, better))


def _newest(version: str) -> tuple[int, ...]:
    """The order of versions of one library, the newest first: GLIBCXX_3.4.30 before CXXABI_1.3.5."""
    return tuple(-int(number) for number in re.findall(r"\d+", version))


def check_symbols(graph: Graph, loader: Loader, shelf: Shelf) -> None:
    """Hold the functions that each library needs against what the process gives."""
    everywhere = [*below([graph.program] if graph.program else []), *below(graph.roots[: loader.shared])]
    checked: set[int] = set()
    for root in graph.roots:
        own = list(below([root]))
        scope = list({id(node): node for node in (*everywhere, *own)}.values())
        for node in own:
            if node.how not in (HERE, PRELOADED) and id(node) not in checked:
                for library, lacking in _lacking(node, scope, shelf).items():
                    graph.breaks.extend(_explained(library, lacking, node, graph, loader, shelf))
            checked.add(id(node))


def _lacking(node: Node, scope: Sequence[Node], shelf: Shelf) -> dict[str, list[Symbol]]:
    """What `node` takes and nobody gives, by the library that it takes it from; "" where it names none."""
    left = set(shelf.wanted(node.path))
    named = {symbol.library for symbol in left}
    for giver in sorted(scope, key=lambda each: each.name not in named):
        if left:
            left -= set(shelf.exported(giver.path, left))
    found: dict[str, list[Symbol]] = {}
    for symbol in sorted(left, key=lambda each: each.name):
        found.setdefault(symbol.library, []).append(symbol)
    return found


def _explained(
    library: str, lacking: Sequence[Symbol], node: Node, graph: Graph, loader: Loader, shelf: Shelf
) -> Iterator[Break]:
    """What ought to give these, where that can be told: by name, by another copy, by its own name."""
    giver, better = _giver(node, library), ""
    names = [symbol.name for symbol in lacking]
    if giver is not None and _is_told(giver, graph):
        return
    for need in [giver] if giver else node.needs:
        for path, image in _copies(need.name, node, graph, loader, shelf):
            if not better and image.real != need.image.real and _gives(path, lacking, shelf):
                giver, better = need, path
    if giver is None:
        giver = next((need for need in node.needs if need.image.name not in ("", need.name)), None)
    if giver is None or not _is_told(giver, graph):
        yield _lacks("symbol", node, names, giver, better)


def _is_told(giver: Node, graph: Graph) -> bool:
    return any(each.path == giver.path and each.status == "error" for each in graph.breaks)


def _gives(path: str, symbols: Collection[Symbol], shelf: Shelf) -> bool:
    return bool(shelf.exported(path, symbols))


def _giver(node: Node, name: str) -> Node | None:
    """The library that `node` got by this name."""
    return next((each for each in node.needs if name and name in (each.name, each.image.name)), None)


def _copies(
    name: str, needer: Node, graph: Graph, loader: Loader, shelf: Shelf
) -> Iterator[tuple[str, Image]]:
    """The files of this name that the search would meet, the one that it takes first."""
    for path, _ in places(name, needer, graph.program, loader):
        image = shelf.image(path)
        if image is not None and not image.damage and image.machine == loader.machine:
            yield path, image


def _lacks(
    kind: Literal["version", "symbol"],
    needer: Node,
    lacking: Sequence[str],
    giver: Node | None,
    better: str = "",
) -> Break:
    if giver:
        return giver.at_fault(
            kind, "error", needer=needer, detail=giver.image.name, lacking=lacking, better=better
        )
    few = tuple(lacking[:MOST])
    count = len(lacking)
    return Break(kind=kind, status="error", library="", chain=needer.chain(), wanted=few, count=count)
