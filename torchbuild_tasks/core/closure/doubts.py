"""What loads, and may be the wrong one all the same."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence

from torchbuild_tasks.catalog.rows import LibraryRow
from torchbuild_tasks.core.closure.graph import Graph, Node, Shelf, below
from torchbuild_tasks.core.closure.rows import row_of
from torchbuild_tasks.model.closure import Loader


def check_twice(graph: Graph, rows: Sequence[LibraryRow]) -> None:
    """Warn of two libraries of one family in one process: two OpenMP runtimes, two CUDAs."""
    families: dict[str, list[Node]] = {}
    for node in below(graph.roots):
        row = row_of(node.name, rows)
        if row is not None and row.family:
            families.setdefault(row.family, []).append(node)
    for family, nodes in families.items():
        if len(nodes) > 1:
            first, second = nodes[:2]
            graph.breaks.append(second.at_fault("twice", "warn", detail=family, better=first.path))


def check_shadowed(graph: Graph, loader: Loader, shelf: Shelf) -> None:
    """Warn of a library from LD_LIBRARY_PATH or PATH where torch has one of that name beside it."""
    ours = {posixpath.dirname(node.path) for node in graph.roots}
    for node in below(graph.roots):
        if node.how != "LD_LIBRARY_PATH":
            continue
        for folder in sorted(ours):
            path = posixpath.join(folder, node.name)
            image = shelf.image(path)
            if image is not None and image.real != node.image.real:
                graph.breaks.append(node.at_fault("shadowed", "warn", better=path))
                break
