"""A clone of one ref of a real repository: complete or absent."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.capabilities import needs_git
from torchbuild_tasks.errors import SourceError
from torchbuild_tasks.features.companions.act import clone_source
from torchbuild_tasks.system.files import UNPACKING, temporary_name
from torchbuild_tasks.system.git.run import Git

pytestmark = [pytest.mark.integration, needs_git]


def git(folder: Path, *words: str) -> str:
    mine = ("-c", "user.name=x", "-c", "user.email=x@y", "-c", "protocol.file.allow=always")
    argv = ["git", *mine, "-C", str(folder), *words]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def origin(tmp_path: Path) -> Path:
    """A repository with a release, and a branch that has gone on."""
    folder = tmp_path / "origin"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    for version in ("0.28.0", "0.29.0"):
        (folder / "version.txt").write_text(version, "utf-8")
        git(folder, "add", ".")
        git(folder, "commit", "-q", "-m", version)
        if version == "0.28.0":
            git(folder, "tag", "v0.28.0")
    return folder


def clone(origin: Path, ref: str, **changes: bool) -> Path:
    folder = origin.parent / "companions" / f"torchvision-{ref.replace('/', '-')}"
    offline = changes.get("offline", False)
    clone_source(
        Git(folder=folder), origin.as_uri(), ref, offline=offline, say=lambda text: None, ways="Ask."
    )
    return folder


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.parent.iterdir())


@pytest.mark.parametrize(("ref", "version"), [("v0.28.0", "0.28.0"), ("main", "0.29.0")])
def test_just_that_ref_is_cloned(origin: Path, ref: str, version: str) -> None:
    folder = clone(origin, ref)
    assert (folder / "version.txt").read_text("utf-8") == version
    assert git(folder, "rev-list", "--count", "HEAD") == "1"
    assert names(folder) == [folder.name]


def test_a_mirror_is_used_instead(origin: Path) -> None:
    folder = origin.parent / "companions" / "torchvision-main"
    there = Git(folder=folder, config=(f"url.{origin.as_uri()}.insteadOf=https://nowhere.invalid/vision",))
    clone_source(
        there, "https://nowhere.invalid/vision", "main", offline=False, say=lambda text: None, ways="Ask."
    )
    assert (folder / "version.txt").read_text("utf-8") == "0.29.0"


def test_a_clone_that_is_there_is_kept_as_it_is(origin: Path) -> None:
    folder = clone(origin, "main")
    (folder / "mine.txt").write_text("an edit", "utf-8")
    assert clone(origin, "main", offline=True) == folder
    assert (folder / "mine.txt").exists()


def test_a_ref_that_does_not_exist_is_an_error_and_never_the_default_branch(origin: Path) -> None:
    with pytest.raises(SourceError, match=r"v9 of .* could not be fetched") as caught:
        clone(origin, "v9")
    assert any("v9" in line for line in caught.value.looked)
    assert "Ask." in caught.value.next_step
    assert list((origin.parent / "companions").iterdir()) == []


def test_offline_contacts_no_server(origin: Path) -> None:
    with pytest.raises(SourceError, match="--offline prevents downloading it"):
        clone(origin, "main", offline=True)


def test_what_a_killed_clone_left_is_cleared_away(origin: Path) -> None:
    folder = origin.parent / "companions" / "torchvision-main"
    ended = subprocess.Popen(["git", "--version"], stdout=subprocess.DEVNULL)
    ended.wait()
    for pid in (os.getpid(), ended.pid):
        left = temporary_name(folder, UNPACKING).with_name(f".{folder.name}.{pid}.{UNPACKING}")
        (left / ".git").mkdir(parents=True)
    assert clone(origin, "main") == folder
    assert names(folder) == [folder.name]


def test_its_submodules_come_along_by_addresses_that_count_from_it(origin: Path) -> None:
    inner = origin.parent / "inner"
    inner.mkdir()
    git(inner, "init", "-q", "-b", "main")
    (inner / "inner.txt").write_text("1", "utf-8")
    git(inner, "add", ".")
    git(inner, "commit", "-q", "-m", "one")
    git(origin, "submodule", "--quiet", "add", inner.as_uri(), "third_party/inner")
    git(origin, "config", "--file", ".gitmodules", "submodule.third_party/inner.url", "../inner")
    git(origin, "commit", "-q", "-a", "-m", "with inner")
    folder = clone(origin, "main")
    assert (folder / "third_party/inner/inner.txt").read_text("utf-8") == "1"
    assert git(folder, "submodule", "status").startswith(git(inner, "rev-parse", "HEAD"))
