"""Simulate ld.so's search for libraries on Linux, then check versions and symbols.

Python loads with RTLD_NOW, so a symbol that no library exports fails at once. Sources of the
checks: _dl_check_map_versions in elf/dl-version.c and _dl_lookup_symbol_x in elf/dl-lookup.c of glibc.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from torchbuild_tasks.features.closure.graph import (
    ALREADY_LOADED,
    MAX_NAMES,
    PRELOADED,
    ROOT,
    Graph,
    LibraryFiles,
    Node,
    is_foreign,
    walk_needs,
)
from torchbuild_tasks.model.closure import Break, Image, Loader, Symbol
from torchbuild_tasks.text.words import numbers_in

_PLATFORMS = {"x86_64": "x86_64", "aarch64": "aarch64", "ppc64le": "power9"}


def search_paths(name: str, needer: Node, program: Node | None, loader: Loader) -> Iterator[tuple[str, str]]:
    """Yield the paths that are tried for `name`, each with its rule.

    Args:
        name: as DT_NEEDED has it; with a slash it is a path, and nothing is searched.
        needer: the library that needs it.
        program: the executable of the process, whose RPATH counts for all.
        loader: the process.
    """
    if "/" in name:
        yield _expand(name, needer, loader), "a path of its own"
        return
    for folder, how in _folders(needer, program, loader):
        for level in (*loader.levels, ""):
            yield posixpath.join(folder, level, name), how
    if not needer.image.no_defaults:
        for path in loader.cache.get(name, ()):
            yield path, "/etc/ld.so.cache"
        for folder in loader.defaults:
            for level in (*loader.levels, ""):
                yield posixpath.join(folder, level, name), "a folder of the system"
    for folder in loader.extra:
        yield posixpath.join(folder, name), "torch's own search of NVIDIA's wheels"


def _folders(needer: Node, program: Node | None, loader: Loader) -> Iterator[tuple[str, str]]:
    """Yield RPATH (of the whole chain, unless the library has a RUNPATH), LD_LIBRARY_PATH, RUNPATH."""
    if not needer.image.runpath:
        above: Node | None = needer
        while above is not None:
            yield from _tag_folders(above, loader, "RPATH")
            above = above.loader
        if program is not None and program is not needer:
            yield from _tag_folders(program, loader, "RPATH")
    for folder in loader.search_path:
        yield folder or ".", "LD_LIBRARY_PATH"
    yield from _tag_folders(needer, loader, "RUNPATH")


def _tag_folders(node: Node, loader: Loader, tag: str) -> Iterator[tuple[str, str]]:
    """Yield the folders of a tag. A library's RPATH is ignored if it has a RUNPATH."""
    image = node.image
    folders = image.runpath if tag == "RUNPATH" else () if image.runpath else image.rpath
    for folder in folders:
        if folder:
            yield _expand(folder, node, loader), f"{tag} of {posixpath.basename(node.path)}"


def _expand(text: str, node: Node, loader: Loader) -> str:
    """Expand $ORIGIN, $LIB and $PLATFORM, with or without braces."""
    values = {
        "ORIGIN": posixpath.dirname(node.path),
        "LIB": loader.lib,
        "PLATFORM": _PLATFORMS.get(loader.machine, loader.machine),
    }
    for name, value in values.items():
        text = text.replace(f"${{{name}}}", value).replace(f"${name}", value)
    return posixpath.normpath(text)


@dataclass
class _Search:
    """The files that a search rejected, and the folders without the library."""

    passed: list[Image] = field(default_factory=list)
    looked: list[str] = field(default_factory=list)


def walk_elf(loader: Loader, files: LibraryFiles) -> Graph:
    """Simulate loading the process's libraries, then each root with all that it needs, nearest first."""
    walk = _Walk(loader, files)
    for path in loader.loaded:
        image = files.image(path)
        if image is not None and not image.damage:
            how = PRELOADED if path in loader.preloaded else ALREADY_LOADED
            walk.put(posixpath.basename(path), path, image, how)
    for node in list(walk.by_real.values()):
        walk.link(node)
    for path in loader.roots:
        walk.load_root(path)
    return walk.graph


