"""Read build.ninja: its steps in order, their inputs, and the pools that limit them.

`ninja -t graph` tells neither order nor pools, and by both Ninja decides what runs next. A file of 10 MB,
as that of PyTorch 2.6.0, takes 0.4 s.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import msgspec

# Syntax, escapes and scopes: https://ninja-build.org/manual.html, "Ninja file reference" (1.13).
CONSOLE: Final = "console"  # Ninja's own pool, one step deep
_FIRST: Final = "build.ninja"
_JOINED: Final = re.compile(r"\$\r?\n[ \t]*")
_WORD: Final = re.compile(r"(?:\$\{[\w.-]+\}|\$[\w-]+|\$.|[^\s:|$])+|\|[|@]?|:")
_VARIABLE: Final = re.compile(r"\$(?:\{([\w.-]+)\}|([\w-]+)|(.))")
_ESCAPE: Final = re.compile(r"\$([$ :])")
_BINDING: Final = re.compile(r"\s*([\w.-]+)\s*=\s*(.*?)\s*$")


class Edge(msgspec.Struct, frozen=True, kw_only=True):
    """One build statement: its outputs and inputs; `explicit` of the inputs are in the command.

    The first `needed` inputs are what it is made from; the others only have to be there before.
    `pool` is "" where it is in none; a `phony` one runs nothing.
    """

    outputs: tuple[str, ...]
    inputs: tuple[str, ...] = ()
    explicit: int = 0
    needed: int = 0
    phony: bool = False
    pool: str = ""


class BuildFile(msgspec.Struct, frozen=True, kw_only=True):
    """All build statements in Ninja's order, the depths of pools, and the default targets."""

    edges: tuple[Edge, ...] = ()
    depths: Mapping[str, int] = msgspec.field(default_factory=dict)
    default: tuple[str, ...] = ()

    @property
    def targets(self) -> tuple[str, ...]:
        """Return Ninja's default targets: those declared, else all outputs that are no inputs."""
        made = {output for edge in self.edges for output in edge.outputs}
        return self.default or tuple(sorted(made.difference(*(edge.inputs for edge in self.edges))))

    @property
    def outputs(self) -> frozenset[str]:
        """Return all outputs for the default targets."""
        return self.outputs_of(self.targets)

    def outputs_of(self, targets: Iterable[str]) -> frozenset[str]:
        needed = (self.edges[index] for index in self.find_needed_edges(targets))
        return frozenset(output for edge in needed for output in edge.outputs)

    def find_needed_edges(self, targets: Iterable[str]) -> list[int]:
        """Return the edges that these targets need, each after its inputs.

        A target that nothing makes needs none.
        """
        producers = {output: index for index, edge in enumerate(self.edges) for output in edge.outputs}
        order: dict[int, None] = {}
        seen: set[int] = set()
        stack = [(producers[target], False) for target in reversed(list(targets)) if target in producers]
        while stack:
            index, expanded = stack.pop()
            if expanded:
                order[index] = None
            elif index not in seen:
                seen.add(index)
                stack.append((index, True))
                before = (producers[name] for name in self.edges[index].inputs if name in producers)
                stack += [(other, False) for other in before if other not in seen]
        return list(order)


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One step of CMake's custom commands: the command for the shell, and its outputs."""

    command: str
    outputs: tuple[str, ...]


