"""What a killed run left running is ended by the next, and nothing else is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from torchbuild_tasks.system.left_running import FILE, VARIABLE, end_leftovers
from torchbuild_tasks.system.lock import hold

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(sys.platform == "win32", reason="there a job ends what a killed run has started"),
]
RUN = """import sys
from pathlib import Path
from torchbuild_tasks.system import lock, process
with lock.hold(Path(sys.argv[1]), "build"):
    program = "import subprocess, sys, time; print(1, flush=True);"
    program += "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']); time.sleep(60)"
    block = lambda data: print("runs", flush=True)
    process.stream([sys.executable, "-c", program], env=None, cwd=None, log=sys.stdout.buffer, on_block=block)
"""


def killed_run(root: Path) -> list[psutil.Process]:
    """The processes of a run that was killed while they ran."""
    argv = [sys.executable, "-c", RUN, str(root)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        while "runs" not in run.stdout.readline():
            pass
        left: list[psutil.Process] = []
        while len(left) < 2:
            left = psutil.Process(run.pid).children(recursive=True)
        os.kill(run.pid, signal.SIGKILL)
        run.wait()
        run.stdout.close()
    return left


def runs(process: psutil.Process) -> bool:
    """Say whether it runs; a zombie, whose parent has not waited for it yet, does not."""
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def test_the_next_run_ends_it_and_says_so(tmp_path: Path) -> None:
    left = killed_run(tmp_path)
    assert all(map(runs, left))
    notes: list[str] = []
    with hold(tmp_path, "build", notes.append):
        assert not any(map(runs, left))
    assert "had left running" in notes[0]
    assert not (tmp_path / ".torchbuild" / FILE).exists()
    with hold(tmp_path, "build", notes.append):
        pass
    assert len(notes) == 1


@pytest.mark.parametrize("lines", [("{pid}",), ("?",), ("?", "{pid}", "?")])
def test_a_process_without_the_token_is_never_ended(tmp_path: Path, lines: tuple[str, ...]) -> None:
    """Its number stands there, but it is another's by now."""
    environ = {**os.environ, VARIABLE: "another run's"}
    with subprocess.Popen(["sleep", "60"], start_new_session=True, env=environ) as other:
        (tmp_path / FILE).write_text("\n".join(("token", *lines)).format(pid=other.pid) + "\n")
        assert end_leftovers(tmp_path) == ((), ())
        assert other.poll() is None
        other.kill()


def test_a_server_that_left_the_session_stays_and_one_whose_start_was_cut_is_ended(tmp_path: Path) -> None:
    environ = {**os.environ, VARIABLE: "token"}
    with subprocess.Popen(["sleep", "60"], start_new_session=True, env=environ) as other:
        time.sleep(0.1)
        (tmp_path / FILE).write_text("token\n?\n1\n")
        assert end_leftovers(tmp_path) == ((), ())
        assert other.poll() is None
        (tmp_path / FILE).write_text("token\n?\n")
        os.utime(tmp_path / FILE, (time.time() - 60,) * 2)  # it was there long before that start
        os.utime(tmp_path / FILE, (psutil.Process(other.pid).create_time() - 0.01,) * 2)
        assert end_leftovers(tmp_path)[0] == ("sleep",)
        assert other.wait(10) != 0


@pytest.mark.parametrize("text", ["", "?", "\u00e9", "token\n12x\n"])
def test_a_note_that_makes_no_sense_ends_nothing(tmp_path: Path, text: str) -> None:
    assert end_leftovers(tmp_path) == ((), ())
    (tmp_path / FILE).write_text(text, "utf-8")
    assert end_leftovers(tmp_path) == ((), ())