class _Walk:
    def __init__(self, loader: Loader, files: LibraryFiles) -> None:
        self.loader = loader
        self.files = files
        self.graph = Graph()
        self.by_real: dict[str, Node] = {}
        self.by_name: dict[str, Node] = {}
        self.missing: set[str] = set()

    def put(self, name: str, path: str, image: Image, how: str, by: Node | None = None) -> Node:
        """Add a file to the process, unless it is there under another name."""
        node = self.by_real.get(image.real)
        if node is None:
            node = Node(name, path, image, how, by)
            self.by_real[image.real] = node
            self.graph.nodes.append(node)
            if path == self.loader.executable:
                self.graph.program = node
            if image.cut_off:
                detail = "without its end; it can be loaded, but what it needs cannot be read"
                self.graph.breaks.append(node.break_at("damaged", "warn", detail=detail))
        for known in (name, image.name):
            if known:
                self.by_name.setdefault(known, node)
        return node

    def link(self, node: Node) -> None:
        """Connect a library of the process with those that it needs."""
        node.needs = [self.by_name[name] for name in node.image.needed if name in self.by_name]

    def load_root(self, path: str) -> None:
        """Load one root, level by level."""
        before = len(self.graph.nodes)
        image = self.files.image(path)
        name = posixpath.basename(path)
        if image is None:
            self.graph.add_missing(name, path)
            return
        if image.damage or is_foreign(image, self.loader.machine):
            self.graph.add_unusable(name, path, image, self.loader.machine, ROOT)
            return
        node = self.put(name, path, image, ROOT)
        self.graph.roots.append(node)
        queue = [node] if len(self.graph.nodes) > before else []
        while queue:
            needer = queue.pop(0)
            for name in needer.image.needed:
                count = len(self.graph.nodes)
                library = self.by_name.get(name) or self._find(name, needer)
                if library is not None:
                    needer.needs.append(library)
                    if len(self.graph.nodes) > count:
                        queue.append(library)

    def _find(self, name: str, needer: Node) -> Node | None:
        """Search as ld.so does: skip a file of another machine, stop at a broken one."""
        if name in self.missing:
            return None
        search = _Search()
        for path, how, image in self._candidates(name, needer, search):
            if image.damage:
                self.graph.add_unusable(name, path, image, self.loader.machine, how, needer.chain())
                self.missing.add(name)
                return None
            return self.put(name, path, image, how, needer)
        self.missing.add(name)
        self._note_missing(name, needer, search)
        return None

    def _candidates(self, name: str, needer: Node, search: _Search) -> Iterator[tuple[str, str, Image]]:
        """Yield the files that the loader would open, in order, without those that it skips."""
        for path, how in search_paths(name, needer, self.graph.program, self.loader):
            image = self.files.image(path)
            if image is None:
                search.looked.append(posixpath.dirname(path))
            elif image.passed_over or is_foreign(image, self.loader.machine):
                search.passed.append(image)
            else:
                yield path, how, image

    def _note_missing(self, name: str, needer: Node, search: _Search) -> None:
        looked = tuple(dict.fromkeys(folder for folder in search.looked if "glibc-hwcaps" not in folder))
        if search.passed:
            passed = search.passed[0]
            machine = self.loader.machine
            self.graph.add_unusable(name, passed.real, passed, machine, "", needer.chain(), looked)
            return
        self.graph.add_missing(name, chain=needer.chain(), looked=looked)


# ---------------- the checks


