"""The jobserver with real Ninja, real processes and a real memory limit."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import hungry
from tests.support.capabilities import needs, needs_fifo, needs_proc
from tests.support.waiting import until
from torchbuild_tasks.build.jobserver.serve import CAN_HOLD, Processes, serve
from torchbuild_tasks.build.jobserver.tokens import MemoryState, Orders, TokenPolicy

pytestmark = pytest.mark.integration

# A guard against hanging, not a measure.
HANG = 300


def ninja() -> str | None:
    """Return a Ninja that supports the jobserver, of this Python or on PATH."""
    beside = Path(sys.executable).with_name("ninja.exe" if os.name == "nt" else "ninja")
    for found in (str(beside) if beside.exists() else None, shutil.which("ninja")):
        if found:
            said = subprocess.run([found, "--version"], capture_output=True, text=True, check=False).stdout
            if tuple(map(int, said.split(".")[:2])) >= (1, 13):
                return found
    return None


NINJA = ninja()
needs_ninja_1_13 = needs(NINJA is not None, "ninja 1.13 or later")


@pytest.fixture
def group() -> Iterator[Path]:
    with hungry.memory_group(1000 * hungry.MIB) as folder:
        if folder is None:
            pytest.skip("no memory cgroup that can be made here")
        yield folder


def built(group: Path, project: Path, *words: str) -> dict[str, float]:
    argv = [sys.executable, "-m", "tests.support.hungry", str(project), str(NINJA), *words]
    done = subprocess.run(
        hungry.inside(group, *argv), capture_output=True, text=True, timeout=HANG, check=True
    )
    answer: dict[str, float] = json.loads(done.stdout)
    return answer


@pytest.mark.slow
@needs_ninja_1_13
@needs_proc
def test_a_build_ends_under_a_limit_under_which_plain_ninja_dies(tmp_path: Path, group: Path) -> None:
    """Compiles that grow over a second, as real ones do: on a busy machine we look less often."""
    hungry.project(tmp_path, low=50, high=375, seconds=5)
    plain = built(group, tmp_path, "8")
    objects = len(list(tmp_path.glob("*.o")))
    ours = built(group, tmp_path, "8", "ours")  # goes on from where that one was
    assert plain["rc"] != 0 and objects < 24
    assert ours["rc"] == 0 and len(list(tmp_path.glob("*.o"))) == 24
    for path in tmp_path.glob("*.o"):
        path.unlink()
    whole = built(group, tmp_path, "8", "ours")
    assert whole["rc"] == 0 and len(list(tmp_path.glob("*.o"))) == 24
    assert whole["held"] > 0


def project(folder: Path, count: int, command: str) -> None:
    lines = ["rule one", f"  command = {command}"]
    lines += [f"build {number}.o: one" for number in range(count)]
    (folder / "build.ninja").write_text("\n".join(lines) + "\n", "utf-8")


# Waits until so many run at once, or some did before, then looks whether there come to be more.
COUNTED = """
import os, pathlib, sys, time
out, wanted = pathlib.Path(sys.argv[1]), int(sys.argv[2])
me, enough = pathlib.Path("running") / out.name, pathlib.Path("enough")
me.touch()
end = time.monotonic() + 60
while not enough.exists() and len(os.listdir("running")) < wanted and time.monotonic() < end:
    time.sleep(0.02)
