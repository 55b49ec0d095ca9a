"""What acts on a terminal is shown and does not act; colours of compilers stay, and nothing else."""

from __future__ import annotations

import json
import sys
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from tests.support.for_each import each_case
from torchbuild_tasks.text.visible import UNSEEN, Printed, output, visible, visible_json, visible_value
from torchbuild_tasks.values import dumps

CLIPBOARD = "\x1b]52;c;Y3VybCBldmlsfHNo\x07"
ATTACKS = {
    "clipboard": CLIPBOARD,
    "title, ended by ST": "\x1b]0;x\x1b\\",
    "link": "\x1b]8;;http://evil/\x1b\\\\link",
    "DCS": "\x1bP+q544e\x1b\\",
    "8-bit CSI": "\x9b31m",
    "8-bit OSC": "\x9d0;x\x9c",
    "APC": "\x1b_G\x1b\\",
    "reset": "\x1bc",
    "cursor": "\x1b[2A\x1b[2K",
    "alternate screen": "\x1b[?1049h",
    "keys": "\x1b[>4;2m",
    "conceal": "\x1b[8m",
    "conceal beside a colour": "\x1b[31;8m",
    "bell": "\x07",
    "backspaces": "abc\b\b\bXYZ",
    "shift out": "\x0e",
    "next line": "\x85",
    "delete": "\x7f",
    "override": "\u202eevil",
    "isolate": "\u2066",
    "ends of lines": "a\u2028b\u2029c",
    "no width": "to\u200bken\ufeff",
    "tags": "\U000e0041",
    "half a letter": "\ud800",
    "NUL": "a\0b",
    "feeds": "\x0b\x0c",
}


@each_case("name", ATTACKS)
def test_an_attack_is_shown(name: str) -> None:
    text = f"before {ATTACKS[name]} after"
    shown = visible(text)
    assert not UNSEEN.search(shown)
    assert shown.startswith("before ") and shown.endswith(" after") and "\\" in shown
    for colours in (True, False):
        said = output(text, colours=colours)
        assert not UNSEEN.search(said.replace("\x1b[31;", "").replace("\x1b[0m", ""))
    assert json.loads(visible_json(json.dumps(text, ensure_ascii=False))) == text
    assert visible_value({text: [text, 1, None]}) == {shown: [shown, 1, None]}


def test_what_a_person_writes_stays() -> None:
    text = "Größe\t日本語 עברית العربية 🎉 naïve — “x” \\n\nline\n"
    assert visible(text) == output(text, colours=False) == text
    assert visible("a\r\nb\rc") == "a\nb\\x0dc"


def test_every_invisible_letter_of_unicode_is_known() -> None:
    """What this Python's Unicode calls control, format or surrogate, but signs of numbers (seen)."""
    seen = {0x600, 0x601, 0x602, 0x603, 0x604, 0x605, 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD}
    seen |= set(range(0x13430, 0x13460))  # how Egyptian hieroglyphs are put together
    for code in set(range(sys.maxunicode + 1)) - seen - {0x09, 0x0A}:
        if unicodedata.category(chr(code)) in ("Cc", "Cf", "Cs", "Zl", "Zp"):
            assert UNSEEN.match(chr(code)), hex(code)


@given(st.text(st.characters(codec=None)))
def test_nothing_that_acts_is_left(text: str) -> None:
    assert not UNSEEN.search(visible(text))
    assert not UNSEEN.search(output(text, colours=False))
    assert json.loads(dumps({"a": text})) == json.loads(json.dumps({"a": text}))
    assert not UNSEEN.search(dumps({"a": text}))


GCC = "\x1b[01m\x1b[Kx.cpp:1:2:\x1b[m\x1b[K \x1b[01;31m\x1b[Kerror: \x1b[m\x1b[Kno"


def test_colours_of_a_compiler() -> None:
    assert output(GCC, colours=True) == "\x1b[01mx.cpp:1:2:\x1b[m \x1b[01;31merror: \x1b[mno"
    assert output(GCC, colours=False) == "x.cpp:1:2: error: no"
    for many in ("\x1b[38;5;200m", "\x1b[38;2;1;2;3m", "\x1b[4:3m"[:3] + "m", "\x1b[1;97;40m", "\x1b[0m"):
        assert output(many + "x\x1b[0m", colours=True) == many + "x\x1b[0m"


def test_a_colour_that_is_left_on_ends_with_its_line() -> None:
    assert output("\x1b[31mred\nnext\n", colours=True) == "\x1b[31mred\x1b[0m\nnext\n"


def test_a_line_that_is_written_over_is_a_line() -> None:
    assert output("10%\r20%\r\ndone\r\n", colours=True) == "10%\n20%\ndone\n"


@given(st.integers(1, 7), st.booleans())
def test_chunks_that_end_anywhere_say_the_same(size: int, colours: bool) -> None:
    text = f"{GCC}\r\nü \u202e {CLIPBOARD}\r20%\r\n日本\n"
    data = text.encode()
    printed = Printed(colours=colours)
    said = "".join(printed.feed(data[at : at + size]) for at in range(0, len(data), size))
    # Where a chunk ends within a line its colour ends, too.
    plain = [each.replace("\x1b[0m", "") for each in (said, output(text, colours=colours))]
    assert plain[0] == plain[1]


def test_a_sequence_that_never_ends_is_not_waited_for() -> None:
    printed = Printed(colours=True)
    assert printed.feed(b"a\x1b[") == "a"
    assert printed.feed(b"1" * 100) == "\\x1b[" + "1" * 100
