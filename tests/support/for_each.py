"""One test for many rows or files: what holds for each of them takes less time than a test of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

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


def _try(test: Callable[[Row], None], row: Row, name: Callable[[Row], object]) -> Exception | None:
    try:
        test(row)
    except Exception as error:  # noqa: BLE001  # a row may break a test in any way
        error.add_note(f"for {name(row)}")
        return error
    return None
