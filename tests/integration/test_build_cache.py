"""The compiler cache in a full build of the sample: two machines, a secret, a server that never starts."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.caches import needs_redis, redis
from tests.support.capabilities import needs_linux_compiler
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


@needs_redis
def test_a_second_machine_builds_from_the_shared_cache(tmp_path: Path, target: Path, programs: Path) -> None:
    with redis(SECRET) as (port, _):
        words = ("--cache", f"redis://:{SECRET}@127.0.0.1:{port}")
        first = Machine(tmp_path / "one", target, programs)
        done = first.build(*words)
        assert f"127.0.0.1:{port}" in next(x for x in done.err.splitlines() if "shared cache: " in x)
        (report,) = first.record["caches"]
        assert (report["tool"], report["hits"], report["errors"]) == ("sccache", {}, 0)
        compiled = sum(report["misses"].values())
        assert compiled > 20

        second = Machine(tmp_path / "two", target, programs)
        done = second.build(*words)
        (report,) = second.record["caches"]
        assert sum(report["hits"].values()) >= 0.95 * compiled
        assert report["shared"] > 0
    for machine in (first, second):
        for path, data in machine.written():
            assert SECRET.encode() not in data, path
    assert SECRET not in done.out + done.err

    stats = json.loads(second("cache", "stats", "--cache", "sccache", "--json").out)
    assert stats["caches"][0]["made"] is True
    emptied = second("cache", "clear", "--cache", "sccache", "--yes")
    assert emptied.code == 0, emptied.err
    assert not any((second.folder / "cache" / "sccache").iterdir())


# Two compiles ask a server that ends before it has answered, as if killed: the first of the file with
# which CMake looks for OpenMP, and the first with OpenMP of one of torch's. The others are those of every
# build, and come from its cache where there is ccache.
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
other = sys.argv[1:] and os.path.isfile(sys.argv[1]) and not lost
program = other and {ccache!r} or {sccache!r}
os.execv(program, [program, *sys.argv[1:]])
"""


def test_a_compile_that_loses_its_server_is_made_again(tmp_path: Path, target: Path, sccache: str) -> None:
    """First one of CMake's checks, which fails without a word: OpenMP would be left out."""
    programs = tmp_path / "bin"
    programs.mkdir()
    launcher = programs / "sccache"
    ccache = shutil.which("ccache", path=environment()["PATH"]) or ""
    words = {"python": sys.executable, "folder": str(tmp_path), "sccache": sccache, "ccache": ccache}
    launcher.write_text(LOSES.format(**words), "utf-8")
    launcher.chmod(0o755)
    machine = Machine(tmp_path / "one", target, programs)
    base = ("--set", f"CCACHE_BASEDIR={machine.tree}", "--set", "CCACHE_NOHASHDIR=true")
    done = machine.build("--cache", "sccache", *base)
    assert done.err.count("server was lost (sccache: caused by: Failed to") == 2
    assert "time 2 of 3" in done.err
    cache = (machine.tree / "build/CMakeCache.txt").read_text("utf-8")
    assert "OpenMP_CXX_FLAGS:STRING=-fopenmp" in cache


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
