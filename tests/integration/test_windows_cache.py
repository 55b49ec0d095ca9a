"""sccache with compilations on Windows: its server at a port of its own, two checkouts, the end."""

from __future__ import annotations

import shutil
import socket
from pathlib import Path

import pytest

from tests.support.caches import clean, environ_for, ninja, objects, plan_for, project
from tests.support.capabilities import needs_clang, needs_cmd, needs_ninja
from torchbuild_tasks.errors import Interrupted
from torchbuild_tasks.features.cache.run import cache_running
from torchbuild_tasks.model import CacheReport

pytestmark = [pytest.mark.integration, needs_cmd, needs_clang, needs_ninja]

FILES = 2


def build(root: Path, program: str, folder: Path, said: list[str]) -> tuple[CacheReport, int]:
    """What the cache did, and the port at which its server was."""
    environ = environ_for("sccache", folder, root)
    plan = plan_for("sccache", program, folder)
    with cache_running(plan, "", environ, root, said.append) as running:
        done = ninja(root, running.environ)
        assert done.returncode == 0, done.stdout + done.stderr
    return running.reports[0], int(running.environ["SCCACHE_SERVER_PORT"])


def listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=2).close()
    except OSError:
        return False
    return True


def test_two_checkouts_share_and_no_server_is_left(sccache: str, tmp_path: Path) -> None:
    cxx, said = shutil.which("clang++") or "", list[str]()
    one, two = (project(tmp_path / name, sccache, FILES, cxx, heavy=True) for name in ("one", "two"))
    report, port = build(one, sccache, tmp_path / "cache", said)
    assert (report.hits, report.misses) == ({}, {"C/C++": FILES}), said
    assert not listens(port)
    for _ in range(2):
        report, _ = build(two, sccache, tmp_path / "cache", said)
        assert (report.hits, report.misses) == ({"C/C++": FILES}, {}), said
        clean(two)
    (two / "include" / "own.h").write_text("#define OWN 2\n", "utf-8")
    build(two, sccache, tmp_path / "cache", said)
    assert objects(two) != objects(one)


def test_an_interrupted_build_leaves_no_server(sccache: str, tmp_path: Path) -> None:
    root = project(tmp_path / "one", sccache, FILES, heavy=True)
    plan, environ = (
        plan_for("sccache", sccache, tmp_path / "cache"),
        environ_for("sccache", tmp_path / "cache", root),
    )
    said: list[str] = []
    with pytest.raises(Interrupted), cache_running(plan, "", environ, root, said.append) as running:
        port = int(running.environ["SCCACHE_SERVER_PORT"])
        assert listens(port)
        raise Interrupted("Ctrl-C")
    assert not listens(port)
