"""Downloads from a server in a process of its own, on loopback.

As fast as it goes against curl, which hashes nothing; then from a server that limits each
connection: the rate of four files at once over the rate of one after the other.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import Command, pairs, show

FAST = 1000  # MiB of the file that comes as fast as it goes
SLOW = 200  # MiB of those that come slowly, together
RATE = 10e6  # bytes/s of each connection
IMPORTS = """
import sys
from pathlib import Path
from torchbuild_tasks.system.net.download import Remote, fetch, fetch_all
from torchbuild_tasks.system.net.client import Net
net = Net()
jobs = [(Remote(name=f"{n}", urls=(url,)), Path(f"{n}.out")) for n, url in enumerate(sys.argv[2:])]
"""
OURS = f"{IMPORTS}fetch_all(jobs, net, lambda *progress: None, at_once=int(sys.argv[1]))"


def main(runs: int = 7) -> None:
    """Measure both, on files of random bytes."""
    with tempfile.TemporaryDirectory() as scratch:
        served, here = Path(scratch) / "served", Path(scratch) / "here"
        served.mkdir()
        here.mkdir()
        for name, size in (("fast", FAST), *((f"quarter{n}", SLOW // 4) for n in range(4))):
            _random(served / name, size << 20)
        with _server(served) as url:
            curl = _command(here, "curl", "--silent", "--fail", "--output", "curl.out", url + "fast")
            ours = _ours(here, 1, url + "fast")
            costs = pairs(ours, curl, runs)
            title = f"download of {FAST} MiB with sha256"
            show(f"{title}, wall", ours, curl, [a.wall / b.wall for a, b in costs], "<= 1.6")
            show(f"{title}, peak memory", ours, curl, [a.memory for a, _ in costs], "none", "MiB")
        with _server(served, RATE) as url:
            four = [url + f"quarter{n}" for n in range(4)]
            one = _ours(here, 1, *four)
            ours = _ours(here, 4, *four)
            costs = pairs(one, ours, max(3, runs // 2), warm_up=0)
            title = f"4 x {SLOW // 4} MiB at once, {RATE / 1e6:.0f} MB/s a connection, speed-up"
            show(title, one, ours, [a.wall / b.wall for a, b in costs], ">= 3.6")


def _ours(folder: Path, at_once: int, *urls: str) -> Command:
    return _command(folder, sys.executable, "-c", OURS, str(at_once), *urls)


def _command(folder: Path, *argv: str) -> Command:
    def empty() -> None:
        for path in folder.iterdir():
            path.unlink()

    env = {**os.environ, "NO_PROXY": "127.0.0.1", "PYTHONPATH": str(Path.cwd())}
    return Command(argv=argv, cwd=folder, env=env, before=empty)


def _random(path: Path, size: int) -> None:
    with path.open("wb") as file:
        while file.tell() < size:
            file.write(os.urandom(min(8 << 20, size - file.tell())))


@contextlib.contextmanager
def _server(folder: Path, rate: float = 0.0) -> Iterator[str]:
    words = [sys.executable, "-m", "tests.support.webserver", str(folder), str(rate)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.stdin.close()
