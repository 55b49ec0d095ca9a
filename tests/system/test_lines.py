"""Whole lines out of bytes that were cut anywhere."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.support.for_each import each_case
from torchbuild_tasks.system.lines import LINE_LIMIT, Blocks

LINES = st.lists(
    st.sampled_from([b"a", b"", b"\xff", b"x" * LINE_LIMIT, b"y" * (LINE_LIMIT + 1)]), max_size=9
)
ENDS = st.sampled_from([b"\n", b"\r", b"\r\n"])


def cut(data: bytes, at: list[float]) -> list[bytes]:
    blocks, start, out = Blocks(), 0, list[bytes]()
    for end in [*sorted(int(place * len(data)) for place in at), len(data)]:
        out.append(blocks.feed(data[start:end]))
        start = end
    return [block for block in [*out, blocks.end()] if block]


@given(st.lists(st.tuples(LINES.map(b"z".join), ENDS), max_size=9), st.lists(st.floats(0, 1), max_size=9))
def test_where_it_is_cut_makes_no_difference(lines: list[tuple[bytes, bytes]], at: list[float]) -> None:
    out = cut(b"".join(line + end for line, end in lines), at)
    assert all(block.endswith(b"\n") for block in out)
    flat, expected = b"".join(out), list[bytes]()
    for index, (line, end) in enumerate(lines):
        joined = index > 0 and not line and end == b"\n" and lines[index - 1][1] == b"\r"
        expected += [] if joined else [line[:LINE_LIMIT] + b"\n"]
    assert flat == b"".join(expected)


@each_case(
    ("data", "out"),
    [
        (b"", []),
        (b"a", [b"a\n"]),
        (b"a\nb", [b"a\n", b"b\n"]),
        (b"\n\n", [b"\n\n"]),
        (b"10%\r20%\r\n", [b"10%\n20%\n"]),
        (b"x" * LINE_LIMIT + b"\n", [b"x" * LINE_LIMIT + b"\n"]),
        (b"a\n" + b"x" * 20_000 + b"\nb\n", [b"a\n" + b"x" * LINE_LIMIT + b"\nb\n"]),
    ],
)
def test_one_chunk(data: bytes, out: list[bytes]) -> None:
    assert cut(data, []) == out
