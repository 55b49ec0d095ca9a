"""Submodules whose names or addresses would lead out of the repository are refused."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.capabilities import needs_git, needs_symlinks
from tests.support.git_servers import git as real_git
from torchbuild_tasks.errors import SourceError
from torchbuild_tasks.system.git.complete import complete
from torchbuild_tasks.system.git.fetch import Access
from torchbuild_tasks.system.git.run import Git
from torchbuild_tasks.system.git.submodules import modules
from torchbuild_tasks.system.git.transfer import Watch

pytestmark = [pytest.mark.integration, needs_git]


def repository(folder: Path, name: str, path: str) -> Git:
    """A repository whose .gitmodules and index name one submodule."""
    real_git(folder, "init", "--quiet")
    (folder / ".gitmodules").write_text(f'[submodule "{name}"]\n\tpath = {path}\n\turl = ../x.git\n')
    entry = f"160000 {'a' * 40} 0\t{path}\n".encode()
    subprocess.run(["git", "update-index", "--add", "--index-info"], cwd=folder, input=entry, check=True)
    return Git(folder=folder)


@pytest.mark.parametrize(
    "name", ["../../evil", "a/../b", "-x", "a/.git/b", "C:x", "a//b", "a/.GIT/b", "a/.git./b", "git~1"]
)
def test_names_that_leave_their_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(SourceError, match="not a safe name"):
        modules(repository(tmp_path, name, "third_party/x"))


@needs_symlinks
@pytest.mark.parametrize("link", ["third_party", "third_party/x", ".git/modules", ".git/modules/some"])
def test_a_link_that_leads_out_of_the_checkout(tmp_path: Path, link: str) -> None:
    """What lay behind it was emptied, or got the files of the submodule."""
    (tmp_path / "mine/x").mkdir(parents=True)
    (tmp_path / "co").mkdir()
    git = repository(tmp_path / "co", "some/name", "third_party/x")
    (git.folder / link).parent.mkdir(exist_ok=True)
    (git.folder / link).symlink_to(tmp_path / "mine")
    with pytest.raises(SourceError, match=r"points to .*mine"):
        modules(git)


def test_a_name_may_differ_from_the_path(tmp_path: Path) -> None:
    (module,) = modules(repository(tmp_path, "some/name", "third_party/x"), "outer/")
    assert (module.top, module.name, module.commit) == ("outer/third_party/x", "some/name", "a" * 40)
    assert module.repository == tmp_path / ".git/modules/some/name"


def test_the_users_own_settings_go_before_the_file(tmp_path: Path) -> None:
    git = repository(tmp_path, "x", "third_party/x")
    git.run("config", "submodule.x.url", "https://example.org/mine.git")
    assert modules(git)[0].url == "https://example.org/mine.git"
    git.run("config", "submodule.x.update", "none")
    assert modules(git) == ()


@pytest.mark.parametrize(
    ("address", "foreign"),
    [
        ("/home/me/private", True),
        ("file:///home/me/private", True),
        ("FILE:/x", True),
        ("C:\\\\private", True),
        ("~/private", True),
        ("../x.git", False),
        ("https://example.org/x.git", False),
        ("host:x.git", False),
    ],
)
def test_a_repository_names_no_place_on_this_machine(
    address: str, foreign: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git = repository(tmp_path, "x", "third_party/x")
    listed = tmp_path / ".gitmodules"
    listed.write_text(listed.read_text("utf-8").replace("../x.git", address), "utf-8")
    git.run("config", "protocol.file.allow", "always")  # what the repository says counts for nothing
    assert modules(git)[0].foreign == foreign
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "protocol.file.allow")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "always")
    assert not modules(git)[0].foreign


def test_a_submodule_of_this_machine_is_not_fetched(tmp_path: Path) -> None:
    """Otherwise a checkout could copy private files of this machine (CVE-2022-39253)."""
    private = Git(folder=tmp_path / "private")
    private.folder.mkdir()
    real_git(private.folder, "init", "--quiet")
    (private.folder / "key").write_text("mine", "ascii")
    real_git(private.folder, "add", "-A")
    real_git(private.folder, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x")
    commit = private.run("rev-parse", "HEAD").strip()
    outer = tmp_path / "outer"
    outer.mkdir()
    git = repository(outer, "x", "third_party/x")
    listed = outer / ".gitmodules"
    listed.write_text(listed.read_text("utf-8").replace("../x.git", str(private.folder)), "utf-8")
    real_git(outer, "update-index", "--cacheinfo", f"160000,{commit},third_party/x")
    access = Access(config=(), mirrors=None, offline=False, watch=Watch(tree=str(outer)))
    with pytest.raises(SourceError, match="could not be fetched") as refused:
        complete(git, access, lambda path: True)
    assert "is a place on this machine" in refused.value.looked[0]
    assert not (outer / "third_party/x/key").exists()
