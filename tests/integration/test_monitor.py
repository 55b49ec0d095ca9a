"""What looks at a build while it runs: it says how long it takes, gives its hints, and sees its processes."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.preflight import RecordingReporter
from torchbuild_tasks.build import monitor
from torchbuild_tasks.build.hints import Advice
from torchbuild_tasks.build.history import Pace
from torchbuild_tasks.build.monitor import Monitor, Sizes
from torchbuild_tasks.model.history import History

pytestmark = pytest.mark.integration
WORK = "import time; end = time.monotonic() + 1.5\nwhile time.monotonic() < end: pass"


class TimedReporter(RecordingReporter):
    """Keeps also how much was left."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: list[float | None] = []

    def left(self, seconds: float | None, spread: float = 1.0) -> None:
        self.answers.append(seconds)


def python_or_nothing(name: str) -> str:
    return "Python" if name.lower().startswith("python") else ""


@pytest.fixture
def build(tmp_path: Path) -> Pace:
    """A build that has one second of a step behind it, and nine before it."""
    (tmp_path / ".ninja_log").write_text("# ninja log v7\n", "utf-8")
    pace = Pace(tmp_path, History(steps={"a.cpp.o": (1.0,), "b.cpp.o": (9.0,)}))
    (tmp_path / ".ninja_log").write_text("# ninja log v7\n0\t1000\t0\ta.cpp.o\tff\n", "utf-8")
    pace.read_output(b"[1/2] Building CXX object a.cpp.o\n")
    return pace


def test_a_build_that_says_nothing_is_reported(build: Pace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitor, "_EVERY", 0.1)
    told, began = TimedReporter(), time.monotonic()
    with Monitor(build, sizes := Sizes(python_or_nothing), Advice(cache="Get one.", jobs=2), told, str):
        subprocess.run([sys.executable, "-c", WORK], check=True)
    assert time.monotonic() - began >= 1.5
    assert len(told.answers) >= 2 and all(each is not None and 1 <= each <= 9.5 for each in told.answers)
    assert told.notes == []
    (peak,) = sizes.peaks
    assert peak.kind == "Python" and peak.count == 1 and peak.bytes > 1 << 20


def test_each_hint_is_reported_once(build: Pace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitor, "_EVERY", 0.05)
    told, now = TimedReporter(), time.monotonic
    pace = Monitor(build, Sizes(python_or_nothing), Advice(cache="Get one.", jobs=2), told, str)
    monkeypatch.setattr(time, "monotonic", lambda: now() + 1300)
    with pace:
        subprocess.run([sys.executable, "-c", WORK], check=True)
    (said,) = told.notes
    assert said.startswith("20 minutes without a compiler cache") and said.endswith("Get one.")
