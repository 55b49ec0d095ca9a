"""Simulate Windows' search for DLLs, then check imports and the runtime."""

from __future__ import annotations

import ntpath
from collections.abc import Iterator, Sequence
from typing import Final

from torchbuild_tasks.features.closure.graph import (
    ALREADY_LOADED,
    ROOT,
    Graph,
    LibraryFiles,
    Node,
    walk_needs,
)
from torchbuild_tasks.model.closure import FoundLibrary, Image, Loader, State, Symbol

# torch/__init__.py loads these before its own.
_RUNTIMES = ("vcruntime140.dll", "msvcp140.dll", "vcruntime140_1.dll")
_API_SETS = ("api-ms-", "ext-ms-")


def walk_pe(loader: Loader, files: LibraryFiles) -> Graph:
    """Simulate loading the process's DLLs, then each root with all that it needs."""
    walk = _Walk(loader, files)
    for path in loader.loaded:
        image = files.image(path)
        if image is not None and not image.damage:
            walk.put(ntpath.basename(path), path, image, ALREADY_LOADED)
    for node in list(walk.by_name.values()):
        node.needs = [
            walk.by_name[name.lower()] for name in node.image.needed if name.lower() in walk.by_name
        ]
    for name in _RUNTIMES:
        walk.load_runtime(name)
    for path in loader.roots:
        walk.load_root(path)
    return walk.graph


class _Walk:
    def __init__(self, loader: Loader, files: LibraryFiles) -> None:
        self.loader = loader
        self.files = files
        self.graph = Graph()
        self.by_name: dict[str, Node] = {}
        self.without_file: set[str] = set()  # names that have been reported

    def put(self, name: str, path: str, image: Image, how: str, by: Node | None = None) -> Node:
        """Add a file to the process, under the name by which others find it."""
        node = Node(name, path, image, how, by)
        if path == self.loader.executable:
            self.graph.program = node
        self.by_name[name.lower()] = node
        self.graph.nodes.append(node)
        return node

    def load_runtime(self, name: str) -> None:
        """Load the DLLs that torch loads before its own; torch only warns if they are missing."""
        if name in self.by_name:
            return
        for path, how in self._search_paths(name, ""):
            image = self.files.image(path)
            if image is not None:
                if not image.damage and image.machine == self.loader.machine:
                    self._load_needs(self.put(name, path, image, how))
                return

    def load_root(self, path: str) -> None:
        """Load one root with all that it needs, unless it is loaded already."""
        name = ntpath.basename(path)
        if name.lower() in self.by_name:
            node = self.by_name[name.lower()]
            if node.path.lower() == path.lower():
                self.graph.roots.append(node)
                return
        image = self.files.image(path)
        if name.lower() in self.without_file:
            return  # reported when another needed it
        if image is None:
            self.graph.add_missing(name, path)
        elif image.damage or image.machine != self.loader.machine:
            self._note_unusable(name, path, image, ROOT, ())
        else:
            root = self.put(name, path, image, ROOT)
            self._load_needs(root)
            self.graph.roots.append(root)

    def _load_needs(self, root: Node) -> None:
        queue = [root]
        folder = ntpath.dirname(root.path)
        while queue:
            needer = queue.pop(0)
            for name in needer.image.needed:
                known = self.by_name.get(name.lower())
                library = known or self._find(name, needer, folder)
                if library is not None:
                    needer.needs.append(library)
                    if known is None:
                        queue.append(library)
            for name in needer.image.delayed:
                if name.lower() not in self.by_name:
                    self._note_without_file(name, "on demand", needer)

    def _find(self, name: str, needer: Node, folder: str) -> Node | None:
        if name.lower() in self.without_file:
            return None
        if name.lower().startswith(_API_SETS):
            self._note_without_file(name, "api set", needer)
            return None
        looked: list[str] = []
        for path, how in self._search_paths(name, folder):
            image = self.files.image(path)
            if image is None or image.passed_over:
                looked.append(ntpath.dirname(path))
            elif image.damage or image.machine != self.loader.machine:
                self._note_unusable(name, path, image, how, needer.chain())
                return None
            else:
                return self.put(name, path, image, how, needer)
        self.without_file.add(name.lower())
        self.graph.add_missing(name, chain=needer.chain(), looked=tuple(dict.fromkeys(looked)))
        return None

    def _search_paths(self, name: str, folder: str) -> Iterator[tuple[str, str]]:
        """Yield the paths that are tried, each with its rule."""
        loader = self.loader
        for path in loader.cache.get(name.lower(), ()):
            yield path, "a known DLL of Windows"
        named = [
            *([(folder, "beside the DLL that is loaded")] if folder else []),
            (ntpath.dirname(loader.executable), "beside python.exe"),
            *((extra, "a folder that torch adds") for extra in loader.extra),
            *((system, "a folder of Windows") for system in loader.defaults),
            *((each, "PATH") for each in loader.search_path),
        ]
        for folder, how in named:
            yield ntpath.join(folder, name), how

    def _note_without_file(self, name: str, state: State, needer: Node) -> None:
        if name.lower() not in self.without_file:
            self.without_file.add(name.lower())
            self.graph.others.append(FoundLibrary(name=name, state=state, by=needer.path))

    def _note_unusable(self, name: str, path: str, image: Image, how: str, chain: tuple[str, ...]) -> None:
        self.without_file.add(name.lower())
        self.graph.add_unusable(name, path, image, self.loader.machine, how, chain)


# ---------------- the checks


_RUNTIME: Final = "msvcp140.dll"  # std::mutex of 14.40 crashes with an older runtime
_MICROSOFT: Final = 14  # the major of the linker and of the runtime, from Visual Studio 2015 on


def check_imports(graph: Graph, loader: Loader, files: LibraryFiles) -> None:
    """Check that the functions that each DLL imports by name are exported by the found DLL.

    The known DLLs are Windows itself, and no copy of them is ever wrong.
    """
    for node in walk_needs(graph.roots):
        if node.how == ALREADY_LOADED or node.name.lower() in loader.cache:
            continue
        wanted: dict[str, list[Symbol]] = {}
        for symbol in files.wanted(node.path):
            wanted.setdefault(symbol.library.lower(), []).append(symbol)
        for giver in node.needs:
            symbols = wanted.get(giver.name.lower(), ())
            if symbols and giver.name.lower() not in loader.cache:
                _check(graph, node, giver, symbols, files)


def _check(graph: Graph, node: Node, giver: Node, symbols: Sequence[Symbol], files: LibraryFiles) -> None:
    exported = set(files.exported(giver.path, symbols))
    lacking = sorted({symbol.name for symbol in symbols if symbol not in exported})
    if lacking:
        graph.breaks.append(giver.break_at("symbol", "error", needer=node, lacking=lacking))


def check_runtime(graph: Graph) -> None:
    """Warn of a runtime older than the toolset of a DLL that uses it.

    Source: learn.microsoft.com, "C++ binary compatibility between Visual Studio versions": the
    Redistributable must be at least as new as the newest toolset.
    """
    reported = False
    for node in walk_needs(graph.roots):
        major, minor = node.image.linker
        for runtime in node.needs:
            name = runtime.name.lower()
            release = runtime.image.release
            late = major == release[0] == _MICROSOFT and release[1] < minor
            if name == _RUNTIME and late and not reported:
                reported = True
                detail = f"{release[0]}.{release[1]}, older than toolset {major}.{minor} of"
                graph.breaks.append(runtime.break_at("old runtime", "warn", needer=node, detail=detail))
