"""A project of memory-hungry compiles, a memory group to build it in, and a driver for both.

python -m tests.support.hungry FOLDER NINJA JOBS [ours] [strict]   build it, print how it went as JSON
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from torchbuild_tasks.build.jobserver.serve import CAN_HOLD, serve
from torchbuild_tasks.build.jobserver.tokens import TokenPolicy

MIB = 1 << 20
# Small for most of its time, as a compiler is that parses; then it grows to its peak and stays
# there. It sleeps more than it computes, so that eight of them fit on two cores.
COMPILE = """
import sys, time
out, mib, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
def work(until):
    while (left := until - time.monotonic()) > 0:
        sum(range(20000)); time.sleep(min(left, 0.02))
start, parts = time.monotonic(), []
work(start + 0.6 * seconds)
steps = max(1, mib // 8)
for number in range(steps):
    part = bytearray(8 << 20)
    part[::4096] = bytes(2048)
    parts.append(part)
    work(time.monotonic() + 0.2 * seconds / steps)
work(time.monotonic() + 0.2 * seconds)
open(out, "w").close()
"""


def project(folder: Path, *, count: int = 24, low: int = 200, high: int = 1500, seconds: float = 2.0) -> None:
    """Write a Ninja project of so many compiles with peaks from `low` to `high` MiB, always the same ones."""
    dice = random.Random(24)
    (folder / "compile.py").write_text(COMPILE, "utf-8")
    lines = ["rule compile", f"  command = {sys.executable} -S -E compile.py $out $mib $seconds"]
    for number in range(count):
        mib, length = dice.randint(low, high), seconds * dice.uniform(0.7, 1.3)
        lines += [f"build {number}.o: compile", f"  mib = {mib}", f"  seconds = {length:.2f}"]
    (folder / "build.ninja").write_text("\n".join(lines) + "\n", "utf-8")


@contextlib.contextmanager
def memory_group(limit: int) -> Iterator[Path | None]:
    """A real cgroup below our own with so many bytes; None where this machine lets us make none."""
    folder = _make_group(limit)
    try:
        yield folder
    finally:
        if folder is not None:
            for _ in range(100):
                with contextlib.suppress(OSError):
                    folder.rmdir()
                    break
                time.sleep(0.1)


def _make_group(limit: int) -> Path | None:
    groups = {}
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text("ascii").splitlines():
            _, controllers, group = line.split(":", 2)
            groups[controllers] = group.lstrip("/")
    tries = [(Path("/sys/fs/cgroup/memory") / groups.get("memory", ""), "memory.limit_in_bytes")]
    tries += [(Path("/sys/fs/cgroup") / groups.get("", ""), "memory.max")]
    for parent, name in tries:
        folder = parent / f"torchbuild-test-{os.getpid()}"
        with contextlib.suppress(OSError):
            folder.mkdir()
            if (folder / name).exists():
                (folder / name).write_text(str(limit), "ascii")
                # With swap the group would not die but crawl.
                with contextlib.suppress(OSError):
                    (folder / "memory.swap.max").write_text("0", "ascii")
                return folder
            folder.rmdir()
    return None


def inside(group: Path, *argv: str) -> list[str]:
    """The command that runs this one in the group."""
    return ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', str(group), *argv]


def build(folder: Path, ninja: str, jobs: int, ours: bool) -> dict[str, float]:
    """Build, with the jobserver or with -jN; return exit code, seconds, and the suspended time."""
    start = time.monotonic()
    if not ours:
        rc = subprocess.run(
            [ninja, f"-j{jobs}"], cwd=folder, stdout=subprocess.DEVNULL, check=False
        ).returncode
        return {"rc": rc, "seconds": time.monotonic() - start}
    policy = TokenPolicy(cores=jobs, reserve=1 << 30, largest=2 << 30, holds=CAN_HOLD)
    with serve(jobs - 1, policy=policy) as served:
        env = served.environment(os.environ)
        rc = subprocess.run([ninja], cwd=folder, env=env, stdout=subprocess.DEVNULL, check=False).returncode
        seconds = time.monotonic() - start
    return {"rc": rc, "seconds": seconds, "held": served.held_seconds, "fewest": served.fewest}


if __name__ == "__main__":
    outcome = build(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), "ours" in sys.argv)
    print(json.dumps(outcome))
    sys.exit(int(outcome["rc"]) if "strict" in sys.argv else 0)
