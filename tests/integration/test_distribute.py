"""Compiles on other hosts: a scheduler, two servers and a client, each in a network of its own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.caches import clean, ninja, objects, project
from tests.support.capabilities import needs, needs_linux_compiler, needs_ninja
from tests.support.clusters import ClusterOfHosts, cluster, count
from tests.support.driver import TORCHBUILD, environment
from tests.support.hosts import needs_bubblewrap, needs_hosts
from tests.support.sample import materialise
from tests.support.waiting import until

pytestmark = [pytest.mark.integration, needs_hosts, needs_bubblewrap, needs_linux_compiler, needs_ninja]

NVCC = Path("/usr/local/cuda-13.0/bin/nvcc")


@pytest.fixture
def hosts(tmp_path: Path, sccache: str) -> Iterator[ClusterOfHosts]:
    (tmp_path / "hosts").mkdir()
    with cluster(tmp_path / "hosts", sccache) as made:
        yield made


def tokens(made: ClusterOfHosts) -> list[str]:
    """Every secret of the cluster, the signing key too."""
    found = [path.read_text("utf-8").strip() for path in made.scheduler.folder.rglob("*.token")]
    conf = next(made.scheduler.folder.rglob("scheduler.conf")).read_text("utf-8")
    return [*found, *(line.split('"')[1] for line in conf.splitlines() if line.startswith("secret_key"))]


@pytest.mark.slow
def test_the_sample_is_built_by_the_cluster(tmp_path: Path, target: Path, hosts: ClusterOfHosts) -> None:
    """The same objects as from here, the scheduler's address in the record, a token nowhere."""
    tree = materialise(tmp_path / "minitorch")
    client = hosts.client

    def build(*words: str) -> subprocess.CompletedProcess[str]:
        place = ("--source", tree, "--python", target, "--yes", "--set", "BUILD_TEST=1")
        done = client.run(*TORCHBUILD, "build", *place, *words, environ=hosts.path)
        assert done.returncode == 0, done.stdout + done.stderr
        return done

    done = build("--distribute", hosts.url)
    assert f"compiles are distributed by {hosts.url}" in done.stderr
    record = json.loads((tree / "build/torchbuild-manifest.json").read_text("utf-8"))
    (report,) = record["caches"]
    assert report["tool"] == "sccache"
    assert set(report["away"]) == {f"{server.address}:10501" for server in hosts.servers}
    assert sum(report["away"].values()) > 15
    assert "pool torchbuild_link\n  depth = " in (tree / "build/CMakeFiles/rules.ninja").read_text("utf-8")
    assert "pool = torchbuild_link" in (tree / "build/build.ninja").read_text("utf-8")

    away = {file.relative_to(tree): file.read_bytes() for file in (tree / "build").rglob("*.o")}
    build("--cache", "none", "--clean")
    here = {file.relative_to(tree): file.read_bytes() for file in (tree / "build").rglob("*.o")}
    assert away == here
    secret = tokens(hosts)
    assert len(secret) == 4
    for file in (*tree.rglob("*"), *(client.folder / "cache").rglob("*")):
        if file.is_file():
            data = file.read_bytes()
            assert not any(token.encode() in data for token in secret), file


def keep_their_secrets(hosts: ClusterOfHosts) -> None:
    """Assert that only the owner can read files with tokens, and that no token was printed."""
    checked = 0
    for host in (hosts.scheduler, *hosts.servers, hosts.client):
        for file in host.folder.joinpath(".config").rglob("*"):
            rights = stat.S_IMODE(file.stat().st_mode)
            if file.is_file():
                assert rights == 0o600, file
                checked += 1
        assert stat.S_IMODE((host.folder / ".config/torchbuild-tasks/cluster").stat().st_mode) == 0o700
    assert checked == 7, "scheduler.conf, three tokens, two server's and one client's file"
    for host in (hosts.scheduler, *hosts.servers):
        said = (host.folder / "log").read_text("utf-8")
        assert not any(token in said for token in tokens(hosts))


def tree_of(hosts: ClusterOfHosts, tmp_path: Path, files: int) -> tuple[Path, list[bytes]]:
    """A tree to be built away, and its objects as this machine compiles them in the same place."""
    root = tmp_path / "tree"
    project(root, "", files, heavy=True)
    assert ninja(root, environment()).returncode == 0
    here = objects(root)
    shutil.rmtree(root)
    project(root, hosts.sccache, files, heavy=True)
    (root / ".torchbuild").mkdir()
    return root, here


@pytest.mark.slow
def test_a_server_then_the_scheduler_killed(tmp_path: Path, hosts: ClusterOfHosts) -> None:
    root, here = tree_of(hosts, tmp_path, 20)
    log = tmp_path / "log"
    build = hosts.start_build(root, log, jobs=6)
    until(lambda: len(objects(root)) >= 2, "two are there", 120)
    hosts.servers[1].kill()
    until(lambda: len(objects(root)) >= 8, "eight are there", 120)
    hosts.scheduler.kill()
    made = hosts.ended_build(build, log)
    assert made["rc"] == 0 and made["away"] and made["given_back"] >= 1
    said = log.read_text("utf-8")
    assert f"everything is compiled here from now on. {hosts.url}: Connection refused." in said
    assert objects(root) == here


