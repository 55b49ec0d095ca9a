"""Distributed compiles: the CPU that the sending machine spends, to compiling everything itself.

A scheduler, two servers and a client, each in a network name space of this machine, so only CPU says
anything: wall time is that of all four on the same cores. The toolchain is sent before the measurement.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from benchmarks.caches import SOURCE
from benchmarks.measure import Command, note, run
from tests.support.caches import clean, install_cache, project
from tests.support.clusters import REPOSITORY, ClusterOfHosts, cluster
from tests.support.hosts import has_hosts

FILES, JOBS = 12, 6
# CPU of Ninja with all it waited for, and of sccache's server with the preprocessors that it ran.
BUILD = """
import os, resource, subprocess, sys
from pathlib import Path
from tests.support.caches import environ_for, plan_for
from torchbuild_tasks.features.cache.server import own_place
from torchbuild_tasks.model import Distribution
from torchbuild_tasks.features.cache.run import cache_running
from torchbuild_tasks.features.cluster.act import client_of
program, folder, conf, url, jobs, root, out = sys.argv[1:]
def server(root):
    stats = (Path(f"/proc/{pid}/stat").read_text() for pid in own_place(root).leftovers())
    ticks = sum(sum(map(int, stat.rpartition(")")[2].split()[11:15])) for stat in stats)
    return ticks / os.sysconf("SC_CLK_TCK")
def waited():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
root, environ = Path(root), environ_for("sccache", Path(folder), Path(root))
away = Distribution(url=url, conf=conf, compiler="/usr/bin/c++", jobs=int(jobs))
plan = plan_for("sccache", program, Path(folder), distribution=away)
with cache_running(plan, "", environ, root, print, distributor=client_of(away)) as running:
    before = waited() + server(root)
    subprocess.run(["ninja", "-C", str(root / "build"), "-j", jobs], env=running.environ, check=True)
    cpu = waited() + server(root) - before
report = running.reports[0]
Path(out).write_text(f"{cpu} {sum(report.away.values())}")
"""


def main(runs: int = 5) -> None:
    """Measure on hosts of this machine, if it can have some."""
    if not has_hosts() or not shutil.which("bwrap"):
        print("distribution: no network name spaces or no bubblewrap here")
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        sccache = install_cache("sccache", folder / "sccache")
        if not sccache:
            print("distribution: no sccache here")
            return
        (folder / "hosts").mkdir()
        with cluster(folder / "hosts", sccache) as hosts:
            _measure(hosts, folder, runs)


def _measure(hosts: ClusterOfHosts, folder: Path, runs: int) -> None:
    away, here = _tree(folder / "tree", hosts.sccache), _tree(folder / "plain", "")
    local = Command(argv=("ninja", "-C", str(here / "build"), "-j2"), cwd=folder)
    ratios, shares = [], []
    for number in range(runs + 1):
        clean(here)
        clean(away)
        shutil.rmtree(hosts.client.folder / "sccache", ignore_errors=True)
        alone = run(local).cpu
        cpu, sent = _sent_away(hosts, away, folder / "out")
        if number:  # the first round sends the toolchain to both servers
            ratios.append(cpu / alone)
            shares.append(100 * sent / FILES)
    note("distribution, CPU of the sending machine to compiling all itself", ratios, "<= 0.05")
    note("distribution, compiles that other machines made", shares, ">= 95", "%")
    print(f"    $ torchbuild build --distribute {hosts.url}\n    against\n    $ {local}", flush=True)


def _sent_away(hosts: ClusterOfHosts, tree: Path, out: Path) -> tuple[float, int]:
    words = (hosts.sccache, hosts.client.folder / "sccache", hosts.conf, hosts.url, JOBS, tree, out)
    python = ("env", f"PYTHONPATH={REPOSITORY}", sys.executable, "-c", BUILD)
    done = hosts.client.run(*python, *map(str, words))
    if done.returncode:
        raise SystemExit(f"a build that was sent away failed; nothing was measured\n{done.stderr}")
    cpu, sent = out.read_text("utf-8").split()
    return float(cpu), int(sent)


def _tree(root: Path, launcher: str) -> Path:
    project(root, launcher, FILES)
    (root / ".torchbuild").mkdir()
    for n in range(FILES):
        (root / f"f{n}.cpp").write_text(SOURCE.format(n=n), "utf-8")
    rules = root / "build" / "build.ninja"
    rules.write_text(rules.read_text("utf-8").replace(" -O1 ", " -O3 "), "utf-8")
    return root
