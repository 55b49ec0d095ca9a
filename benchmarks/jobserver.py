"""The memory-aware jobserver: against the best -j found by hand under a limit, and against plain Ninja.

Twenty-four compiles that peak late at 0.2 to 1.5 GB, eight at once, in a memory cgroup. They sleep
more than they compute, so that a machine of few cores shows what waits for memory, not for cores.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.measure import Command, run, show
from tests.support import hungry

CORES = 8
SECONDS = 15.0
TIGHT, PLENTY = 4096 * hungry.MIB, 20480 * hungry.MIB


def main(runs: int = 3) -> None:
    """Under a tight limit against the most jobs that plain Ninja survives; then with plenty of memory."""
    ninja = shutil.which("ninja", path=str(Path(sys.executable).parent)) or shutil.which("ninja")
    if ninja is None or not _is_new(ninja):
        print("jobserver: no ninja 1.13 or later here")
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        hungry.project(folder, seconds=SECONDS)
        with hungry.memory_group(TIGHT) as group:
            if group is None:
                print("jobserver: no memory cgroup can be made here")
                return
            for best in range(CORES, 0, -1):
                if _compare(folder, group, ninja, best, f"jobserver, 4 GiB, to -j{best}", "<= 1.1", runs):
                    break
        with hungry.memory_group(PLENTY) as group:
            assert group is not None
            _compare(folder, group, ninja, CORES, "jobserver, 20 GiB, to plain ninja", "<= 1.02", runs)


def _is_new(ninja: str) -> bool:
    said = subprocess.run([ninja, "--version"], capture_output=True, text=True, check=True).stdout
    return tuple(map(int, said.split(".")[:2])) >= (1, 13)


def _command(folder: Path, group: Path, ninja: str, jobs: int, *more: str) -> Command:
    driver = (sys.executable, "-m", "tests.support.hungry", str(folder), ninja, str(jobs), "strict", *more)
    return Command(argv=hungry.inside(group, *driver), cwd=Path.cwd(), before=lambda: _clear(folder))


def _compare(folder: Path, group: Path, ninja: str, jobs: int, title: str, goal: str, runs: int) -> bool:
    """Measure pair by pair; False when plain Ninja died in one of them: then so many jobs are too many."""
    ours = _command(folder, group, ninja, CORES, "ours")
    plain = _command(folder, group, ninja, jobs)
    costs = []
    for number in range(runs):
        try:
            other = run(plain)
        except SystemExit:
            print(f"    plain ninja -j{jobs} was killed in run {number + 1} of {runs}", flush=True)
            return False
        costs.append((run(ours), other))
    show(f"{title}, wall", ours, plain, [a.wall / b.wall for a, b in costs], goal)
    show(f"{title}, CPU", ours, plain, [a.cpu / b.cpu for a, b in costs], "none")
    return True


def _clear(folder: Path) -> None:
    for path in (*folder.glob("*.o"), folder / ".ninja_log"):
        path.unlink(missing_ok=True)
