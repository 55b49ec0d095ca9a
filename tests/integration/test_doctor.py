"""The doctor on a real machine: a program that hangs, a checkout that can be put right, JSON for programs."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.support.capabilities import needs_git
from tests.support.driver import Run, torchbuild
from tests.support.sample import materialise

pytestmark = [pytest.mark.integration, needs_git]


def run(*words: str, **environ: str) -> Run:
    return torchbuild(*words, timeout=120, environ=environ)


def findings(said: Run) -> dict[str, Any]:
    found = said.json
    assert set(found) == {"verdict", "findings", "facts"}
    return {finding["id"]: finding for finding in found["findings"]}


# Leave to clone submodules from a folder, which git refuses otherwise.
FROM_FOLDERS = {
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "protocol.file.allow",
    "GIT_CONFIG_VALUE_0": "always",
}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The sample as a repository with an empty submodule and a wrong setting."""
    root = materialise(tmp_path / "pytorch", git=True)
    for words in (
        ("submodule", "deinit", "-f", "-q", "third_party/tinyfmt"),
        ("config", "core.autocrlf", "true"),
    ):
        subprocess.run(["git", "-C", str(root), *words], check=True)
    return root


def test_a_program_that_hangs_is_ended_and_named(tmp_path: Path, checkout: Path) -> None:
    if sys.platform == "win32":
        pytest.skip("no program that is a script here")
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("g++", "cmake"):
        (folder / name).write_text("#!/bin/sh\nexec sleep 1000\n", "utf-8")
        (folder / name).chmod(0o755)
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    found = findings(run("doctor", "--source", str(checkout), "--offline", "--json", PATH=path))
    assert found["probe"]["status"] == "warn"
    assert str(folder / "g++") in found["probe"]["text"]
    assert found["dns"]["status"] == "skipped"


@pytest.mark.skipif(sys.platform == "win32", reason="no setting of git is wrong there")
def test_nothing_is_put_right_unrequested_and_then_it_is(checkout: Path) -> None:
    words = ("doctor", "--source", str(checkout), "--offline")
    asked = run(*words, "--fix", **FROM_FOLDERS)
    assert "submodules: not done; the command would be" in asked.err
    before = findings(run(*words, "--json"))
    assert [before[id]["status"] for id in ("submodules", "git-autocrlf")] == ["error", "warn"]
    done = run(*words, "--fix", "--yes", **FROM_FOLDERS)
    assert "submodules: done" in done.err
    assert "git-autocrlf: done" in done.err
    after = findings(run(*words, "--json"))
    assert "git-autocrlf" not in after
    assert "submodules" not in after
    assert any((checkout / "third_party/tinyfmt").iterdir())


def test_a_report_comes_of_every_folder_and_is_planned_from(tmp_path: Path, checkout: Path) -> None:
    archive = tmp_path / "a.zip"
    said = run(
        "support", "--source", str(checkout), "--offline", "--out", str(archive), DEPLOY_TOKEN="Zq9xK3vT7n"
    )
    assert said.code == 0, said.err
    with zipfile.ZipFile(archive) as members:
        assert not [name for name in members.namelist() if b"Zq9xK3vT7n" in members.read(name)]
    planned = run("plan", "--facts", str(archive), "--json").json
    assert planned["source"].endswith("pytorch")
    (tmp_path / "torchbuild.toml").write_text("no = [toml", "utf-8")
    words = ("--config", str(tmp_path / "torchbuild.toml"), "--out", str(tmp_path / "b.zip"), "--offline")
    broken = run("support", "--source", str(tmp_path), *words)
    assert broken.code == 0, broken.err
    assert "could not be fetched" in broken.out
