"""The closure of libraries on Linux, by the rules of ld.so.

A library that is in the process already is found by its name, wherever it lies: so one that is loaded
early from a wrong place is the one that all later ones get.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from torchbuild_tasks.core.closure.elf_places import places
from torchbuild_tasks.core.closure.graph import HERE, PRELOADED, ROOT, Graph, Node, Shelf
from torchbuild_tasks.model.closure import Break, Image, Loader


@dataclass
class _Search:
    """What a search met on its way: files that were passed over, and folders without the library."""

    passed: list[Image] = field(default_factory=list)
    looked: list[str] = field(default_factory=list)


def walk_elf(loader: Loader, shelf: Shelf) -> Graph:
    """Load, on paper, what the process has and then each root with all that it needs, nearest first."""
    walk = _Walk(loader, shelf)
    for path in loader.loaded:
        walk.put(posixpath.basename(path), path, PRELOADED if path in loader.preloaded else HERE, None)
    for node in list(walk.by_real.values()):
        walk.join(node)
    for path in loader.roots:
        walk.root(path)
    return walk.graph


class _Walk:
    def __init__(self, loader: Loader, shelf: Shelf) -> None:
        self.loader, self.shelf, self.graph = loader, shelf, Graph()
        self.by_real: dict[str, Node] = {}
        self.by_name: dict[str, Node] = {}
        self.missing: set[str] = set()

    def put(self, name: str, path: str, how: str, by: Node | None) -> Node | None:
        """Take a file into the process, or find that it is there under another name."""
        image = self.shelf.image(path)
        if image is None or image.damage:
            return None
        node = self.by_real.get(image.real)
        if node is None:
            node = Node(name, path, image, how, by)
            self.by_real[image.real] = node
            self.graph.nodes.append(node)
            if path == self.loader.executable:
                self.graph.program = node
            if image.cut_off:
                self._cut_off(node)
        for known in (name, image.name):
            if known:
                self.by_name.setdefault(known, node)
        return node

    def join(self, node: Node) -> None:
        """Tell a library of the process which others of it are its own."""
        node.needs = [self.by_name[name] for name in node.image.needed if name in self.by_name]

    def root(self, path: str) -> None:
        """Load one root, level by level."""
        before = len(self.graph.nodes)
        image = self.shelf.image(path)
        if image is None or image.damage or self._is_strange(image):
            self._broken_root(path, image)
            return
        node = self.put(posixpath.basename(path), path, ROOT, None)
        if node is None:
            return
        self.graph.roots.append(node)
        queue = [node] if len(self.graph.nodes) > before else []
        while queue:
            needer = queue.pop(0)
            for name in needer.image.needed:
                count = len(self.graph.nodes)
                found = self.by_name.get(name) or self._find(name, needer)
                if found is not None:
                    needer.needs.append(found)
                    if len(self.graph.nodes) > count:
                        queue.append(found)

    def _broken_root(self, path: str, image: Image | None) -> None:
        name = posixpath.basename(path)
        if image is None:
            self.graph.missing(name, path)
        else:
            self._damaged(name, path, image, ROOT, ())

    def _find(self, name: str, needer: Node) -> Node | None:
        """Search as ld.so does: another machine's file is passed over, a broken one ends the search."""
        if name in self.missing:
            return None
        search = _Search()
        for path, how, image in self._candidates(name, needer, search):
            if image.damage:
                self._damaged(name, path, image, how, needer.chain())
                self.missing.add(name)
                return None
            return self.put(name, path, how, needer)
        self.missing.add(name)
        self._not_found(name, needer, search)
        return None

    def _candidates(self, name: str, needer: Node, search: _Search) -> Iterator[tuple[str, str, Image]]:
        """The files that the loader would open for it, in order, less those that it passes over."""
        for path, how in places(name, needer, self.graph.program, self.loader):
            image = self.shelf.image(path)
            if image is None:
                search.looked.append(posixpath.dirname(path))
            elif image.passed_over or self._is_strange(image):
                search.passed.append(image)
            else:
                yield path, how, image

    def _not_found(self, name: str, needer: Node, search: _Search) -> None:
        looked = tuple(dict.fromkeys(folder for folder in search.looked if "glibc-hwcaps" not in folder))
        if search.passed:
            self._damaged(name, search.passed[0].real, search.passed[0], "", needer.chain(), looked)
            return
        self.graph.missing(name, chain=needer.chain(), looked=looked)

    def _is_strange(self, image: Image) -> bool:
        """Whether it is for another machine, which the loader sees before all else."""
        return image.machine not in ("", self.loader.machine)

    def _cut_off(self, node: Node) -> None:
        detail = "without its end; it can be loaded, but what it needs cannot be read"
        self.graph.breaks.append(node.at_fault("damaged", "warn", detail=detail))

    def _damaged(
        self,
        name: str,
        path: str,
        image: Image,
        how: str,
        chain: tuple[str, ...],
        looked: tuple[str, ...] = (),
    ) -> None:
        strange = self._is_strange(image)
        kind: Literal["damaged", "other machine"] = "other machine" if strange else "damaged"
        detail = f"for {image.machine}, this Python for {self.loader.machine}" if strange else image.damage
        found = Break(
            kind=kind,
            status="error",
            library=name,
            path=path,
            how=how,
            chain=chain,
            detail=detail,
            looked=looked,
        )
        self.graph.broken(kind, found)
