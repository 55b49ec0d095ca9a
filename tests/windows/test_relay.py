"""Output and exit codes come through the bench, where one is set up."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import psutil
import pytest

from tests.support.capabilities import needs
from tests.windows.wine import default_folder

ROOT = Path(__file__).parents[2]
BENCH = default_folder()  # before the tests get a home of their own

pytestmark = [
    pytest.mark.integration,
    needs((BENCH / "made" / "packages").is_file(), "Windows bench"),
]


def command(*words: str) -> list[str]:
    """The command line of the bench's own front."""
    return [sys.executable, "-m", "tests.windows.bench", "run", str(BENCH), *words]


def python(code: str, *options: str, stdin: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    """What a line of Python does under Windows."""
    argv = command(*options, "--", "python", "-c", code)
    return subprocess.run(argv, cwd=ROOT, input=stdin, capture_output=True, timeout=120, check=False)


@pytest.mark.parametrize(
    ("code", "seen"), [(0, 0), (1, 1), (7, 7), (255, 255), (256, 1), (512, 1), (-1, 255)]
)
def test_exit_codes(code: int, seen: int) -> None:
    assert python(f"import os; os._exit({code})").returncode == seen


def test_the_streams_stay_separate_and_complete() -> None:
    done = python("import sys; sys.stdout.buffer.write(bytes(range(256)) * 999); sys.stderr.write('told')")
    assert done.stdout == bytes(range(256)) * 999
    assert done.stderr == b"told"


def test_stdout_may_be_a_file(tmp_path: Path) -> None:
    """Wine 8's Python dies of one that it gets itself."""
    with (tmp_path / "log").open("wb") as log:
        argv = command("--", "python", "-c", "print(6 * 7)")
        assert subprocess.run(argv, cwd=ROOT, stdout=log, check=False).returncode == 0
    assert (tmp_path / "log").read_bytes() == b"42\r\n"


def test_stdin() -> None:
    reads = "import sys; print(len(sys.stdin.buffer.read()))"
    assert python(reads).stdout == b"0\r\n"
    assert python(reads, "--stdin", "pipe", stdin=b"x" * 100_000).stdout == b"100000\r\n"
    asks = "import ctypes; print(ctypes.windll.kernel32.GetConsoleCP())"
    assert python(asks).stdout == b"0\r\n"
    assert int(python(asks, "--stdin", "console").stdout) > 0


CHILD = "import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', 'import time; {}'])"


def test_a_time_limit_ends_everything() -> None:
    sleep = f"time.sleep(600 + {uuid.uuid4().int % 1000} / 1000)"
    start = time.monotonic()
    done = python(f"{CHILD.format(sleep)}; {sleep}", "--seconds", "5")
    assert done.returncode == 124
    assert b"not done after 5 s" in done.stderr
    assert time.monotonic() - start < 60
    assert not [process for process in psutil.process_iter() if sleep in " ".join(said_by(process))]


def said_by(process: psutil.Process) -> list[str]:
    """Return the command line of a process, or nothing once it has ended."""
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def test_what_a_program_left_behind_is_not_waited_for() -> None:
    start = time.monotonic()
    assert python(CHILD.format("time.sleep(60)")).returncode == 0
    assert time.monotonic() - start < 50


INTERRUPTED = """
import time
try:
    print("up", flush=True)
    time.sleep(99)
except KeyboardInterrupt:
    raise SystemExit(9)
"""


def test_an_interrupt_arrives() -> None:
    argv = command("--", "python", "-c", INTERRUPTED)
    with subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\r\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 9


@pytest.mark.parametrize("before", ["pass", "import ctypes; ctypes.windll.user32.GetDesktopWindow()"])
def test_a_crash_ends_at_once(before: str) -> None:
    """Also that of a program that could open a window to ask what to do."""
    done = python(f"{before}; import faulthandler; faulthandler._read_null()", "--seconds", "60")
    assert done.returncode not in (0, 124)


def test_a_program_that_is_not_there() -> None:
    done = subprocess.run(command("--", "no-such-program"), cwd=ROOT, capture_output=True, check=False)
    assert done.returncode != 0
