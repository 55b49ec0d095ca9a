"""The closure of one process: walked, checked, and said in words."""

from __future__ import annotations

from collections.abc import Sequence

from torchbuild_tasks.catalog.rows import LibraryRow
from torchbuild_tasks.core.closure.doubts import check_shadowed, check_twice
from torchbuild_tasks.core.closure.elf import walk_elf
from torchbuild_tasks.core.closure.elf_checks import check_symbols, check_versions
from torchbuild_tasks.core.closure.graph import Shelf
from torchbuild_tasks.core.closure.pe import walk_pe
from torchbuild_tasks.core.closure.pe_checks import check_imports, check_runtime
from torchbuild_tasks.core.closure.words import told
from torchbuild_tasks.model.closure import Break, Loader, Placed


def close(
    loader: Loader, shelf: Shelf, rows: Sequence[LibraryRow]
) -> tuple[tuple[Placed, ...], tuple[Break, ...]]:
    """Every library that the roots need, and where the closure breaks: the first is the loader's own.

    Functions are looked for only where no library is missing: else those of the missing one are.
    """
    if loader.system == "windows":
        graph = walk_pe(loader, shelf)
        check_runtime(graph)
        if not _broken(graph.breaks):
            check_imports(graph, loader, shelf)
    else:
        graph = walk_elf(loader, shelf)
        check_versions(graph, loader, shelf)
        if not _broken(graph.breaks):
            check_symbols(graph, loader, shelf)
        check_shadowed(graph, loader, shelf)
    check_twice(graph, rows)
    breaks = sorted(graph.breaks, key=lambda each: each.status != "error")
    return graph.placed(), tuple(told(each, rows) for each in breaks)


def _broken(breaks: Sequence[Break]) -> bool:
    return any(each.status == "error" and each.kind != "version" for each in breaks)
