"""Progress reports of downloads without a live line."""

from __future__ import annotations

import time

import pytest

from tests.support.for_each import each_case
from torchbuild_tasks.fronts.reporter import Transfers
from torchbuild_tasks.text.show import size_text


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that the test sets: its one element, in seconds."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def said(steps: list[tuple[float, int, int | None]], clock: list[float]) -> list[str]:
    lines: list[str] = []
    told = Transfers(say=lines.append, live=False)
    for seconds, done, total in steps:
        clock[0] = 100.0 + seconds
        told.tell("mkl.7z", done, total)
    return lines


def test_a_short_one_says_nothing(clock: list[float]) -> None:
    assert said([(0, 0, 10), (0.5, 5, 10), (1, 10, 10)], clock) == []


def test_after_two_seconds_there_is_a_line_then_one_every_half_minute(clock: list[float]) -> None:
    steps: list[tuple[float, int, int | None]] = [
        (second, second * 1_000_000, 60_000_000) for second in range(50)
    ]
    assert said(steps, clock) == [
        "mkl.7z: 2.0 MB of 60.0 MB, 1.0 MB/s, 58 s left",
        "mkl.7z: 32.0 MB of 60.0 MB, 1.0 MB/s, 28 s left",
    ]


def test_the_end_is_reported_once(clock: list[float]) -> None:
    lines = said([(0, 0, 10), (2, 5, 10), (4, 10, 10), (4, 10, 10)], clock)
    assert lines == ["mkl.7z: 5 bytes of 10 bytes, 2 bytes/s, 2 s left", "mkl.7z: 10 bytes, 2 bytes/s"]


def test_what_was_there_before_does_not_count_as_fast(clock: list[float]) -> None:
    assert said([(0, 90, 100), (2, 92, 100)], clock) == ["mkl.7z: 92 bytes of 100 bytes, 1 bytes/s, 8 s left"]


def test_an_unknown_size_has_no_time_left(clock: list[float]) -> None:
    assert said([(0, 0, None), (2, 4000, None)], clock) == ["mkl.7z: 4.0 kB, 2.0 kB/s"]


@each_case(
    ("count", "text"),
    [(0, "0 bytes"), (999, "999 bytes"), (1000, "1.0 kB"), (2_500_000, "2.5 MB"), (10**9, "1.0 GB")],
)
def test_sizes(count: int, text: str) -> None:
    assert size_text(count) == text


def test_live_lines_are_taken_away_again(capsys: pytest.CaptureFixture[str]) -> None:
    told = Transfers(say=lambda text: pytest.fail(text), live=True)
    told.tell("mkl.7z", 5, 10)
    told.tell("mkl.7z", 10, 10)
    told.end()
    told.end()
