"""The compiler cache in a full build of the sample: two machines, a secret, a server that never starts."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.caches import needs_redis, redis
from tests.support.capabilities import has, needs_linux_compiler
from tests.support.driver import Run, environment, torchbuild
from tests.support.sample import materialise

pytestmark = [pytest.mark.integration, needs_linux_compiler]

SECRET = "s3cr3t-of-redis"


class Machine:
    """A home, a checkout and a cache folder of its own, with sccache on PATH."""

    def __init__(self, folder: Path, python: Path, programs: Path) -> None:
        self.folder, self.python = folder, python
        self.tree = materialise(folder / "minitorch")
        path = f"{programs}{os.pathsep}{environment()['PATH']}"
        self.environ = {"HOME": str(folder / "home"), "PATH": path}

    def __call__(self, verb: str, *words: str) -> Run:
        place = ("--source", str(self.tree), "--cache-dir", str(self.folder / "cache"))
        return torchbuild(verb, *words, *place, environ=self.environ)

    def build(self, *words: str) -> Run:
        done = self("build", "--python", str(self.python), "--yes", *words)
        assert done.code == 0, done.out + done.err
        return done

    @property
    def record(self) -> Any:
        return json.loads((self.tree / "build/torchbuild-manifest.json").read_text("utf-8"))

    def written(self) -> Iterator[tuple[Path, bytes]]:
        """Every file that may be handed on: what the tool wrote, the env files, CMake's cache."""
        for folder in (self.tree / ".torchbuild", self.folder / "home"):
            yield from ((path, path.read_bytes()) for path in folder.rglob("*") if path.is_file())
        loose = (*self.tree.glob("env_set.*"), *(self.tree / "build").glob("*.*"))
        yield from ((path, path.read_bytes()) for path in loose if path.is_file())


@pytest.fixture
def programs(sccache: str) -> Path:
    return Path(sccache).parent


# Two compiles ask a server that ends before it has answered, as if killed: the first of the file with
# which CMake looks for OpenMP, and the first with OpenMP of one of torch's.
LOSES = """#!{python}
import os, socket, subprocess, sys
lost = [word for word in sys.argv if word.endswith(("OpenMPTryFlag.cpp", "matmul.cpp"))]
place = {folder!r} + "/" + os.path.basename((lost or ["none"])[0])[0]  # a short name: it is a socket
if lost and "-fopenmp" in sys.argv and not os.path.exists(place):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(place)
        server.listen()
        environ = os.environ | {{"SCCACHE_SERVER_UDS": place}}
        client = subprocess.Popen([{sccache!r}, *sys.argv[1:]], env=environ)
        connection, _ = server.accept()
        connection.recv(1)
        connection.close()
        sys.exit(client.wait())
os.execv({sccache!r}, [{sccache!r}, *sys.argv[1:]])
"""


class First(NamedTuple):
    """The machine that compiles, with an sccache that loses its server twice, and what its build said."""

    machine: Machine
    words: tuple[str, str]
    said: str


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory, target: Path, sccache: str) -> Iterator[First]:
    """Build with a shared cache where there is a Redis, else with a cache of its own."""
    folder = tmp_path_factory.mktemp("first")
    launcher = folder / "bin" / "sccache"
    launcher.parent.mkdir()
    launcher.write_text(LOSES.format(python=sys.executable, folder=str(folder), sccache=sccache), "utf-8")
    launcher.chmod(0o755)
    machine = Machine(folder / "one", target, launcher.parent)
    with contextlib.ExitStack() as open_servers:
        words = ("--cache", "sccache")
        if has("redis-server"):
            port, _ = open_servers.enter_context(redis(SECRET))
            words = ("--cache", f"redis://:{SECRET}@127.0.0.1:{port}")
        yield First(machine, words, machine.build(*words).err)


@pytest.mark.slow
def test_a_compile_that_loses_its_server_is_made_again(first: First) -> None:
    """First one of CMake's checks, which fails without a word: OpenMP would be left out."""
    assert first.said.count("server was lost (sccache: caused by: Failed to") == 2
    assert "time 2 of 3" in first.said
    cache = (first.machine.tree / "build/CMakeCache.txt").read_text("utf-8")
    assert "OpenMP_CXX_FLAGS:STRING=-fopenmp" in cache


@needs_redis
@pytest.mark.slow
def test_a_second_machine_builds_from_the_shared_cache(
    first: First, tmp_path: Path, target: Path, programs: Path
) -> None:
    place = first.words[1].partition("@")[2]
    assert place in next(line for line in first.said.splitlines() if "shared cache: " in line)
    (report,) = first.machine.record["caches"]
    assert (report["tool"], report["errors"]) == ("sccache", 0)
    assert sum(report["misses"].values()) > 20

    second = Machine(tmp_path / "two", target, programs)
    done = second.build(*first.words)
    (report,) = second.record["caches"]
    hits, misses = (sum(report[name].values()) for name in ("hits", "misses"))
    assert hits >= 0.95 * (hits + misses) and hits > 20
    assert report["shared"] > 0
    for machine in (first.machine, second):
        for path, data in machine.written():
            assert SECRET.encode() not in data, path
    assert SECRET not in first.said + done.out + done.err

    stats = json.loads(second("cache", "stats", "--cache", "sccache", "--json").out)
    assert stats["caches"][0]["made"] is True
    emptied = second("cache", "clear", "--cache", "sccache", "--yes")
    assert emptied.code == 0, emptied.err
    assert not any((second.folder / "cache" / "sccache").iterdir())


@pytest.mark.slow
def test_a_shared_cache_that_is_not_there_costs_one_line(
    tmp_path: Path, target: Path, programs: Path
) -> None:
    machine = Machine(tmp_path, target, programs)
    done = machine.build("--cache", "redis://127.0.0.1:1")
    assert "is left out of this build" in done.err
    assert machine.record["caches"][0]["tool"] == "sccache"
    again = machine.build("--cache", "redis://127.0.0.1:1")
    assert "Up to date" in again.err
    assert "left out" not in again.err, "nothing is started when there is nothing to compile"


@pytest.mark.slow
def test_a_server_that_never_starts_is_left_out_for_good(tmp_path: Path, target: Path) -> None:
    """The launcher is taken out of CMake too, and the next plan keeps the tree as it was built."""
    programs = tmp_path / "bin"
    programs.mkdir()
    fake = programs / "sccache"
    fake.write_text('#!/bin/sh\n[ "$1" = --version ] && echo "sccache 0.16.0" && exit\nexit 9\n', "utf-8")
    fake.chmod(0o755)
    machine = Machine(tmp_path / "one", target, programs)
    done = machine.build("--cache", "sccache")
    assert "goes on without sccache" in done.err
    assert "sccache" not in (machine.tree / "build/build.ninja").read_text("utf-8")
    plan = machine("plan", "--python", str(target), "--json").json
    assert plan["freshness"]["needs"] == "nothing", plan["freshness"]
    assert plan["cache"] is None