time.sleep(0.4)
out.write_text(str(len(os.listdir("running"))))
enough.touch()
me.unlink()
"""


@needs_ninja_1_13
@pytest.mark.parametrize(("tokens", "at_once"), [(0, 1), (2, 3)])
def test_ninja_runs_one_more_than_there_are_tokens(tmp_path: Path, tokens: int, at_once: int) -> None:
    (tmp_path / "running").mkdir()
    (tmp_path / "count.py").write_text(COUNTED, "utf-8")
    project(tmp_path, 8, f'"{sys.executable}" -S -E count.py $out {at_once}')

    def always(*_: object) -> Orders:
        return Orders(tokens=tokens, wait=0.05)

    with serve(7, policy=always) as served:
        env = served.environment({**os.environ, "MAX_JOBS": "8", "MAKEFLAGS": "-j8"})
        done = subprocess.run(
            [str(NINJA)], cwd=tmp_path, env=env, capture_output=True, timeout=HANG, check=True
        )
    assert b"ninja: warning" not in done.stdout + done.stderr
    seen = [int((tmp_path / f"{number}.o").read_text("ascii")) for number in range(8)]
    assert max(seen) == at_once


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()[0]


BEATS = "import sys, time\nwhile True: open(sys.argv[1], 'a').write('.'); sum(range(20000))"


@needs(CAN_HOLD, "way to hold a process")
def test_a_process_is_suspended_and_continues(tmp_path: Path) -> None:
    beats, processes = tmp_path / "beats", Processes()

    def size() -> int:
        return beats.stat().st_size if beats.exists() else 0

    with subprocess.Popen([sys.executable, "-S", "-E", "-c", BEATS, str(beats)]) as process:
        try:
            until(lambda: size() > 20 and any(1 << 20 < one.size < 1 << 32 for one in processes.look()))
            (one,) = processes.look()
            assert not one.held and one.peak >= one.size
            assert processes.hold(frozenset({one.pid})) == ((one.pid, one.started),)
            time.sleep(0.5)
            stopped = size()
            (one,) = processes.look()
            assert one.held and not one.idle  # it waits for us, and for nobody else
            time.sleep(0.5)
            assert size() == stopped
            processes.hold(frozenset())
            until(lambda: size() > stopped + 20)
        finally:
            process.kill()
    until(lambda: not processes.look())


@needs_proc
def test_only_processes_without_children_count_and_sleepers_are_idle() -> None:
    processes = Processes()
    with subprocess.Popen(["sh", "-c", "sleep 60; :"]) as shell:
        try:
            until(lambda: [one for one in processes.look() if one.idle])
            assert shell.pid not in {one.pid for one in processes.look()}
            (sleeper,) = processes.look()
        finally:
            os.kill(sleeper.pid, signal.SIGKILL)


# Holds all but one of its compiles from the start, says who they are, and is then killed.
HOLDER = """
import subprocess, sys
from torchbuild_tasks.build.jobserver.serve import serve
from torchbuild_tasks.build.jobserver.tokens import Orders
from pathlib import Path
def policy(state, running, tokens, now):
    held = frozenset(one.pid for one in sorted(running)[1:])
    return Orders(tokens=3, hold=held, wait=0.05)
with serve(3, policy=policy, folder=Path(sys.argv[2])) as served:
    subprocess.run([sys.argv[1]], env=served.environment({"PATH": ""}), stdout=subprocess.PIPE)
"""


def alive_in(folder: Path) -> list[int]:
    """Processes whose current folder this is."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "cwd").resolve(strict=True) == folder:
                found.append(int(entry.name))
        except OSError:
            continue
    return found


@needs_ninja_1_13
@needs_proc
@needs_fifo
def test_a_killed_run_leaves_no_suspended_process_and_no_file(tmp_path: Path) -> None:
    """Ninja ends of its broken pipe, the kernel wakes what was stopped, and the next run sweeps."""
    tree, scratch = tmp_path / "tree", tmp_path / "scratch"
    for folder in (tree, scratch):
        folder.mkdir()
    busy = "import time\nend = time.monotonic() + 2\nwhile time.monotonic() < end: pass\n"
    (tree / "busy.py").write_text(busy, "ascii")
    project(tree, 6, f"{sys.executable} -S -E busy.py $out")
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    argv = [sys.executable, "-c", HOLDER, str(NINJA), str(scratch)]
    with subprocess.Popen(argv, cwd=tree, env=env, start_new_session=True) as ours:
        until(lambda: [pid for pid in alive_in(tree) if state_of(pid) == "T"])
        ours.send_signal(signal.SIGKILL)
    assert len(list(scratch.iterdir())) == 1
    with serve(1, policy=TokenPolicy(cores=2, reserve=0, largest=1), look=MemoryState, folder=scratch):
        assert len(list(scratch.iterdir())) == 1  # its own
    until(lambda: not alive_in(tree))
    assert list(scratch.iterdir()) == []
