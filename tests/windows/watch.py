"""Run the tests on the bench so that a test that hangs cannot block the rest.

pytest keeps a record of what begins and ends (`tests/support/runs.py`). Where nothing is added to it for
longer than any test may take, wine stands still, for every test ends itself before that
(`timeout` in pyproject.toml). Then all processes of the bench are ended, the test is named, and those that
are left are run, that one once more. The same is done where pytest was ended in a test, without a word.
Where tests of a few files failed, these files are run once more, too, on a new wineserver: under load wine is
late where Windows is not, and a program may end itself that would not there. Whole files, because tests go on
from what those before them have built. Each test is named, also in the last line; what fails twice failed.

Seen with wine 8: sccache's server ends, since a read from a pipe "failed to complete synchronously" (Rust).
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.support.record import ENDS, Past, read_record
from tests.windows.wine import LATE

# The bound of one test, and what a loaded machine takes to collect them all.
STILL: Final = 900.0
STILL_SLOW: Final = 4500.0  # with --slow
TRIES: Final = 2
FEW: Final = 3  # files with a test that failed; more are no matter of chance

# Runs pytest with these further words, asking again and again whether it stands still. Its exit code.
Attempt = Callable[[Sequence[str], Callable[[], bool]], int]


@dataclass
class Stillness:
    """Whether a file has not grown for so many seconds."""

    file: Path
    seconds: float
    size: int = -1
    since: float = field(default_factory=time.monotonic)

    def __call__(self) -> bool:
        """Look again."""
        size = self.file.stat().st_size if self.file.exists() else 0
        now = time.monotonic()
        if size != self.size:
            self.size = size
            self.since = now
        return now - self.since > self.seconds


def say(text: str) -> None:
    """Write a line to where the bench's own errors go."""
    print(f"windows bench: {text}", file=sys.stderr, flush=True)


def run_tests(attempt: Attempt, record: Path, *, seconds: float = STILL) -> int:
    """Run the tests to their end, in as many runs of pytest as it takes.

    Args:
        attempt: runs pytest once.
        record: the file that pytest writes; an older one is removed.
        seconds: how long nothing may be added to it.

    Returns:
        0 if every test came to its end and none failed, pytest's exit code if it came to its end, LATE if a
        test stood still at each try, 1 if pytest was ended outside of any test.
    """
    record.unlink(missing_ok=True)
    stood = Counter[str]()
    # With "=": until tests/conftest.py is read, pytest takes a file that is there for where the tests are.
    words = [f"--record={record.as_posix()}"]
    again: list[str] = []
    while True:
        code = attempt(words, Stillness(record, seconds))
        past = read_record(record)
        if past.code is not None:
            failed = [test for test, end in past.ended.items() if end == "failed"]
            if again or not 0 < len({test.partition("::")[0] for test in failed}) <= FEW:
                return verdict(past, code, stood, again)
            again = failed
            for test in again:
                say(f"{test} failed; once more")
            words = [f"--record={record.as_posix()}", f"--only-failed={record.as_posix()}"]
            continue
        if not past.open:
            say(f"the tests were ended before their end (exit code {code}), and not in a test")
            return code or 1
        stood.update(past.open)
        for test in past.open:
            say(f"{test} stood still or ended pytest, try {stood[test]} of {TRIES} (exit code {code})")
        if max(stood[test] for test in past.open) >= TRIES:
            return LATE
        words = [f"--record={record.as_posix()}", f"--only-left={record.as_posix()}"]


def verdict(past: Past, code: int, stood: Counter[str], again: Sequence[str] = ()) -> int:
    if not stood and not again:
        return code or past.code or 0
    for what, tests in (("failed", again), ("stood still", stood)):
        for test in tests:
            say(f"{test} {what} once and then {past.ended.get(test, 'was not run')}")
    failed = [test for test, end in past.ended.items() if end == "failed"]
    for test in failed:
        say(f"failed: {test}")
    counts = Counter(past.ended.values())
    second = [test for test in (*again, *stood) if past.ended.get(test) == "passed"]
    only = f"; passed only at the second try: {', '.join(second)}" if second else ""
    say(f"in all runs together: {', '.join(f'{counts[end]} {end}' for end in ENDS)}{only}")
    if failed:
        return 1
    return 0 if past.code in (0, 5) else past.code or 0  # 5: the others had all been run before
