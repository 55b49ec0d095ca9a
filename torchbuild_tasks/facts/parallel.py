"""Looking at several things at once: probing is waiting for other programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

WORKERS = 16


def each(function: Callable[[T], R], items: Iterable[T]) -> tuple[R, ...]:
    """`function` of every item, in the order of the items, at most `WORKERS` at a time."""
    todo = list(items)
    if len(todo) < 2:
        return tuple(function(item) for item in todo)
    # Loading it costs as much as asking one tool for its version, and listing tasks needs neither.
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(max_workers=min(WORKERS, len(todo))) as pool:
        return tuple(pool.map(function, todo))
