"""The graph that `ninja -t graph` prints, and the longest chains through it."""

from __future__ import annotations

from torchbuild_tasks.ninja.graph import longest_before, parse_graph

# a.cpp and gen.h -> a.o; b.cpp -> b.o; both -> lib.so through an edge of its own; a phony `all`.
DOT = """digraph ninja {
rankdir="LR"
node [fontsize=10, shape=box, height=0.25]
edge [fontsize=10]
"0x1" [label="all"]
"0x10" [label="phony", shape=ellipse]
"0x10" -> "0x1"
"0x2" -> "0x10" [arrowhead=none]
"0x2" [label="lib.so"]
"0x11" [label="LINK", shape=ellipse]
"0x11" -> "0x2"
"0x3" -> "0x11" [arrowhead=none]
"0x4" -> "0x11" [arrowhead=none]
"0x3" [label="a.o"]
"0x12" [label="CXX", shape=ellipse]
"0x12" -> "0x3"
"0x5" -> "0x12" [arrowhead=none]
"0x6" -> "0x12" [arrowhead=none style=dotted]
"0x5" [label="a.cpp"]
"0x6" [label="gen.h"]
"0x7" -> "0x6" [label=" GEN"]
"0x7" [label="ops.yaml"]
"0x4" [label="b.o"]
"0x8" -> "0x4" [label=" CXX"]
"0x8" [label="b.cpp"]
}
"""
SECONDS = {"a.o": 3.0, "b.o": 9.0, "gen.h": 7.0, "lib.so": 2.0}


def test_what_is_made() -> None:
    assert parse_graph(DOT).outputs == {"all", "lib.so", "a.o", "b.o", "gen.h"}


def test_the_longest_chain_goes_by_seconds_and_through_edges_of_several_inputs() -> None:
    assert longest_before(parse_graph(DOT), SECONDS) == ["gen.h", "a.o", "lib.so"]
    assert longest_before(parse_graph(DOT), {**SECONDS, "b.o": 11.0}) == ["b.o", "lib.so"]


def test_windows_addresses_have_no_prefix() -> None:
    plain = DOT.replace('"0x', '"00000000')
    assert longest_before(parse_graph(plain), SECONDS) == ["gen.h", "a.o", "lib.so"]


def test_noise_and_circles_are_passed_over() -> None:
    assert parse_graph("ninja: error: loading 'build.ninja'\n").outputs == frozenset()
    circle = (
        '"0x1" -> "0x2" [label=" r"]\n"0x2" -> "0x1" [label=" r"]\n"0x1" [label="a"]\n"0x2" [label="b"]\n'
    )
    assert longest_before(parse_graph(circle), {"a": 1.0}) == []
