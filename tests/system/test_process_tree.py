"""Ending a whole tree, with and without a job."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator

import psutil
import pytest

from tests.support.waiting import is_alive
from torchbuild_tasks.system import process_tree
from torchbuild_tasks.system.process_tree import end_tree, list_processes

pytestmark = pytest.mark.integration
PY = sys.executable
# Ignores every polite signal, and so do its children; one of them has a session of its own.
CHILD = """import signal, time
for name in ("SIGINT", "SIGTERM", "SIGBREAK"):
    if hasattr(signal, name):
        signal.signal(getattr(signal, name), signal.SIG_IGN)
print(1, flush=True)
time.sleep(60)
"""
STUBBORN = f"""import os, subprocess, sys
apart = {{"creationflags": 0x208}} if os.name == "nt" else {{"start_new_session": True}}
a = subprocess.Popen([sys.executable, "-c", {CHILD!r}], stdout=subprocess.PIPE)
b = subprocess.Popen([sys.executable, "-c", {CHILD!r}], stdout=subprocess.PIPE, **apart)
a.stdout.readline(), b.stdout.readline()
print(a.pid, b.pid, flush=True)
{CHILD}"""


@pytest.fixture
def stubborn() -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [PY, "-c", STUBBORN],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        creationflags=0x200 if os.name == "nt" else 0,
    ) as process:
        yield process
        process.kill()


def test_end_tree_of_a_process_that_is_gone() -> None:
    gone = subprocess.Popen([PY, "-c", ""])
    gone.wait()
    assert end_tree(gone.pid) == ()


def test_end_tree_ends_what_ignores_signals_and_what_left_the_session(
    stubborn: subprocess.Popen[str],
) -> None:
    """There is no job object, so on Windows, too, the tree is found by parent ids."""
    assert stubborn.stdout is not None
    children = [int(pid) for pid in stubborn.stdout.readline().split()]
    stubborn.stdout.readline()
    assert len(children) == 2
    start = time.monotonic()
    assert end_tree(stubborn.pid, grace=1.0) == ()
    assert time.monotonic() - start < 20
    stubborn.wait()
    assert not any(is_alive(pid) for pid in children)


def test_who_is_older_than_the_parent_is_no_child(monkeypatch: pytest.MonkeyPatch) -> None:
    """On Windows a process keeps the id of an ended parent, which another process may get."""
    with subprocess.Popen([PY, "-c", "import time; time.sleep(60)"]) as younger:
        monkeypatch.setattr(sys, "platform", "win32")
        ours, theirs = psutil.Process(), psutil.Process(younger.pid)
        assert process_tree._is_child(theirs, ours)
        assert not process_tree._is_child(ours, theirs)
        younger.kill()


def test_a_process_is_listed_whose_pid_was_listed_for_another() -> None:
    """Pids come round again during a build of thousands of compiles."""
    (listed,) = (each for each in psutil.process_iter() if each.pid == os.getpid())
    # What psutil tells processes of one pid apart by: the pid and the time of its start.
    listed._ident = (listed.pid, 0.0)  # type: ignore[attr-defined]
    assert os.getpid() in {each.pid for each in list_processes("ppid")}
