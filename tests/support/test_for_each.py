"""A test of many rows names each that fails."""

from __future__ import annotations

import pytest

from tests.support.for_each import for_each


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
