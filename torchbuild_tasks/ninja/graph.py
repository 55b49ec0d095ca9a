"""Read `ninja -t graph`: what each file of a build is made from, and the longest chain through it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Final

import msgspec

# Nodes are addresses. One input and one output is a line between two files, labelled with the rule;
# any other edge is an ellipse of its own (graphviz.cc of Ninja).
_ARROW: Final = re.compile(r'"(0x[0-9a-fA-F]+|[0-9A-F]+)" -> "(0x[0-9a-fA-F]+|[0-9A-F]+)"')
_NODE: Final = re.compile(r'"(0x[0-9a-fA-F]+|[0-9A-F]+)" \[label="(.*)"(, shape=ellipse)?\]')


class Graph(msgspec.Struct, frozen=True):
    """Nodes in an order in which each comes after what it is made from.

    `made_from` maps a node to those directly before it; `names` maps those that are files to paths.
    `outputs` are the paths that something makes.
    """

    order: tuple[str, ...] = ()
    made_from: Mapping[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    names: Mapping[str, str] = msgspec.field(default_factory=dict)
    outputs: frozenset[str] = frozenset()


def parse_graph(dot: str) -> Graph:
    """Read what `ninja -t graph` printed; lines that are something else are passed over."""
    made_from: dict[str, list[str]] = {}
    names: dict[str, str] = {}
    nodes: dict[str, None] = {}
    for line in dot.splitlines():
        if arrow := _ARROW.match(line):
            made_from.setdefault(arrow[2], []).append(arrow[1])
            nodes.setdefault(arrow[1])
            nodes.setdefault(arrow[2])
        elif (node := _NODE.match(line)) and not node[3]:
            names[node[1]] = node[2]
    return Graph(
        order=_sort_targets(nodes, made_from),
        made_from={node: tuple(before) for node, before in made_from.items()},
        names=names,
        outputs=frozenset(names[node] for node in made_from if node in names),
    )


def longest_before(graph: Graph, seconds: Mapping[str, float]) -> list[str]:
    """Return the files along the longest chain, first to last; `seconds` are those of files' steps."""
    finish: dict[str, float] = {}
    through: dict[str, str] = {}
    for node in graph.order:
        before = max(graph.made_from.get(node, ()), key=lambda each: finish.get(each, 0.0), default="")
        if before:
            through[node] = before
        finish[node] = finish.get(before, 0.0) + _cost(graph, node, seconds)
    node = max(finish, key=lambda each: finish[each], default="")
    chain = []
    while node:
        if _cost(graph, node, seconds) > 0:
            chain.append(graph.names[node])
        node = through.get(node, "")
    return chain[::-1]


def _cost(graph: Graph, node: str, seconds: Mapping[str, float]) -> float:
    return seconds.get(graph.names.get(node, ""), 0.0)


def _sort_targets(nodes: Mapping[str, None], made_from: Mapping[str, list[str]]) -> tuple[str, ...]:
    """Return each after what it is made from; nothing where there is a circle, which Ninja refuses."""
    try:
        return tuple(TopologicalSorter({node: made_from.get(node, ()) for node in nodes}).static_order())
    except CycleError:
        return ()
