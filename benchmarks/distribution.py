"""Distributed compiles: sccache-dist beside recc with a Remote Execution server (buildbox-casd), in one run.

A scheduler, a server of each kind and a client, each in a network name space of this machine, so wall time is
that of all of them on the same cores. The first round sends the toolchain and is not counted. Each server is
then stopped (it hangs), and at last killed, while a build goes on; TORCHBUILD_BENCH_LIMIT is how many seconds
such a build may take (default 120).
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable
from pathlib import Path

import msgspec

from benchmarks.caches import SOURCE
from benchmarks.measure import Command, note, run
from tests.support.caches import casd_argv, clean, install_cache, objects, project
from tests.support.clusters import REPOSITORY, ClusterOfHosts, cluster
from tests.support.hosts import Host, has_hosts
from tests.support.waiting import until

FILES, JOBS, PORT = 4, 2, 8980
# CPU of Ninja with all it waited for, and of a local server with the preprocessors that it ran.
BUILD = """
import os, resource, subprocess, sys, time
from pathlib import Path
from tests.support.caches import environ_for, plan_for, recc_environ
from torchbuild_tasks.features.cache.server import own_place
from torchbuild_tasks.features.cache.stats import hit_rate
from torchbuild_tasks.model import Distribution
from torchbuild_tasks.features.cache.run import cache_running
from torchbuild_tasks.features.cluster.act import client_of
name, program, folder, conf, url, jobs, root, out = sys.argv[1:]
def server(root):
    stats = (Path(f"/proc/{pid}/stat").read_text() for pid in own_place(root).leftovers())
    ticks = sum(sum(map(int, stat.rpartition(")")[2].split()[11:15])) for stat in stats)
    return ticks / os.sysconf("SC_CLK_TCK")
def waited():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
root, folder = Path(root), Path(folder)
if name == "recc":
    environ, address, away = os.environ | recc_environ(root, program, distribute=url), url, None
else:
    environ, address = environ_for(name, folder, root), ""
    away = Distribution(url=url, conf=conf, compiler="/usr/bin/c++", jobs=int(jobs))
plan = plan_for(name, program, folder, remotes=(address,) if address else (), distribution=away)
with cache_running(plan, address, environ, root, print, distributor=client_of(away)) as running:
    before, start = waited() + server(root), time.monotonic()
    subprocess.run(["ninja", "-C", str(root / "build"), "-j", jobs], env=running.environ, check=True)
    wall, cpu = time.monotonic() - start, waited() + server(root) - before
