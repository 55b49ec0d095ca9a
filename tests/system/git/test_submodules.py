"""Submodules whose names would lead out of the repository are refused."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.capabilities import needs_git
from tests.support.git_servers import git as real_git
from torchbuild_tasks.errors import SourceError
from torchbuild_tasks.system.git.run import Git
from torchbuild_tasks.system.git.submodules import modules

pytestmark = [pytest.mark.integration, needs_git]


def repository(folder: Path, name: str, path: str) -> Git:
    """A repository whose .gitmodules and index name one submodule."""
    real_git(folder, "init", "--quiet")
    (folder / ".gitmodules").write_text(f'[submodule "{name}"]\n\tpath = {path}\n\turl = ../x.git\n')
    entry = f"160000 {'a' * 40} 0\t{path}\n".encode()
    subprocess.run(["git", "update-index", "--add", "--index-info"], cwd=folder, input=entry, check=True)
    return Git(folder=folder)


@pytest.mark.parametrize("name", ["../../evil", "a/../b", "-x", "a/.git/b", "C:x", "a//b"])
def test_names_that_leave_their_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(SourceError, match="no safe name"):
        modules(repository(tmp_path, name, "third_party/x"))


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