@pytest.mark.slow
def test_a_server_hangs(tmp_path: Path, hosts: ClusterOfHosts) -> None:
    """It is stopped in the middle of a compile: sccache itself would wait for 20 minutes."""
    root, here = tree_of(hosts, tmp_path, 20)
    log = tmp_path / "log"
    build = hosts.start_build(root, log, jobs=6)
    until(lambda: len(objects(root)) >= 2, "two are there", 120)
    hosts.servers[1].send(signal.SIGSTOP)
    made = hosts.ended_build(build, log)
    assert made["rc"] == 0 and made["given_back"] >= 1
    said = log.read_text("utf-8")
    line = f"the server {hosts.servers[1].address}:10501 does not answer within 10 s; what waits"
    assert said.count(line) == 1
    assert "from now on" not in said
    assert objects(root) == here


@pytest.mark.slow
def test_a_server_then_the_scheduler_cut_off(tmp_path: Path, hosts: ClusterOfHosts) -> None:
    """No answer at all is worse than a refusal: sccache itself waits for it at every compile."""
    root, here = tree_of(hosts, tmp_path, 20)
    log = tmp_path / "log"
    build = hosts.start_build(root, log, jobs=6)
    until(lambda: len(objects(root)) >= 2, "two are there", 120)
    hosts.servers[1].cut_off()
    until(lambda: len(objects(root)) >= 8, "eight are there", 120)
    hosts.scheduler.cut_off()
    made = hosts.ended_build(build, log)
    assert made["rc"] == 0
    assert "it does not answer within 3 s" in log.read_text("utf-8")
    assert objects(root) == here


@pytest.mark.slow
def test_servers_that_cannot_compile_are_found_out_before_the_build(
    tmp_path: Path, hosts: ClusterOfHosts
) -> None:
    """Each server fails its first compile; the build runs locally, with this machine's number of jobs."""
    for server in hosts.servers:
        shutil.rmtree(server.folder / "cache/cluster/builds")
    root, here = tree_of(hosts, tmp_path, 2)
    log = tmp_path / "log"
    made = hosts.ended_build(hosts.start_build(root, log, jobs=6), log)
    assert (made["rc"], made["jobs"], made["away"]) == (0, "2", {})
    assert "a first compile did not come back from a server" in log.read_text("utf-8")
    assert objects(root) == here


@pytest.mark.slow
@needs(NVCC.exists(), "nvcc 13.0")
def test_nvcc_for_two_architectures(tmp_path: Path, hosts: ClusterOfHosts) -> None:
    """One .cu for two architectures is six jobs, and the object is what sccache makes here.

    nvcc by itself makes another at every call: names of temporary files stand in it.
    """
    root = tmp_path / "tree"
    (root / "build").mkdir(parents=True)
    (root / ".torchbuild").mkdir()
    source = "__global__ void f(float* x) { x[threadIdx.x] *= 3; }\nvoid g(float* x) { f<<<1, 32>>>(x); }\n"
    (root / "k.cu").write_text(source, "utf-8")
    archs = " ".join(f"-gencode arch=compute_{arch},code=sm_{arch}" for arch in (80, 90))
    rule = f"rule cu\n  command = {hosts.sccache} {NVCC} {archs} -O2 -c $in -o $out\n"
    (root / "build/build.ninja").write_text(f"{rule}build k.o: cu {root}/k.cu\n", "utf-8")
    log = tmp_path / "log"
    made = hosts.ended_build(hosts.start_build(root, log, jobs=6), log)
    assert (made["rc"], made["given_back"]) == (0, 0)
    assert sum(made["away"].values()) == 6
    away = objects(root)

    clean(root)
    server = {"SCCACHE_SERVER_UDS": str(tmp_path / "sock"), "SCCACHE_DIR": str(tmp_path / "here")}
    environ = {**environment(), **server, "SCCACHE_CONF": os.devnull}
    for word in ("--start-server", "", "--stop-server"):
        done = ninja(root, environ) if not word else subprocess.run([hosts.sccache, word], env=environ)
        assert done.returncode == 0
    assert objects(root) == away


def test_a_cluster_is_queried(hosts: ClusterOfHosts) -> None:
    """The output of status; another cluster's token; the scheduler's token in place of a server's."""
    keep_their_secrets(hosts)
    client, path = hosts.client, hosts.path

    def say(*words: str | Path) -> subprocess.CompletedProcess[str]:
        return client.run(*TORCHBUILD, "cluster", *words, environ=path)

    told = say("status")
    assert told.returncode == 0
    assert hosts.url in told.stdout and "servers" in told.stdout
    wrong = client.folder / "wrong"
    wrong.write_text("another\n", "utf-8")
    before = hosts.conf.read_bytes()
    refused = say("join", hosts.url, "--token-file", wrong)
    assert refused.returncode == 15 and "refuses the token" in refused.stderr
    assert hosts.conf.read_bytes() == before
    refused = say("server", hosts.url, "--token-file", client.folder / "token")
    assert refused.returncode == 2 and "not one for a server" in refused.stderr
    refused = say("server", hosts.url, "--token-file", hosts.servers[0].folder / "token")
    assert refused.returncode == 15 and "this machine has no such address" in refused.stderr
    words = (*TORCHBUILD, "cluster", "scheduler", "--listen", hosts.scheduler.address)
    taken = hosts.scheduler.run(*words, environ=path)
    assert taken.returncode == 15 and "another program listens there" in taken.stderr
    hosts.scheduler.kill()
    gone = say("status", "--json")
    assert gone.returncode == 15
    assert json.loads(gone.stdout)["clusters"][0]["problem"] == "Connection refused"
    assert count(client, hosts.url, path) == 0