Path(out).write_text(f"{wall} {cpu} {hit_rate(running.reports[0]) or 0}")
"""


class Built(msgspec.Struct, frozen=True, kw_only=True):
    """What a build cost: seconds, CPU of the sending machine, and how much it found, in percent."""

    wall: float
    cpu: float
    hits: float


class Engine(msgspec.Struct, frozen=True, kw_only=True):
    """What sends compiles away: its launcher, and where it sends them."""

    name: str
    title: str
    program: str
    url: str
    server: Host
    hosts: ClusterOfHosts
    folder: Path

    def build(self, root: Path) -> Built:
        """Build the tree from the client."""
        clean(root)
        kept, out = self.folder / "kept", self.folder / "out"
        words = (self.name, self.program, kept, self.hosts.conf, self.url, JOBS, root, out)
        python = ("env", f"PYTHONPATH={REPOSITORY}", sys.executable, "-c", BUILD)
        done = self.hosts.client.run(*python, *map(str, words), timeout=_limit())
        if done.returncode or len(objects(root)) != FILES:
            said = f"{done.stdout}{done.stderr}"
            raise SystemExit(f"a build by {self.title} failed; nothing was measured\n{said}")
        wall, cpu, hits = map(float, out.read_text("utf-8").split())
        return Built(wall=wall, cpu=cpu, hits=100 * hits)


def _limit() -> float:
    return float(os.environ.get("TORCHBUILD_BENCH_LIMIT", "120"))


def main(runs: int = 1) -> None:
    """Measure on hosts of this machine, if it can have some."""
    if not has_hosts() or not shutil.which("bwrap"):
        print("distribution: no network name spaces or no bubblewrap here")
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        sccache, recc = install_cache("sccache", folder / "sccache"), shutil.which("recc")
        if not sccache:
            print("distribution: no sccache here")
            return
        (folder / "hosts").mkdir()
        with cluster(folder / "hosts", sccache, ["alpha"], ["casd"]) as hosts:
            engines = [_sccache(hosts, folder)]
            if recc and shutil.which("buildbox-casd"):
                engines.append(_recc(hosts, folder, recc))
            else:
                print("distribution: no recc and buildbox-casd here (Debian's package buildbox)")
            for engine in engines:
                _measure(engine, folder / engine.name, runs)


def _sccache(hosts: ClusterOfHosts, folder: Path) -> Engine:
    return Engine(
        name="sccache",
        title="sccache-dist",
        program=hosts.sccache,
        url=hosts.url,
        server=hosts.servers[0],
        hosts=hosts,
        folder=folder / "sccache-builds",
    )


def _recc(hosts: ClusterOfHosts, folder: Path, program: str) -> Engine:
    (server,) = hosts.beside
    address = f"{server.address}:{PORT}"
    server.start(server.folder / "log", *casd_argv(address, server.folder / "casd"))
    connect = f"import socket; socket.create_connection(('{server.address}', {PORT}), 1)"

    def is_ready() -> bool:
        return hosts.client.run(sys.executable, "-c", connect).returncode == 0

    until(is_ready, "buildbox-casd listens")
    return Engine(
        name="recc",
        title="recc with buildbox-casd",
        program=program,
        url=f"reapi://{address}",
        server=server,
        hosts=hosts,
        folder=folder / "recc-builds",
    )


def _measure(engine: Engine, folder: Path, runs: int) -> None:
    engine.folder.mkdir()
    one, two = (_tree(folder / name, engine.program) for name in ("one", "two"))
    plain = _tree(folder / "plain", "")
    local = Command(argv=("ninja", "-C", str(plain / "build"), "-j2"), cwd=folder)
    rounds = []
    for number in range(runs + 1):
        for root in (one, two, plain):
            _change(root, number)
        clean(plain)
        rounds.append((run(local), engine.build(one), engine.build(one), engine.build(two)))
    del rounds[0]  # that round has sent the toolchain

    alone, away, again, other = zip(*rounds, strict=True)

    def say(what: str, values: Iterable[float], goal: str = "none", unit: str = "x") -> None:
        note(f"{engine.title}, {what}", tuple(values), goal, unit)

    def to_alone(cpu: Iterable[float]) -> list[float]:
        return [ours / plain.cpu for ours, plain in zip(cpu, alone, strict=True)]

    say("CPU of the sending machine to compiling all itself", to_alone(each.cpu for each in away), "<= 0.05")
    say(
        "wall to the same, all on the same cores", [a.wall / b.wall for a, b in zip(away, alone, strict=True)]
    )
    say("built again, CPU of the sending machine to the same", to_alone(each.cpu for each in again))
    say("built again, hits", (each.hits for each in again), unit="%")
    say("a second checkout, CPU of the sending machine to the same", to_alone(each.cpu for each in other))
    say("a second checkout, hits", (each.hits for each in other), ">= 95", "%")
    say("wall", (each.wall for each in away), unit="s")
    say("wall, built again", (each.wall for each in again), unit="s")
    for how, number in (("stopped (it hangs)", signal.SIGSTOP), ("killed", signal.SIGKILL)):
        wall = _disturbed(engine, one, number)
        limit = ", which was ended then" if wall == _limit() else ""
        say(f"wall, server {how} when two of {FILES} are compiled{limit}", [wall], unit="s")
    print(f"    $ torchbuild build --distribute {engine.url}\n    against\n    $ {local}", flush=True)


def _disturbed(engine: Engine, root: Path, number: signal.Signals) -> float:
    """Build while the server ends or stops answering; return the seconds until everything is compiled."""
    _change(root, 1000 + number)
    clean(root)

    def disturb() -> None:
        until(lambda: len(objects(root)) >= 2, "two are compiled", _limit())
        engine.server.send(number)

    disturbing = threading.Thread(target=disturb, daemon=True)
    disturbing.start()
    try:
        return engine.build(root).wall
    except subprocess.TimeoutExpired:
        engine.hosts.client.kill()
        return _limit()
    finally:
        disturbing.join(10)
        engine.server.send(signal.SIGCONT)


def _change(root: Path, number: int) -> None:
    """Change what every file includes, so that nothing of it is kept anywhere yet."""
    (root / "include/own.h").write_text(f"inline int own() {{ return {number}; }}\n", "utf-8")


def _tree(root: Path, launcher: str) -> Path:
    project(root, launcher, FILES)
    (root / ".torchbuild").mkdir()
    for n in range(FILES):
        (root / f"f{n}.cpp").write_text(SOURCE.format(n=n), "utf-8")
    rules = root / "build" / "build.ninja"
    rules.write_text(rules.read_text("utf-8").replace(" -O1 ", " -O3 "), "utf-8")
    return root
