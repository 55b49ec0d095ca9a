"""A test of many rows names each that fails."""

from __future__ import annotations

import pytest

from tests.support.for_each import each_case, for_each


def test_every_row_is_tried_and_each_that_fails_is_named() -> None:
    tried = []

    @for_each((1, 2, 3, 4), lambda number: f"row {number}")
    def test_it(number: int) -> None:
        """Say what holds."""
        tried.append(number)
        assert number % 2

    assert (test_it.__name__, test_it.__doc__) == ("test_it", "Say what holds.")
    with pytest.raises(ExceptionGroup) as failed:
        test_it()
    assert [error.__notes__ for error in failed.value.exceptions] == [["for row 2"], ["for row 4"]]
    assert tried == [1, 2, 3, 4]


def test_no_rows_are_no_test() -> None:
    with pytest.raises(AssertionError, match="nothing is tested"):
        for_each((), str)


def test_each_case_has_the_arguments_of_its_names() -> None:
    @each_case("number, word", [(1, "a"), pytest.param(2, "bb"), (0, "")])
    def test_both(word: str, number: int) -> None:
        with pytest.raises(ZeroDivisionError):
            assert 1 / (number - len(word))

    @each_case("word", ["ab", "cd"], ids=str.upper)
    def test_one(word: str) -> None:
        assert not word

    test_both()
    with pytest.raises(ExceptionGroup) as failed:
        test_one()
    assert [error.__notes__ for error in failed.value.exceptions] == [["for AB"], ["for CD"]]


def test_what_was_to_raise_and_did_not_is_a_failure_of_its_case() -> None:
    @each_case("number", [0, 1])
    def test_it(number: int) -> None:
        with pytest.raises(ZeroDivisionError):
            assert 1 / number

    with pytest.raises(ExceptionGroup) as failed:
        test_it()
    (error,) = failed.value.exceptions
    assert str(error).endswith("for case 1: 1")


def test_a_case_with_a_mark_is_no_case() -> None:
    with pytest.raises(AssertionError, match="with a mark"):
        each_case("number", [pytest.param(1, marks=pytest.mark.slow)])
