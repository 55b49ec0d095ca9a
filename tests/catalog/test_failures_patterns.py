"""Patterns: the plain text that is looked for first, and those that could hang."""

from __future__ import annotations

import contextlib
import tomllib
from re import _parser as parser  # type: ignore[attr-defined]

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.diagnosis import book
from tests.support.examples import examples
from tests.support.for_each import each_case, for_each
from tests.support.steps import steps
from torchbuild_tasks.catalog import failures, load_catalog
from torchbuild_tasks.catalog.diagnosis import FailureRow
from torchbuild_tasks.catalog.failures import LazyPattern, TextIndex, anchors
from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.features.diagnosis.decode import clean
from torchbuild_tasks.features.diagnosis.patterns import _CAUSES, _MARKER, cause
from torchbuild_tasks.features.diagnosis.places import FIRST_SIGNS, SIGNS
from torchbuild_tasks.plan.settings import check_settings

PATTERNS = sorted({pattern for row in book().rows for pattern in row.patterns})
KINDS = sorted({pattern for row in load_catalog().shape for pattern in row.patterns})
SHAPES = [shape.pattern for _, shape in _CAUSES] + [_MARKER.pattern]


@each_case(
    ("pattern", "wanted"),
    [
        ("Killed signal", ("Killed signal",)),
        (r"Submodule initi?alization failed", ("alization failed",)),
        (r"error C1060\b|\bC1002\s?:", ("error C1060", "C1002")),
        (r"nvcc error : '(cicc|ptxas)' died", ("nvcc error : '",)),
        (
            r"third_party[/\\].{0,200}does not contain a CMakeLists\.txt",
            ("does not contain a CMakeLists.txt",),
        ),
        (r"ab+cdef", ("cdef",)),
        (r"ab?\x27long\u2019enough", ("enough",)),
        (r"\[WinError 126\]", ("[WinError 126]",)),
    ],
)
def test_the_plain_text_of_each_alternative(pattern: str, wanted: tuple[str, ...]) -> None:
    assert anchors(pattern) == wanted


@each_case(
    ("pattern", "wanted"),
    [
        ("(long|enough)", ("long", "enough")),
        ("(?:ab|c(?:long|enough))x", ()),
        (r"x (?P<subject>too many|much too)\b.{0,9} of", ("too many", "much too")),
        (r"x (?:too|much) (?P<subject>many)? sections", (" sections",)),
        ("(?:long)?", ()),
        ("(?:long){0,2}enough+!", ("enough",)),
        ("(?:long){2}x", ()),
        ("(?!long)(?<!enough)x", ()),
        ("x(?=long)y|(?<=enough)y", ("long", "enough")),
        (r"(?m)^a|(?s)b", ()),
        ("(?P<a>b)(?P=abcdef)", ()),
        (r"(a\.b\(c|[a-z]long)\d", ("a.b(c", "long")),
        ("(?i:long) enough", ()),  # and this one not for sure
        ("long|(?:e|enough)", ()),
        ("(x|long|enough)?y(much|more)", ("much", "more")),
        ("(x|long|enough)", ()),
        ("a(?:b)?bcde?", ()),  # no text of four: the last may be missing
    ],
)
def test_the_plain_text_in_groups(pattern: str, wanted: tuple[str, ...]) -> None:
    assert LazyPattern(pattern).texts == wanted


