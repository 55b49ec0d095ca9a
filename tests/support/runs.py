"""A run of the tests as it goes, in a file, and runs of only those tests that an earlier one left.

--record FILE          append what starts and how it ends, each line as soon as it is known
--only-left FILE       only tests that have not come to an end in that record
--only-failed FILE     only files with a test that failed there, the last time
--only-skipped FILE    only tests that were skipped there, for what that machine lacks

What watches a run sees in the record whether it goes on, and which test stands still.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.record import read_record


class Recorder:
    """Write the record, in the process that the workers of pytest-xdist report to."""

    def __init__(self, file: Path) -> None:
        self.file = file.open("a", encoding="utf-8", errors="backslashreplace", newline="\n")
        self.outcomes: dict[str, str] = {}
        self.write("session", "")

    def write(self, word: str, rest: str) -> None:
        """Append a line and hand it to the system."""
        self.file.write(f"{word}\t{rest}\n")
        self.file.flush()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Say that it begins."""
        self.write("begins", nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the worst of the three phases: a test fails also in its set-up or its tear-down."""
        before = self.outcomes.get(report.nodeid, "passed")
        self.outcomes[report.nodeid] = max(before, report.outcome, key=("passed", "skipped", "failed").index)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Say how it ended. Without any report (its worker died) it has not ended."""
        if outcome := self.outcomes.pop(nodeid, None):
            self.write(outcome, nodeid)

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Say that pytest came to its end."""
        self.write("code", str(int(exitstatus)))
        self.file.close()


def add_options(parser: pytest.Parser) -> None:
    """Declare the options."""
    # The variable is for whoever runs the README's command as it stands. It goes no further: no pytest
    # that a test starts may write into the same file.
    record = os.environ.pop("TORCHBUILD_TESTS_RECORD", None)
    for name, default, words in (
        ("--record", record and Path(record), "append what starts and how it ends to FILE"),
        ("--only-left", None, "run only tests that have not come to an end in the record FILE"),
        ("--only-failed", None, "run only files with a test that failed in the record FILE"),
        ("--only-skipped", None, "run only tests that were skipped in the record FILE"),
    ):
        parser.addoption(name, type=Path, metavar="FILE", default=default, help=words)


def start_record(config: pytest.Config) -> None:
    """Start to write what `--record` asks for; workers write nothing."""
    file: Path | None = config.getoption("--record")
    if file and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder(file), "record-of-the-run")


def has_none(config: pytest.Config, path: Path) -> bool:
    """Say whether `--only-failed` and `--only-skipped` leave no test of a file: it is not read."""
    for option, end in (("--only-failed", "failed"), ("--only-skipped", "skipped")):
        record: Path | None = config.getoption(option)
        if record and path not in _files(record, end, config.rootpath):
            return True
    return False


@functools.cache
def _files(record: Path, end: str, root: Path) -> frozenset[Path]:
    """Return the files with a test that ended so."""
    ended = read_record(record).ended
    return frozenset(root / test.partition("::")[0] for test, how in ended.items() if how == end)


def choose_items(config: pytest.Config, items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Return the tests that `--only-left` and `--only-skipped` leave of the files that are read."""
    chosen = list(items)
    if left := config.getoption("--only-left"):
        ended = read_record(left).ended
        chosen = [item for item in chosen if item.nodeid not in ended]
    if skipped := config.getoption("--only-skipped"):
        there = read_record(skipped).ended
        chosen = [item for item in chosen if there.get(item.nodeid) == "skipped"]
    return chosen
