"""The fix for missing submodules is followed to the letter, and then none is missing."""

from __future__ import annotations

import json
import shlex
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import git_servers as gits
from tests.support.capabilities import needs_git
from tests.support.driver import torchbuild
from tests.support.git_servers import MODULES, TAG, GitServer, git
from torchbuild_tasks.features.source.get import URL

pytestmark = [pytest.mark.integration, needs_git]

KINDS = ("clone", "archive", "archive in git")
LOG = "Could not find any of CMakeLists.txt, LICENSE in /pt/third_party/one\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitServer]:
    with GitServer(gits.publish(tmp_path_factory.mktemp("published") / "root")) as server:
        yield server


@pytest.fixture
def environ(server: GitServer, tmp_path: Path) -> dict[str, str]:
    """PyTorch's repositories are the small ones, as git's settings say."""
    settings = tmp_path / "gitconfig"
    here, there = server.url.removesuffix("pytorch.git"), URL.removesuffix("pytorch.git")
    settings.write_text(f'[url "{here}"]\n\tinsteadOf = {there}\n', "utf-8")
    return {"GIT_CONFIG_GLOBAL": str(settings), "TORCHBUILD_CACHE": str(tmp_path / "cache")}


def lay(server: GitServer, kind: str, root: Path) -> Path:
    """Lay out the first release without its submodules."""
    if kind == "clone":
        git(root.parent, "clone", "--quiet", "--branch", TAG, server.url, str(root))
        return root
    packed = server.root / "pytorch.git"
    git(packed, "archive", "--output", str(root.with_suffix(".zip")), TAG)
    with zipfile.ZipFile(root.with_suffix(".zip")) as archive:
        archive.extractall(root)
    if kind == "archive in git":
        git(root, "init", "--quiet")
        git(root, "add", "--all")
        git(root, "commit", "--quiet", "--message", "unpacked")
    return root


def missing(root: Path, environ: dict[str, str]) -> list[dict[str, str]]:
    """The plan's finding on submodules."""
    done = torchbuild("plan", "--json", "--source", root, environ=environ)
    findings = json.loads(done.out)["findings"]
    return [each for each in findings if each["id"] == "submodules" and each["status"] == "error"]


def follow(fix: str, environ: dict[str, str]) -> Path:
    """Run the command of a fix; where the sources are then."""
    text = fix[fix.index("torchbuild ") :].partition("; ")[0]
    command = shlex.split(text, posix=sys.platform != "win32")
    program, *words = (word.strip('"') for word in command)
    assert program == "torchbuild"
    done = torchbuild(*words, environ=environ)
    assert done.code == 0, done.err
    return Path(words[words.index("--source") + 1])


@pytest.mark.parametrize("kind", [*KINDS[:2], pytest.param(KINDS[2], marks=pytest.mark.slow)])
def test_the_fix_of_the_plan_leads_out(
    server: GitServer, environ: dict[str, str], tmp_path: Path, kind: str
) -> None:
    root = lay(server, kind, tmp_path / "my pt")
    (finding,) = missing(root, environ)
    assert "third_party/one" in finding["text"]
    status = torchbuild("source", "status", "--source", root, environ=environ).out
    assert "third_party/one: missing" in status
    assert f"-> {finding['fix']}" in status
    there = follow(finding["fix"], environ)
    assert missing(there, environ) == []
    assert all((there / path / "payload.bin").is_file() for path in MODULES)
    assert there == root or (root / "third_party/one/payload.bin").exists() is False


def test_the_command_of_a_diagnosis_leads_out(
    server: GitServer, environ: dict[str, str], tmp_path: Path
) -> None:
    root = lay(server, "archive", tmp_path / "pt")
    (tmp_path / "log.txt").write_text(LOG, "utf-8")
    done = torchbuild("diagnose", tmp_path / "log.txt", "--json", "--source", root, environ=environ)
    told = json.loads(done.out)["diagnoses"][0]
    assert told["id"] == "submodule-missing"
    there = follow(told["command"], environ)
    assert missing(there, environ) == []