@each_case(
    ("pattern", "why"),
    [
        ("(", "not a regular expression"),
        ("(a+)+long enough", "take for ever"),
        ("(?:ab|a){2,9}long enough", "take for ever"),
        (r"long enough.*.*.*.*.*x", "take very long"),
        (r"\d+|long enough", "4 letters"),
        (r"(?:long)?|enough", "4 letters"),
        (r"(?i)long enough", "ignores case"),
        (r"(?x: long enough ( a + ) + )b", "comments"),
        ("long enough" * 200, "2200 letters"),
        ("long enough{99999999999}", "not a regular expression"),
        ("long enough[[a]", "not a regular expression"),
    ],
)
def test_a_pattern_that_cannot_be_used_is_refused(pattern: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        anchors(pattern)


def test_groups_as_deep_as_the_stack_end_in_no_traceback() -> None:
    with contextlib.suppress(ValueError):
        anchors("(" * 990 + "long enough" + ")" * 990)


BOMB = r"error (.{0,999}).{0,999}\1.{0,999}\1.{0,999}\1[bc]d"  # says nothing to a look at its form


def test_a_pattern_of_the_users_that_goes_on_for_ever_is_named_with_its_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = f"""[[failure]]
id = "mine"
phase = "link"
cause = "c"
source = "s"
patterns = ['{BOMB}']
"""
    monkeypatch.setattr(failures, "PATIENCE", 0.1)
    found = check_settings("/x/torchbuild.toml", tomllib.loads(text), {"failure.0.patterns": 6})
    own = failures.FailureBook(found.failures)
    assert [hit.groups for hit in own.look_up("error ab a a acd")] == [("a",)]
    with pytest.raises(UsageError, match=r"torchbuild\.toml, line 6: failure mine: its pattern ") as said:
        own.look_up("error " + "a" * 1900 + " bd")
    assert said.value.exit_code == 2


@pytest.mark.parametrize("patterns", [PATTERNS, KINDS])
@given(st.data())
def test_whatever_a_row_finds_has_its_plain_text(patterns: list[str], data: st.DataObject) -> None:
    pattern = data.draw(st.sampled_from(patterns))
    text = data.draw(st.from_regex(pattern))
    assert LazyPattern(pattern).search(text)


def test_an_index_finds_each_entry_that_a_text_may_match_in_order() -> None:
    index = TextIndex([("error: x", "fatal"), (), ("rror",), ("abcd",), ("fail", "fatality")])
    assert index.find("an error: x") == [0, 1, 2]
    assert index.find("xabcd") == [1, 3]
    assert index.find("what is fatal") == [0, 1]
    assert index.find("fat") == index.find("") == [1]


@for_each(PATTERNS, repr)
def test_every_pattern_of_ours_can_be_used(pattern: str) -> None:
    anchors(pattern)


def adversaries(row: FailureRow, pattern: str, size: int) -> list[str]:
    """Lines of about this length that begin to match again and again, and never do to the end."""
    pieces = [*anchors(pattern), *(anchor[:-1] for anchor in anchors(pattern))]
    pieces += [*(sample[: len(sample) // 2] for sample in row.samples[:1]), "a", "0'"]
    return [(piece * (size // max(1, len(piece)) + 1))[:size] for piece in filter(None, pieces)]


def is_wide(pattern: str) -> bool:
    """Say whether what it matches may be of so many lengths that its work can grow faster than a line."""
    least, most = parser.parse(pattern).getwidth()
    return bool(most - least > 100)  # what is looked at from one place ends long before a line of 300 letters


@for_each([row for row in book().rows if row.patterns], lambda row: row.id)
def test_the_work_on_a_line_grows_as_the_line_does(row: FailureRow) -> None:
    """Three times the line: at most six times the steps, or two a letter. A bad pattern takes nine times."""
    for pattern in filter(is_wide, row.patterns):
        for short, long in zip(adversaries(row, pattern, 300), adversaries(row, pattern, 900), strict=True):
            work = steps(pattern, long)
            assert work <= 2 * len(long) or work <= 6 * steps(pattern, short) + 300, short[:80]


@each_case("pattern", SHAPES)
def test_the_work_of_a_shape_grows_as_the_line_does(pattern: str) -> None:
    for piece in ("a", "(1,1)", ": error", "/bin/sh: ", "make: *** ", "a_b."):
        short, long = (piece * (size // len(piece)) for size in (300, 900))
        assert steps(pattern, long) <= 6 * steps(pattern, short) + 300, piece


def test_the_counter_sees_a_pattern_that_hangs() -> None:
    assert steps("foo.*bar", "foo" * 200) > 10 * steps("foo.*bar", "foo" * 50)
    assert steps("foo.{0,20}bar", "foo" * 200) < 5 * steps("foo.{0,20}bar", "foo" * 50)


WORDS = [shape.pattern for kind, shape in _CAUSES if kind not in ("linker", "compiler")]


@pytest.mark.parametrize("pattern", WORDS)
@settings(max_examples=examples(40, 1000))
@given(st.data())
def test_whatever_a_shape_finds_has_a_sign(pattern: str, data: st.DataObject) -> None:
    text = data.draw(st.from_regex(pattern))
    assert any(sign in text for sign in (*SIGNS, *FIRST_SIGNS))


@each_case(
    "line",
    [
        "a.cpp:1:2: error: x",
        "c:\\a.cpp(12): error C2065: x",
        "LINK : fatal error LNK1104: x",
        "a.obj : error LNK2019: unresolved external symbol x",
        "LLVM ERROR: x",
        "a.cpp:(.text+0xa): undefined reference to `x'",
        "x.o: relocation truncated to fit: R_X86_64_PC32",
        "/usr/bin/ld: a.o: PC-relative offset overflow in PLT entry",
        "a.o: undefined reference to symbol 'x': error adding symbols: DSO missing from command line",
        "Error\tMSB3721\tThe command exited with code 1.",
    ],
)
def test_a_compiler_error_has_a_sign(line: str) -> None:
    assert cause(clean(line))
    assert any(sign in line for sign in (*SIGNS, *FIRST_SIGNS))
