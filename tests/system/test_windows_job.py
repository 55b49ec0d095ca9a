"""Job objects, on real processes."""

from __future__ import annotations

import contextlib
import ctypes
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.support.waiting import until
from torchbuild_tasks.system import windows_job as module
from torchbuild_tasks.system.windows_job import Job, adopt, ask

pytestmark = pytest.mark.integration
needs_jobs = pytest.mark.skipif(sys.platform != "win32", reason="needs job objects")
PY = sys.executable
SLEEP = "import time; time.sleep(60)"
# Starts one child that is detached and leads a group of its own, says both pids, and waits.
PARENT = f"""import os, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", {SLEEP!r}], creationflags=0x208)
print(os.getpid(), child.pid, flush=True)
{SLEEP}
"""
# A tool of which nothing is left but its job: it says the pids of the tree and waits.
TOOL = f"""import sys
from torchbuild_tasks.system.process import stream
show = lambda block: (sys.stdout.write(block.decode()), sys.stdout.flush())
class Nothing:
    def write(self, data): pass
stream([sys.executable, "-c", {PARENT!r}], env=None, cwd=None, log=Nothing(), on_block=show)
"""


def is_alive(pid: int) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return bool(psutil.Process(pid).is_running())
    return False


@pytest.fixture
def suspended() -> Iterator[subprocess.Popen[str]]:
    flags = 0x204  # CREATE_NEW_PROCESS_GROUP, CREATE_SUSPENDED
    with subprocess.Popen(
        [PY, "-c", PARENT], stdout=subprocess.PIPE, text=True, creationflags=flags
    ) as process:
        yield process
        process.kill()


def pids(process: subprocess.Popen[str]) -> list[int]:
    assert process.stdout is not None
    return [int(pid) for pid in process.stdout.readline().split()]


@needs_jobs
def test_the_structures_have_the_sizes_of_windows_headers() -> None:
    """On 64 bits: 64, 144; two DWORDs and the ids."""
    assert ctypes.sizeof(module._Basic) == 64
    assert ctypes.sizeof(module._Extended) == 144
    assert ctypes.sizeof(module._Pids) == 8 + 8 * 1024


@needs_jobs
def test_all_descendants_are_in_the_job_and_end(suspended: subprocess.Popen[str]) -> None:
    job = adopt(suspended.pid)
    assert job is not None
    tree = pids(suspended)
    assert sorted(job.members()) == sorted(tree)
    assert job.end(grace=0) == ()
    assert suspended.wait(10) == 1
    assert not any(is_alive(pid) for pid in tree)
    assert job.members() == ()
    assert job.end(grace=0) == ()  # once is enough, twice is no harm


@needs_jobs
def test_who_ends_by_itself_within_the_grace_is_not_killed() -> None:
    with subprocess.Popen(
        [PY, "-c", "import time; time.sleep(0.5); raise SystemExit(7)"], creationflags=0x4
    ) as it:
        job = adopt(it.pid)
        assert job is not None
        assert job.end(grace=20) == ()
        assert it.wait(10) == 7


@needs_jobs
def test_what_is_released_lives_on(suspended: subprocess.Popen[str]) -> None:
    job = adopt(suspended.pid)
    assert job is not None
    tree = pids(suspended)
    job.release()
    job.release()
    time.sleep(0.5)
    assert all(is_alive(pid) for pid in tree)
    for pid in tree:
        psutil.Process(pid).kill()


@needs_jobs
def test_the_end_of_the_tool_is_the_end_of_the_tree() -> None:
    root = str(Path(__file__).parents[2])
    with subprocess.Popen([PY, "-c", TOOL], stdout=subprocess.PIPE, text=True, cwd=root) as tool:
        tree = pids(tool)
        assert all(is_alive(pid) for pid in tree)
        tool.kill()  # TerminateProcess: no code of the tool's runs any more
        tool.wait()
        until(lambda: not any(is_alive(pid) for pid in tree))


@needs_jobs
def test_where_a_job_is_refused_the_process_runs_without(
    suspended: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Job, process: int) -> None:
        raise PermissionError("in another job already")

    monkeypatch.setattr(Job, "add", refuse)
    assert adopt(suspended.pid) is None
    tree = pids(suspended)
    assert all(is_alive(pid) for pid in tree)
    psutil.Process(tree[1]).kill()


@needs_jobs
def test_what_is_no_process_cannot_be_adopted() -> None:
    with pytest.raises(OSError, match="WinError"):
        adopt(0)


@needs_jobs
def test_a_ctrl_break_without_a_console_kills_no_process() -> None:
    flags = 0x208  # DETACHED_PROCESS: it has no console that an event could come through
    with subprocess.Popen([PY, "-c", SLEEP], creationflags=flags) as it:
        ask(it.pid)
        time.sleep(0.3)
        assert it.poll() is None
        it.kill()


def test_elsewhere_there_are_no_jobs() -> None:
    if sys.platform == "win32":
        pytest.skip("needs a system without job objects")
    with pytest.raises(OSError, match="only Windows"):
        Job()