def find_step(build_file: bytes, description: str) -> Step | None:
    """Return the step with this description; None if none or several have it.

    Args:
        build_file: build.ninja, which is searched and not parsed: that of PyTorch 2.6.0 has 10 MB.
        description: what Ninja prints of the step behind its count.
    """
    line = b"\n  DESC = " + description.replace("$", "$$").encode(errors="surrogateescape") + b"\n"
    end = build_file.find(line)
    if end < 0 or build_file.find(line, end + 1) >= 0:
        return None
    start = build_file.rfind(b"\n", 0, end)
    binding = build_file[start + 1 : end]
    command = binding.removeprefix(b"  COMMAND = ")
    if command == binding or b"${" in command:  # a variable of Ninja's
        return None
    statement = build_file[build_file.rfind(b"\n", 0, start) + 1 : start].decode(errors="surrogateescape")
    words = _WORD.findall(statement.removeprefix("build "))
    outputs = words[: words.index(":")] if ":" in words else []
    return Step(
        command=_ESCAPE.sub(r"\1", command.decode(errors="surrogateescape")),
        outputs=tuple(_ESCAPE.sub(r"\1", word) for word in outputs if word != "|" and "${" not in word),
    )


def parse_build_file(read: Callable[[str], str]) -> BuildFile:
    """Return the content of build.ninja and its included files; `read` returns a file by its name there."""
    reader = _Reader(read)
    reader.take(_FIRST)
    reader.end()
    return BuildFile(edges=tuple(reader.edges), depths=reader.depths, default=tuple(reader.default))


class _Reader:
    """Collects the statements; the bindings of one are complete when the next begins."""

    def __init__(self, read: Callable[[str], str]) -> None:
        self.edges: list[Edge] = []
        self.depths = {CONSOLE: 1}
        self.default: list[str] = []
        self._read = read
        self._variables = dict[str, str]()
        self._pools: dict[str, str] = {}  # by rule
        self._kind = ""
        self._name = ""
        self._bound = dict[str, str]()

    def take(self, name: str) -> None:
        for line in _JOINED.sub(" ", self._read(name)).splitlines():
            if line.startswith((" ", "\t")) and (match := _BINDING.match(line)):
                self._bound[match[1]] = match[2]
            elif line[:1] not in ("", "#", " ", "\t"):
                self.end()
                self._begin(line)

    def _begin(self, line: str) -> None:
        kind, _, rest = line.partition(" ")
        if kind in ("build", "rule", "pool"):
            self._kind = kind
            self._name = rest.strip()
        elif kind in ("include", "subninja"):
            self.take(self._expand(rest.strip()))
        elif kind == "default":
            self.default += [self._path(word) for word in _WORD.findall(rest)]
        elif match := _BINDING.match(line):
            self._variables[match[1]] = self._expand(match[2])

    def end(self) -> None:
        """Store the statement whose bindings have been read."""
        kind = self._kind
        bound = self._bound
        self._kind = ""
        self._bound = {}
        if kind == "build":
            self._edge(bound)
        elif kind == "rule":
            self._pools[self._name] = bound.get("pool", "")
        elif kind == "pool":
            self.depths[self._name] = int(self._expand(bound.get("depth", "0")))

    def _edge(self, bound: Mapping[str, str]) -> None:
        words = _WORD.findall(self._name)
        if ":" not in words[1:]:
            return  # truncated
        cut = words.index(":")
        rule = "".join(words[cut + 1 : cut + 2])
        behind = words[cut + 2 :]
        behind = behind[: behind.index("|@")] if "|@" in behind else behind  # validations
        bars = [index for index, word in enumerate(behind) if word in ("|", "||")]
        order = [index for index in bars if behind[index] == "||"]
        self.edges.append(
            Edge(
                outputs=tuple(self._path(word) for word in words[:cut] if word != "|"),
                inputs=tuple(self._path(word) for word in behind if word not in ("|", "||")),
                explicit=bars[0] if bars else len(behind),
                needed=len([word for word in behind[: order[0] if order else None] if word != "|"]),
                phony=rule == "phony",
                pool=self._expand(bound.get("pool", self._pools.get(rule, ""))),
            )
        )

    def _path(self, word: str) -> str:
        """Return a path as Ninja's log writes it."""
        return self._expand(word).replace("\\", "/")

    def _expand(self, text: str) -> str:
        if "$" not in text:
            return text
        return _VARIABLE.sub(lambda at: at[3] or self._variables.get(at[1] or at[2], ""), text)