def check_versions(graph: Graph, loader: Loader, files: LibraryFiles) -> None:
    """Check that the versions that each library needs of another are defined there.

    Each library that lacks some is reported once, with the first that needs them, as ld.so reports it.
    """
    reported: set[int] = set()
    for node in walk_needs(graph.roots):
        for name, versions in node.image.wants.items():
            giver = _loaded_as(node, name)
            if giver is None or not giver.image.versions or id(giver) in reported:
                continue
            lacking = [version for version in versions if version not in giver.image.versions]
            if lacking:
                reported.add(id(giver))
                others = _copies(name, node, graph, loader, files)
                better = next((path for path, image in others if image.versions.issuperset(lacking)), "")
                newest_first = sorted(lacking, key=numbers_in, reverse=True)
                graph.breaks.append(_lacking_break("version", node, newest_first, giver, better))


def check_symbols(graph: Graph, loader: Loader, files: LibraryFiles) -> None:
    """Check that the symbols that each library needs are exported in the process."""
    everywhere = [
        *walk_needs([graph.program] if graph.program else []),
        *walk_needs(graph.roots[: loader.shared]),
    ]
    checked: set[int] = set()
    for root in graph.roots:
        own = list(walk_needs([root]))
        scope = list({id(node): node for node in (*everywhere, *own)}.values())
        for node in own:
            if node.how not in (ALREADY_LOADED, PRELOADED) and id(node) not in checked:
                for library, lacking in _lacking(node, scope, files).items():
                    graph.breaks.extend(_explain(library, lacking, node, graph, loader, files))
            checked.add(id(node))


def _lacking(node: Node, scope: Sequence[Node], files: LibraryFiles) -> dict[str, list[Symbol]]:
    """Return the symbols of `node` that no library exports, by the library that should; "" if unknown."""
    missing = set(files.wanted(node.path))
    named = {symbol.library for symbol in missing}
    for giver in sorted(scope, key=lambda each: each.name not in named):
        if missing:
            missing -= set(files.exported(giver.path, missing))
    by_library: dict[str, list[Symbol]] = {}
    for symbol in sorted(missing, key=lambda each: each.name):
        by_library.setdefault(symbol.library, []).append(symbol)
    return by_library


def _explain(
    library: str, lacking: Sequence[Symbol], node: Node, graph: Graph, loader: Loader, files: LibraryFiles
) -> Iterator[Break]:
    """Yield the break at the library that should export these symbols: by name, another copy, or itself."""
    giver = _loaded_as(node, library)
    better = ""
    names = [symbol.name for symbol in lacking]
    if giver is not None and _is_reported(giver, graph):
        return
    for need in [giver] if giver else node.needs:
        for path, image in _copies(need.name, node, graph, loader, files):
            if not better and image.real != need.image.real and files.exported(path, lacking):
                giver = need
                better = path
    if giver is None:
        giver = next((need for need in node.needs if need.image.name not in ("", need.name)), None)
    if giver is None or not _is_reported(giver, graph):
        yield _lacking_break("symbol", node, names, giver, better)


def _is_reported(giver: Node, graph: Graph) -> bool:
    return any(each.path == giver.path and each.status == "error" for each in graph.breaks)


def _loaded_as(node: Node, name: str) -> Node | None:
    """Return the library that was loaded for `node` by this name."""
    return next((each for each in node.needs if name and name in (each.name, each.image.name)), None)


def _copies(
    name: str, needer: Node, graph: Graph, loader: Loader, files: LibraryFiles
) -> Iterator[tuple[str, Image]]:
    """Yield the files of this name on the search path, in order."""
    for path, _ in search_paths(name, needer, graph.program, loader):
        image = files.image(path)
        if image is not None and not image.damage and image.machine == loader.machine:
            yield path, image


def _lacking_break(
    kind: Literal["version", "symbol"],
    needer: Node,
    lacking: Sequence[str],
    giver: Node | None,
    better: str,
) -> Break:
    if giver:
        return giver.break_at(
            kind, "error", needer=needer, detail=giver.image.name, lacking=lacking, better=better
        )
    few = tuple(lacking[:MAX_NAMES])
    count = len(lacking)
    return Break(kind=kind, status="error", library="", chain=needer.chain(), wanted=few, count=count)
