"""What a server needs: found out before it is started, each miss with what to do about it."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from tests.support.capabilities import needs_linux_compiler, needs_shebang
from tests.support.hosts import needs_bubblewrap, needs_hosts
from torchbuild_tasks.features.cluster import server
from torchbuild_tasks.features.cluster.server import dist_next_to, version, why_not_listen

pytestmark = [pytest.mark.integration, needs_shebang]


def program(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n", "utf-8")
    path.chmod(0o755)
    return path


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return tmp_path / "bin"


def problems(folder: Path) -> str:
    return "; ".join(text for text, _ in server.find_sandbox(folder).problems)


def test_no_bubblewrap(tmp_path: Path, path: Path) -> None:
    (found,) = server.find_sandbox(tmp_path).problems
    assert "is not on PATH" in found[0] and "package bubblewrap" in found[1]


@pytest.mark.parametrize(
    ("text", "says"),
    [("echo bubblewrap 0.2.1", "is version 0.2.1"), ("exit 1", "does not run"), ("true", "does not run")],
)
def test_a_bubblewrap_that_is_no_use(tmp_path: Path, path: Path, text: str, says: str) -> None:
    program(path, "bwrap", text)
    assert says in problems(tmp_path)


def test_not_root(tmp_path: Path, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(path, "bwrap", "echo bubblewrap 0.8.0")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert problems(tmp_path) == "a server has to run as root, for it mounts and isolates"


def test_no_overlay(tmp_path: Path, path: Path) -> None:
    program(path, "bwrap", "echo bubblewrap 0.8.0")
    program(path, "unshare", "echo 'mount: wrong fs type' >&2; exit 32")
    assert problems(tmp_path) == f"an overlay cannot be mounted in {tmp_path}: mount: wrong fs type"


@needs_hosts
@needs_bubblewrap
@needs_linux_compiler
def test_this_machine(tmp_path: Path) -> None:
    found = server.find_sandbox(tmp_path / "space")
    assert found.problems == () and found.bubblewrap and found.version
    assert list((tmp_path / "space").iterdir()) == []


def test_where_one_can_listen() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = int(taken.getsockname()[1])
        assert why_not_listen("127.0.0.1", port) == "another program listens there"
    assert why_not_listen("127.0.0.1", port) == ""
    assert why_not_listen("203.0.113.7", port) == "this machine has no such address"


def test_the_program_next_to_another(tmp_path: Path) -> None:
    sccache = program(tmp_path, "sccache", "true")
    assert dist_next_to(str(sccache)) == dist_next_to("") == ""
    dist = program(tmp_path, "sccache-dist", "echo sccache-dist 0.16.0")
    assert dist_next_to(str(sccache)) == str(dist)
    assert version(str(dist)) == "0.16.0"
    assert version(str(tmp_path / "none")) == ""
