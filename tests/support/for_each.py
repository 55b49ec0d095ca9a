"""One test for many rows or files: what holds for each of them takes less time than a test of its own."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import pytest

Row = TypeVar("Row")


def for_each(
    rows: Iterable[Row], name: Callable[[Row], object]
) -> Callable[[Callable[[Row], None]], Callable[[], None]]:
    """Turn an assertion about a row into one test, which tries all rows and shows every one that fails."""

    def decorate(test: Callable[[Row], None]) -> Callable[[], None]:
        def run() -> None:
            failed = [error for row in rows if (error := _try(test, row, name))]
            if failed:
                raise ExceptionGroup(test.__name__, failed)

        run.__name__, run.__doc__, run.__module__ = test.__name__, test.__doc__, test.__module__
        return run

    rows = tuple(rows)
    assert rows, "nothing is tested"
    return decorate


def each_case(
    names: str | Sequence[str],
    cases: Iterable[Any],
    ids: Sequence[str] | Callable[[Any], object] | None = None,
) -> Callable[[Callable[..., None]], Callable[[], None]]:
    """Take the arguments of `pytest.mark.parametrize`, and make one test of all cases.

    For a test without fixtures, which skips no case.
    """
    wanted = names.replace(",", " ").split() if isinstance(names, str) else names
    values = [_values(case, alone=len(wanted) == 1) for case in cases]
    numbered = list(enumerate(values))

    def name(item: tuple[int, Sequence[Any]]) -> object:
        number, row = item
        if ids is None:
            return f"case {number}: {', '.join(map(reprlib.repr, row))}"
        return "-".join(str(ids(value)) for value in row) if callable(ids) else ids[number]

    def decorate(test: Callable[..., None]) -> Callable[[], None]:
        def of_one(item: tuple[int, Sequence[Any]]) -> None:
            test(**dict(zip(wanted, item[1], strict=True)))

        of_one.__name__, of_one.__doc__, of_one.__module__ = test.__name__, test.__doc__, test.__module__
        return for_each(numbered, name)(of_one)

    return decorate


def _values(case: Any, *, alone: bool) -> Sequence[Any]:
    if isinstance(case, type(pytest.param())):
        assert not case.marks, "a case with a mark is a test of its own"
        return case.values
    return (case,) if alone else tuple(case)


def _try(test: Callable[[Row], None], row: Row, name: Callable[[Row], object]) -> Exception | None:
    try:
        test(row)
    except pytest.fail.Exception as failed:  # of `pytest.raises`; no Exception, which a group holds alone
        return AssertionError(f"{failed.msg}\nfor {name(row)}")
    except Exception as error:  # noqa: BLE001  # a row may break a test in any way
        error.add_note(f"for {name(row)}")
        return error
    return None
