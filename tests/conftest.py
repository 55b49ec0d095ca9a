"""Shared test rules: unit tests cannot reach a subprocess, the network or the real home."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path
from typing import Any, NoReturn

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="also run the tests marked slow")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--slow"):
        return
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.skip(reason="slow; run with --slow"))


@pytest.fixture(autouse=True)
def locked_doors(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Give every test a home of its own; close the doors for all but integration tests."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    if request.node.get_closest_marker("integration"):
        return

    def locked(*args: Any, **kwargs: Any) -> NoReturn:
        raise AssertionError(f"a unit test reached the real machine: {args!r}")

    monkeypatch.setattr(subprocess.Popen, "__init__", locked)
    monkeypatch.setattr(socket.socket, "connect", locked)
