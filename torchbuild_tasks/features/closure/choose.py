"""Compute the closure of a process, check it, and explain breaks by the rows of data/libraries.toml."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Final

from torchbuild_tasks.catalog.packaging import LibraryRow
from torchbuild_tasks.features.closure.graph import Graph, LibraryFiles, Node, walk_needs
from torchbuild_tasks.features.closure.linux import check_symbols, check_versions, walk_elf
from torchbuild_tasks.features.closure.windows import check_imports, check_runtime, walk_pe
from torchbuild_tasks.model.closure import Break, FoundLibrary, Loader
from torchbuild_tasks.text.paths import file_name
from torchbuild_tasks.text.words import first_few
from torchbuild_tasks.values import replace


def row_of(name: str, rows: Sequence[LibraryRow]) -> LibraryRow | None:
    """Return the first row that matches a file name; names of DLLs are compared in lower case."""
    known = name.lower() if name.lower().endswith((".dll", ".pyd")) else name
    return next((row for row in rows if any(fnmatchcase(known, pattern) for pattern in row.files)), None)


# ---------------- messages and fixes of breaks


_VARIABLES: Final = ("LD_LIBRARY_PATH", "PATH")
_FOLDERS: Final = 12


def explain(broken: Break, rows: Sequence[LibraryRow]) -> Break:
    """Return the break with its message, its fix and the packages with the missing library."""
    row = row_of(broken.library, rows) if broken.library else None
    packages = _packages(broken, row) if row and broken.kind not in ("twice", "shadowed") else {}
    return replace(broken, text=_text(broken, row), fix=_fix(broken, row, packages), packages=packages)


def _packages(broken: Break, row: LibraryRow) -> dict[str, str]:
    """Return the packages that have a library, for the file's system."""
    elsewhere = ("apt", "dnf") if broken.library.lower().endswith(".dll") else ("winget",)
    return {manager: name for manager, name in row.packages.items() if manager not in elsewhere}


def folder(path: str) -> str:
    """Return the folder in a path of either system."""
    return path[: len(path) - len(file_name(path))].rstrip("/\\") or "/"


def _text(broken: Break, row: LibraryRow | None) -> str:
    name = f"{broken.library} ({row.what})" if row else broken.library
    by = f", which {file_name(broken.chain[-1])} needs" if broken.chain else ""
    at = f" {broken.path}" + (f" (found by: {broken.how})" if broken.how else "")
    has = f"; {broken.better} has it" if broken.better else ""
    really = f", which calls itself {broken.detail}," if broken.detail not in ("", broken.library) else ""
    more = broken.count - len(broken.wanted)
    lacking = ", ".join(broken.wanted) + (f" and {more} more" if more > 0 else "")
    match broken.kind:
        case "missing":
            return f"{name} is missing{by}{f': there is no {broken.path}' if broken.path else ''}."
        case "damaged":
            return f"{name} is damaged: {broken.path} is {broken.detail}{by}."
        case "other machine":
            return f"{name} is for another processor: {broken.path} is {broken.detail}{by}."
        case "version":
            return f"{name} is too old:{at} lacks {lacking}{by}{has}."
        case "symbol" if broken.library:
            return f"{name} is not the one that torch was built with:{at}{really} lacks {lacking}{by}{has}."
        case "symbol":
            return f"{file_name(broken.chain[-1])} needs {lacking}, and no library that is loaded has it."
        case "twice":
            return f"{broken.detail} is loaded twice: {broken.better} and {broken.path}."
        case "shadowed":
            return f"{name} comes from {broken.path} ({broken.how}), before torch's own {broken.better}."
        case _:
            return f"{name} is old:{at} is {broken.detail} {file_name(broken.chain[-1])}."


def searched_text(broken: Break) -> str:
    """Return the searched folders as text, the first dozen by name."""
    return first_few(broken.looked, _FOLDERS)


def _fix(broken: Break, row: LibraryRow | None, packages: Mapping[str, str]) -> str:
    """Return how to remove a wrong library that is found first; else how to install a missing one."""
    if broken.kind == "twice":
        return "Keep one of them: two in one process can crash it or slow it down."
    if broken.how in _VARIABLES and broken.kind != "missing":
        return f"Remove {folder(broken.path)} from {broken.how}."
    if broken.how == "LD_PRELOAD":
        return f"Remove {broken.path} from LD_PRELOAD."
    if broken.kind == "symbol" and not broken.library:
        return "Libraries of two builds are mixed: install torch again, or torchbuild build --clean."
    names = "; ".join(f"{manager}: {name}" for manager, name in packages.items())
    return " ".join(filter(None, (names and f"It comes with {names}.", row.fix if row else "")))


# ---------------- libraries that load but may be the wrong ones


def check_twice(graph: Graph, rows: Sequence[LibraryRow]) -> None:
    """Warn of two libraries of one family in one process: two OpenMP runtimes, two CUDAs."""
    families: dict[str, list[Node]] = {}
    for node in walk_needs(graph.roots):
        row = row_of(node.name, rows)
        if row is not None and row.family:
            families.setdefault(row.family, []).append(node)
    for family, nodes in families.items():
        if len(nodes) > 1:
            first, second = nodes[:2]
            graph.breaks.append(second.break_at("twice", "warn", detail=family, better=first.path))


def check_shadowed(graph: Graph, files: LibraryFiles) -> None:
    """Warn of a library from LD_LIBRARY_PATH or PATH that hides torch's own of that name."""
    ours = {posixpath.dirname(node.path) for node in graph.roots}
    for node in walk_needs(graph.roots):
        if node.how != "LD_LIBRARY_PATH":
            continue
        for folder in sorted(ours):
            path = posixpath.join(folder, node.name)
            image = files.image(path)
            if image is not None and image.real != node.image.real:
                graph.breaks.append(node.break_at("shadowed", "warn", better=path))
                break


# ---------------- the closure of one process


def close(
    loader: Loader, files: LibraryFiles, rows: Sequence[LibraryRow]
) -> tuple[tuple[FoundLibrary, ...], tuple[Break, ...]]:
    """Return every library that the roots need, and the breaks, first the one that the loader reports.

    Symbols are looked for only where no library is missing: else those of the missing one would be.
    """
    if loader.system == "windows":
        graph = walk_pe(loader, files)
        check_runtime(graph)
        if not _broken(graph.breaks):
            check_imports(graph, loader, files)
    else:
        graph = walk_elf(loader, files)
        check_versions(graph, loader, files)
        if not _broken(graph.breaks):
            check_symbols(graph, loader, files)
        check_shadowed(graph, files)
    check_twice(graph, rows)
    breaks = sorted(graph.breaks, key=lambda each: each.status != "error")
    return graph.entries(), tuple(explain(each, rows) for each in breaks)


def _broken(breaks: Sequence[Break]) -> bool:
    return any(each.status == "error" and each.kind != "version" for each in breaks)
