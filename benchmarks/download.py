"""Downloads from a server in a process of its own, on loopback.

As fast as it goes against curl, which hashes nothing; then from a server that limits each
connection, where more connections are what helps: the rate of several over the rate of one.
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
from torchbuild_tasks.effects.fetch.download import Remote, fetch, fetch_all
from torchbuild_tasks.effects.fetch.net import Net
net = Net(ranges=int(sys.argv[1]))
jobs = [(Remote(name=f"{n}", urls=(url,)), Path(f"{n}.out")) for n, url in enumerate(sys.argv[3:])]
"""
OURS = f"{IMPORTS}fetch_all(jobs, net, lambda *progress: None, at_once=int(sys.argv[2]))"


def main(runs: int = 7) -> None:
    """Measure all three, on files of random bytes."""
    with tempfile.TemporaryDirectory() as scratch:
        served, here = Path(scratch) / "served", Path(scratch) / "here"
        served.mkdir()
        here.mkdir()
        for name, size in (("fast", FAST), ("slow", SLOW), *((f"quarter{n}", SLOW // 4) for n in range(4))):
            _random(served / name, size << 20)
        with _server(served) as url:
            curl = _command(here, "curl", "--silent", "--fail", "--output", "curl.out", url + "fast")
            ours = _ours(here, 1, 1, url + "fast")
            costs = pairs(ours, curl, runs)
            title = f"download of {FAST} MiB with sha256"
            show(f"{title}, wall", ours, curl, [a.wall / b.wall for a, b in costs], "<= 1.6")
            show(f"{title}, peak memory", ours, curl, [a.memory for a, _ in costs], "none", "MiB")
        with _server(served, RATE) as url:
            four = [url + f"quarter{n}" for n in range(4)]
            for title, goal, one, ours in (
                (
                    f"{SLOW} MiB by ranges",
                    3.0,
                    _ours(here, 1, 1, url + "slow"),
                    _ours(here, 6, 1, url + "slow"),
                ),
                (f"4 x {SLOW // 4} MiB at once", 3.6, _ours(here, 1, 1, *four), _ours(here, 1, 4, *four)),
            ):
                costs = pairs(one, ours, max(3, runs // 2), warm_up=0)
                title = f"{title}, {RATE / 1e6:.0f} MB/s a connection, speed-up"
                show(title, one, ours, [a.wall / b.wall for a, b in costs], f">= {goal}")


def _ours(folder: Path, ranges: int, at_once: int, *urls: str) -> Command:
    return _command(folder, sys.executable, "-c", OURS, str(ranges), str(at_once), *urls)


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
