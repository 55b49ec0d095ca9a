"""The libraries of a process, as its loader would have them; both systems make one."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol

from torchbuild_tasks.model.closure import Break, Image, Kind, Placed, State, Symbol

ROOT: Final = "what `import torch` loads"
HERE: Final = "in the process already"
PRELOADED: Final = "LD_PRELOAD"
MOST: Final = 3  # lacking names that are told


class Shelf(Protocol):
    """The files that may be looked at."""

    def image(self, path: str) -> Image | None:
        """What a library says of itself; None where there is no such file."""

    def wanted(self, path: str) -> Sequence[Symbol]:
        """What it takes from other libraries, and cannot do without."""

    def exported(self, path: str, symbols: Collection[Symbol]) -> Collection[Symbol]:
        """Those of `symbols` that it gives to others."""


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
        """The files from the root down to this one."""
        return (*self.above(), self.path)

    def above(self) -> tuple[str, ...]:
        """The files from the root down to what needed this one first."""
        return self.loader.chain() if self.loader else ()

    def at_fault(
        self,
        kind: Kind,
        status: Literal["error", "warn"],
        *,
        needer: Node | None = None,
        detail: str = "",
        lacking: Sequence[str] = (),
        better: str = "",
    ) -> Break:
        """This library as where the closure breaks; `needer` is what stumbles over it, if not its loader."""
        return Break(
            kind=kind,
            status=status,
            library=self.name,
            path=self.path,
            how=self.how,
            chain=needer.chain() if needer else self.above(),
            detail=detail,
            wanted=tuple(lacking[:MOST]),
            count=len(lacking),
            better=better,
        )


@dataclass
class Graph:
    """What was found, and where it breaks; `program` is the executable of the process."""

    program: Node | None = None
    nodes: list[Node] = field(default_factory=list)
    roots: list[Node] = field(default_factory=list)
    others: list[Placed] = field(default_factory=list)  # what has no file: missing, API sets, on demand
    breaks: list[Break] = field(default_factory=list)

    def placed(self) -> tuple[Placed, ...]:
        """Each library once, in the order of loading, then what has no file."""
        made = tuple(
            Placed(name=n.name, state="found", path=n.path, how=n.how, by=n.loader.path if n.loader else "")
            for n in self.nodes
        )
        return (*made, *self.others)

    def missing(
        self, name: str, path: str = "", chain: tuple[str, ...] = (), looked: tuple[str, ...] = ()
    ) -> None:
        """Keep a library that is nowhere."""
        found = Break(kind="missing", status="error", library=name, path=path, chain=chain, looked=looked)
        self.broken("missing", found)

    def broken(self, state: State, found: Break) -> None:
        """Keep a library that cannot be loaded."""
        by = found.chain[-1] if found.chain else ""
        self.others.append(Placed(name=found.library, state=state, path=found.path, how=found.how, by=by))
        self.breaks.append(found)


def below(roots: Sequence[Node]) -> Iterator[Node]:
    """These and all that they need, nearest first, each once."""
    seen: set[int] = set()
    queue = deque(roots)
    while queue:
        node = queue.popleft()
        if id(node) not in seen:
            seen.add(id(node))
            queue += node.needs
            yield node
