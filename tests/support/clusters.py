"""A cluster of four hosts: a scheduler, two servers and a client, all by the tool's own verbs."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.support.driver import TORCHBUILD, environment
from tests.support.hosts import Host, hosts
from tests.support.waiting import until

REPOSITORY: Final = Path(__file__).resolve().parents[2]
# What a build does with its cache, for a tree that Ninja builds; the last line tells what came of it.
BUILD: Final = """
import json, subprocess, sys
from pathlib import Path
from tests.support.caches import environ_for, plan_for
from torchbuild_tasks.model import Distribution
from torchbuild_tasks.features.cache.run import cache_running
program, compiler, folder, conf, url, jobs, root = sys.argv[1:]
root, environ = Path(root), environ_for("sccache", Path(folder), Path(root))
environ.pop("MAX_JOBS", None)
away = Distribution(url=url, conf=conf, compiler=compiler, jobs=int(jobs))
plan = plan_for("sccache", program, Path(folder), distribution=away)
say = lambda line: print(line, flush=True)
with cache_running(plan, "", environ, root, say, every=0.5) as running:
    number = running.environ.get("MAX_JOBS", "2")
    ninja = subprocess.run(["ninja", "-C", str(root / "build"), "-j", number], env=running.environ)
report = running.reports[0]
made = {"away": dict(report.away), "given_back": report.given_back, "misses": sum(report.misses.values())}
print(json.dumps({"rc": ninja.returncode, "jobs": number, **made}))
"""


@dataclass
class ClusterOfHosts:
    """The hosts of the cluster, other hosts, and the scheduler's address."""

    scheduler: Host
    servers: list[Host]
    client: Host
    url: str
    sccache: str
    beside: list[Host] = field(default_factory=list)
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def path(self) -> dict[str, str]:
        """Where sccache and sccache-dist are found."""
        return {"PATH": f"{Path(self.sccache).parent}{os.pathsep}{environment()['PATH']}"}

    @property
    def conf(self) -> Path:
        """Return the files of `cluster join` on the client."""
        folder = self.client.folder / ".config" / "torchbuild-tasks" / "cluster"
        return folder / f"client-of-{self.scheduler.address}-10600.conf"

    def start_build(
        self, root: Path, log: Path, *, jobs: int = 8, compiler: str = "/usr/bin/c++"
    ) -> subprocess.Popen[bytes]:
        """Build the tree from the client, all compiles sent away."""
        words = (self.sccache, compiler, self.client.folder / "sccache", self.conf, self.url, str(jobs), root)
        python = ("env", f"PYTHONPATH={REPOSITORY}", sys.executable, "-c", BUILD)
        return self.client.start(log, *python, *words)

    def ended_build(self, process: subprocess.Popen[bytes], log: Path) -> dict[str, Any]:
        """Return its exit code; its output is in the log."""
        code = process.wait(timeout=400)
        said = log.read_text("utf-8", "replace")
        assert code == 0, said
        found: dict[str, Any] = json.loads(said.splitlines()[-1])
        return found


def said(host: Host) -> str:
    """Return the output so far of the program on a host."""
    return (host.folder / "log").read_text("utf-8", "replace")


def has_said(host: Host, words: str) -> None:
    """Wait until it has."""
    until(lambda: words in said(host), f"{host.name} says: {words}")


def count(host: Host, url: str, environ: dict[str, str]) -> int:
    """Return the number of servers that `cluster status` reports on a host."""
    done = host.run(*TORCHBUILD, "cluster", "status", "--scheduler", url, "--json", environ=environ)
    return int(json.loads(done.stdout)["clusters"][0]["servers"])


@contextlib.contextmanager
def cluster(
    folder: Path, sccache: str, names: Sequence[str] = ("alpha", "beta"), beside: Sequence[str] = ()
) -> Iterator[ClusterOfHosts]:
    """Start everything, copy the tokens as a user would, and join."""
    with hosts(folder, "scheduler", "client", *names, *beside) as (scheduler, client, *others):
        servers, rest = others[: len(names)], others[len(names) :]
        made = ClusterOfHosts(scheduler, servers, client, f"http://{scheduler.address}:10600", sccache, rest)
        path = ("env", f"PATH={made.path['PATH']}")
        allowed = [word for server in servers for word in ("--allow", server.address)]
        words = (*TORCHBUILD, "cluster", "scheduler", "--listen", scheduler.address, *allowed)
        made.processes["scheduler"] = scheduler.start(scheduler.folder / "log", *path, *words)
        has_said(scheduler, "Ctrl-C ends it")
        tokens = scheduler.folder / ".config" / "torchbuild-tasks" / "cluster"
        for server in servers:
            token = server.folder / "token"
            shutil.copy(tokens / f"server-{server.address}-10501.token", token)
            run = (*TORCHBUILD, "cluster", "server", made.url, "--token-file", token)
            made.processes[server.name] = server.start(server.folder / "log", *path, *run)
        for server in servers:
            has_said(server, "has taken this server")
        shutil.copy(tokens / "client.token", client.folder / "token")
        joined = client.run(*TORCHBUILD, "cluster", "join", made.url, "--token-file", client.folder / "token")
        assert joined.returncode == 0, joined.stderr
        assert count(client, made.url, made.path) == len(servers)
        yield made
