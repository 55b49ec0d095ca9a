"""The graph of libraries in a process, as its loader would build it, for both systems."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol

from torchbuild_tasks.model.closure import Break, FoundLibrary, Image, Kind, State, Symbol

ROOT: Final = "what `import torch` loads"
ALREADY_LOADED: Final = "in the process already"
PRELOADED: Final = "LD_PRELOAD"
MAX_NAMES: Final = 3  # the most missing symbols named in a break


class LibraryFiles(Protocol):
    """The libraries on a machine, by path."""

    def image(self, path: str) -> Image | None:
        """Return the header of a library; None without such a file."""

    def wanted(self, path: str) -> Sequence[Symbol]:
        """Return the symbols that it needs from other libraries."""

    def exported(self, path: str, symbols: Collection[Symbol]) -> Collection[Symbol]:
        """Return those of `symbols` that it exports."""


@dataclass(eq=False)
class Node:
    """A library in the process: found at `path` by the rule `how`, since `loader` needed it as `name`."""

    name: str
    path: str
    image: Image
    how: str
    loader: Node | None = None
    needs: list[Node] = field(default_factory=list)

    def chain(self) -> tuple[str, ...]:
        """Return the files from the root to this one."""
        return (*self.above(), self.path)

    def above(self) -> tuple[str, ...]:
        """Return the files from the root to the first library that needed this one."""
        return self.loader.chain() if self.loader else ()

    def break_at(
        self,
        kind: Kind,
        status: Literal["error", "warn"],
        *,
        needer: Node | None = None,
        detail: str = "",
        lacking: Sequence[str] = (),
        better: str = "",
    ) -> Break:
        """Return a break at this library; `needer` is the library that needs it, if not its loader."""
        return Break(
            kind=kind,
            status=status,
            library=self.name,
            path=self.path,
            how=self.how,
            chain=needer.chain() if needer else self.above(),
            detail=detail,
            wanted=tuple(lacking[:MAX_NAMES]),
            count=len(lacking),
            better=better,
        )


@dataclass
class Graph:
    """The libraries found, and the breaks; `program` is the executable of the process."""

    program: Node | None = None
    nodes: list[Node] = field(default_factory=list)
    roots: list[Node] = field(default_factory=list)
    others: list[FoundLibrary] = field(
        default_factory=list
    )  # libraries without a file: missing, API sets, on demand
    breaks: list[Break] = field(default_factory=list)

    def entries(self) -> tuple[FoundLibrary, ...]:
        """Return each library once, in the order of loading, then those without a file."""
        loaded = tuple(
            FoundLibrary(
                name=n.name, state="found", path=n.path, how=n.how, by=n.loader.path if n.loader else ""
            )
            for n in self.nodes
        )
        return (*loaded, *self.others)

    def add_missing(
        self, name: str, path: str = "", chain: tuple[str, ...] = (), looked: tuple[str, ...] = ()
    ) -> None:
        """Record a library that was not found."""
        broken = Break(kind="missing", status="error", library=name, path=path, chain=chain, looked=looked)
        self._add_broken("missing", broken)

    def add_unusable(
        self,
        name: str,
        path: str,
        image: Image,
        machine: str,
        how: str = "",
        chain: tuple[str, ...] = (),
        looked: tuple[str, ...] = (),
    ) -> None:
        """Record a file that cannot be loaded: for another machine, which is checked first, or damaged."""
        foreign = is_foreign(image, machine)
        kind: Literal["damaged", "other machine"] = "other machine" if foreign else "damaged"
        broken = Break(
            kind=kind,
            status="error",
            library=name,
            path=path,
            how=how,
            chain=chain,
            detail=f"for {image.machine}, this Python for {machine}" if foreign else image.damage,
            looked=looked,
        )
        self._add_broken(kind, broken)

    def _add_broken(self, state: State, broken: Break) -> None:
        """Record a library that cannot be loaded."""
        by = broken.chain[-1] if broken.chain else ""
        self.others.append(
            FoundLibrary(name=broken.library, state=state, path=broken.path, how=broken.how, by=by)
        )
        self.breaks.append(broken)


def is_foreign(image: Image, machine: str) -> bool:
    """Say whether a file is for another machine than the process."""
    return image.machine not in ("", machine)


def walk_needs(roots: Sequence[Node]) -> Iterator[Node]:
    """Yield these nodes and all that they need, nearest first, each once."""
    seen: set[int] = set()
    queue = deque(roots)
    while queue:
        node = queue.popleft()
        if id(node) not in seen:
            seen.add(id(node))
            queue += node.needs
            yield node
