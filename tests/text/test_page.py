"""Text for the screen: wrapped between words, coloured where requested, control characters escaped."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from tests.support.for_each import each_case
from torchbuild_tasks.text.page import cells, plain, styled, wrap_text

LINE = st.text(st.characters(exclude_categories=("Cs", "Co"), exclude_characters="\n"), max_size=200)
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@given(LINE, st.integers(10, 130))
def test_no_word_is_lost_and_none_broken(line: str, width: int) -> None:
    shown = wrap_text(line, width=width)
    command = line.lstrip().startswith("$ ")
    words = [word for word in shown.replace("\n", " ").split(" ") if word and not (command and word == "\\")]
    expected = [w for w in wrap_text(line).split(" ") if w and not (command and w == "\\")]
    assert words == expected


@given(LINE, st.booleans())
def test_nothing_acts_but_our_own_colours(line: str, colours: bool) -> None:
    shown = wrap_text(styled("error", line), width=40, colours=colours)
    assert "\x1b" not in COLOUR.sub("", shown)
    assert colours or "\x1b" not in shown


@given(
    st.lists(
        st.text(st.characters(codec="ascii", categories=("L", "N")), min_size=1, max_size=12), min_size=1
    )
)
def test_no_line_is_wider_than_the_screen(words: list[str]) -> None:
    assert max(map(cells, wrap_text(" ".join(words), width=20).split("\n"))) <= 20


def test_the_last_column_stays_under_itself() -> None:
    text = "  jobs  2  the smaller of the cores and of what the memory is enough for"
    assert wrap_text(text, width=40) == "\n".join(
        (
            "  jobs  2  the smaller of the cores and",
            "           of what the memory is enough",
            "           for",
        )
    )


def test_a_wrapped_command_is_still_one() -> None:
    text = "  $ pip install 'a >= 3, < 4' --no-input --quiet"
    assert wrap_text(text, width=32) == "  $ pip install 'a >= 3, < 4' \\\n      --no-input --quiet"


def test_a_style_goes_on_in_the_next_line_and_ends_with_its_text() -> None:
    text = f"{styled('dim', 'one two three four')} five"
    assert wrap_text(text, width=14, colours=True) == (
        "\x1b[2mone two three\x1b[0m\n  \x1b[2mfour\x1b[0m five"
    )
    assert plain(text) == "one two three four five"


@each_case(("text", "size"), [("abc", 3), ("日本", 4), ("e\u0301", 1), (styled("good", "ok"), 2)])
def test_cells(text: str, size: int) -> None:
    assert cells(text) == size
