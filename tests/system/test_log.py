"""The log and its rotation."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.support.capabilities import needs
from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.system.log import MOST_LOGS, last_write, open_log


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty one; tmp_path itself has the test's home."""
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def test_a_log_has_a_header_and_every_byte(folder: Path) -> None:
    with open_log(folder / "logs", "build", ["pip", "install", "."]) as log:
        log.write(b"\xff one\n")
        assert log.path.read_bytes().endswith(b"\xff one\n")  # at once, not when it is closed
    header, rest = log.path.read_bytes().split(b"\n", 1)
    assert re.fullmatch(rb"# \d{4}-\d\d-\d\dT[\d:.]+[+-]\d\d:\d\d pip install \.", header)
    assert rest == b"\xff one\n"


def test_the_last_five_are_kept(folder: Path) -> None:
    for number in range(MOST_LOGS + 3):
        with open_log(folder, "build") as log:
            log.write(str(number).encode())
    contents = {path.name: path.read_text().splitlines()[1] for path in folder.iterdir()}
    assert contents == {
        "build.log": "7",
        "build.1.log": "6",
        "build.2.log": "5",
        "build.3.log": "4",
        "build.4.log": "3",
    }


def test_a_log_knows_when_the_one_before_was_written(folder: Path) -> None:
    with open_log(folder, "build") as log:
        assert log.previous_time is None
    wrote = last_write(folder, "build")
    assert wrote == log.path.stat().st_mtime_ns
    with open_log(folder, "build") as log:
        assert log.previous_time == wrote
    assert last_write(folder, "other") is None


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_stops_the_log_and_not_the_build(folder: Path) -> None:
    with open_log(folder, "build") as log:
        with Path("/dev/full").open("wb", buffering=0) as full:
            log._file.close()
            log._file = full
            log.write(b"x")
            log.write(b"y")
        assert log.problem == "No space left on device"


def test_a_log_that_cannot_be_opened_is_reported(folder: Path) -> None:
    (folder / "logs").write_text("a file of the user")
    with pytest.raises(UsageError, match=r"logs.*cannot be written"):
        open_log(folder / "logs", "build")


@needs(sys.platform != "win32", "modes of files")
def test_a_log_is_for_one_users_eyes(tmp_path: Path) -> None:
    """A build prints what it was given; a log that is there with other rights is not written on."""
    for _ in range(2):
        with open_log(tmp_path, "build") as log:
            log.write(b"x\n")
        assert (tmp_path / "build.log").stat().st_mode & 0o777 == 0o600
        (tmp_path / "build.log").chmod(0o666)


def test_the_first_line_shows_what_would_act(tmp_path: Path) -> None:
    with open_log(tmp_path, "build", ("x\x1b]0;t\x07",)):
        pass
    assert (tmp_path / "build.log").read_text("utf-8").endswith("x\\x1b]0;t\\x07\n")
