"""Mistyped words and those that were meant."""

from __future__ import annotations

import pytest

from torchbuild_tasks.text.words import did_you_mean, nearest

HELPERS = ("mkl", "sccache", "zlib-ng", "none")


@pytest.mark.parametrize(
    ("word", "meant"),
    [("zlibng", "zlib-ng"), ("SCCACHE", "sccache"), ("scache", "sccache"), ("x", None), ("", None)],
)
def test_the_nearest_word(word: str, meant: str | None) -> None:
    assert nearest(word, HELPERS) == meant


def test_the_end_of_a_sentence_that_names_it() -> None:
    assert did_you_mean("zlibng", HELPERS) == "; did you mean zlib-ng?"
    assert did_you_mean("zlibng", ()) == did_you_mean("something", HELPERS) == ""
