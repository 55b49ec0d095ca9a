"""What a run skipped, in one line a reason instead of one a place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest


def reason(report: pytest.TestReport) -> str:
    """Return why a test was skipped, without the place that says so."""
    told = report.longrepr
    text = told[2] if isinstance(told, tuple) else str(told)
    return text.removeprefix("Skipped: ")


def summary(reports: Iterable[pytest.TestReport]) -> list[str]:
    """Return a line a reason, the most frequent first."""
    counts = Counter(map(reason, reports)).most_common()
    return [f"{number:>5} {'test' if number == 1 else 'tests'} skipped: {why}" for why, number in counts]
