"""How many values a property is tried with: few in a quick run, many with `--slow`."""

from __future__ import annotations

from typing import Final

from hypothesis import settings

QUICK: Final = 10
SLOW: Final = 500


def load_profile(slow: bool) -> None:
    """Set the number of examples of properties without a setting of their own.

    A quick run judges a change by the same values each time; the long runs look for new ones.
    """
    settings.register_profile("quick", derandomize=True, max_examples=QUICK, deadline=None)
    settings.register_profile("slow", max_examples=SLOW, deadline=None)
    settings.load_profile("slow" if slow else "quick")


def examples(quick: int, slow: int) -> int:
    """Return the number for the run at hand, for a property that costs more or less than others."""
    return slow if settings().max_examples == SLOW else quick
