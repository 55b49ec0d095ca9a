"""A list in a user's file gets entries, and every other byte is kept."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchbuild_tasks.features.develop.jsonc import NotEditable, read, with_entries

ENTRY = {"name": "ours: one", "type": "x"}
LISTS: Any = {
    "configurations": ("name", [ENTRY, {"name": "ours: two"}]),
    "compounds": ("name", [{"name": "ours: c"}]),
}

MINE = """// my own file
{
  /* kept as it is */ "version": "0.2.0",   // and this
  "configurations": [
    { "name": "mine",   "type":"cppdbg", "url": "http://x//y" }, // a comment, with a comma
    {
      "name": "other" // no comma inside
    },
  ],
  "odd":[1,2 ,3],
}
"""


def test_comments_trailing_commas_and_layout_stay() -> None:
    edited = with_entries(MINE, LISTS)
    assert [item["name"] for item in read(edited).value["configurations"]] == [
        "mine",
        "other",
        "ours: one",
        "ours: two",
    ]
    assert read(edited).value["compounds"] == [{"name": "ours: c"}]
    assert edited.startswith(MINE[: MINE.index("  ],")]), "what is added stands behind the last one's comment"
    for line in MINE.splitlines():
        assert line in edited.splitlines()
    assert [line for line in edited.splitlines() if "//" in line or "/*" in line] == [
        line for line in MINE.splitlines() if "//" in line or "/*" in line
    ]
    assert with_entries(edited, LISTS) == edited


def test_an_entry_of_ours_is_replaced_where_it_stands() -> None:
    old = MINE.replace('{ "name": "mine",', '{ "name": "ours: one", "old": true }, { "name": "mine",')
    edited = with_entries(old, LISTS)
    names = [item["name"] for item in read(edited).value["configurations"]]
    assert names == ["ours: one", "mine", "other", "ours: two"]
    assert read(edited).value["configurations"][0] == ENTRY


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "{ }",
        "{\n}",
        '{"configurations": []}',
        '{"configurations": [ // none yet\n]}',
        '{"a": 1}',
        '{"a": 1,}',
        '\ufeff{\r\n\t"a": 1 // x\r\n}\r\n',
        '{"configurations": [{"name": "x"}] /* , */ , /* ] */ }',
        '{"configurations": [{"name": "x"} /* last */ , ]}',
        '{"configurations": [{"name": "x"} // last\n]}',
    ],
)
def test_other_shapes(text: str) -> None:
    edited = with_entries(text, LISTS)
    value = read(edited).value
    assert [each["name"] for each in value["configurations"]][-2:] == ["ours: one", "ours: two"]
    assert with_entries(edited, LISTS) == edited
    assert ("\r\n" in text) == ("\r\n" in edited)
    assert edited.count("\n") == edited.count("\r\n") or "\r" not in text
    for comment in ("// none yet", "/* , */", "/* ] */", "/* last */", "// last", "// x"):
        assert (comment in text) == (comment in edited)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"configurations": {}}',
        '{"configurations": [], "configurations": []}',
        '{"configurations": [{"name": "ours: one"}, {"name": "ours: one"}]}',
        '{"a": 1 "b": 2}',
        '{"a" 1}',
        "{1: 1}",
        "{'a': 1}",
        '{"a": 1} x',
        '{"a": NaN}',
        '{"a": "\\x"}',
        "[" * 5000,
    ],
)
def test_what_cannot_be_edited_is_not(text: str) -> None:
    with pytest.raises(NotEditable):
        with_entries(text, LISTS)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(st.text().filter(lambda name: name not in LISTS), VALUES, max_size=3),
    st.lists(st.dictionaries(st.sampled_from(["name", "type"]), st.text(max_size=4), max_size=2), max_size=3),
    st.sampled_from([None, 2, "\t"]),
)
def test_whatever_else_the_file_says_it_says_afterwards(others: Any, mine: Any, indent: Any) -> None:
    before = {**others, "configurations": mine}
    text = json.dumps(before, indent=indent)
    after = read(with_entries(text, LISTS)).value
    assert {name: after[name] for name in others} == others
    assert after["configurations"][: len(mine)] == mine
