"""Hints: each at its moment, once, and not otherwise."""

from __future__ import annotations

from typing import Any

import pytest

from torchbuild_tasks.core.hints import NO_CACHE, ONE_BUSY, SWAPPING, State, hint

GIB = 1 << 30


def state(**changes: Any) -> State:
    return State(**{"elapsed": 60.0, "cache": True, "jobs": 8, **changes})


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, None),
        ({"elapsed": 1199.0, "cache": False}, None),
        ({"elapsed": 1200.0, "cache": False}, NO_CACHE),
        ({"elapsed": 9999.0}, None),
        ({"swap": GIB, "swap_at_start": 0}, SWAPPING),
        ({"swap": GIB, "swap_at_start": GIB}, None),
        ({"swap": GIB}, None),
        ({"running": 1, "alone": 70.0, "left": 90.0}, ONE_BUSY),
        ({"running": 1, "alone": 70.0, "left": 5.0}, None),
        ({"running": 1, "alone": 5.0, "left": 90.0}, None),
        ({"running": 1, "alone": 70.0, "left": 90.0, "jobs": 1}, None),
        ({"running": 2, "alone": 70.0, "left": 90.0}, None),
        ({"elapsed": 1300.0, "cache": False, "swap": GIB, "swap_at_start": 0}, SWAPPING),
    ],
)
def test_hints(changes: dict[str, Any], text: str | None) -> None:
    assert hint(state(**changes)) == text


def test_a_hint_is_given_once() -> None:
    both = {"elapsed": 1300.0, "cache": False, "swap": GIB, "swap_at_start": 0}
    assert hint(state(**both, said=frozenset({SWAPPING}))) == NO_CACHE
    assert hint(state(**both, said=frozenset({SWAPPING, NO_CACHE}))) is None
