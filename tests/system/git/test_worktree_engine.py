"""Submodules that move, vanish, change their name or address; moves that were cut off; with a real git."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.capabilities import needs_git
from tests.support.gits import CONFIG, contents, repository, save, with_submodules
from torchbuild_tasks.errors import SourceError
from torchbuild_tasks.system.git import submodules, worktree
from torchbuild_tasks.system.git.checkout import InTheWay
from torchbuild_tasks.system.git.complete import complete
from torchbuild_tasks.system.git.fetch import Access
from torchbuild_tasks.system.git.run import Git
from torchbuild_tasks.system.git.transfer import Watch
from torchbuild_tasks.values import replace

pytestmark = [pytest.mark.integration, needs_git]

OUTER = "third_party/outer"


class Trees:
    """A checkout with submodules at two commits, and a worktree of it at the first."""

    def __init__(self, folder: Path, model: tuple[Git, str, str]) -> None:
        git, self.first, self.second = model
        self.git, self.servers = Git(folder=folder / "main", config=CONFIG), git.folder.parent / "servers"
        self.folder = folder / "beside"
        worktree.add(self.git, self.folder, self.first)
        self.tree = Git(folder=self.folder, config=CONFIG)

    def commit(self, message: str) -> str:
        """Commit what was changed in the main checkout."""
        return save(self.git, message)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> tuple[Git, str, str]:
    """Made once; its servers are only read."""
    return with_submodules(tmp_path_factory.mktemp("model"))


@pytest.fixture
def trees(tmp_path: Path, model: tuple[Git, str, str]) -> Trees:
    shutil.copytree(model[0].folder, tmp_path / "main", symlinks=True)
    return Trees(tmp_path, model)


@pytest.fixture
def served(tmp_path: Path) -> Trees:
    """With servers of its own."""
    return Trees(tmp_path, with_submodules(tmp_path))


def way(git: Git) -> Access:
    return Access(config=git.config, watch=Watch(tree=str(git.folder)))


def bring_all(git: Git) -> None:
    complete(git, way(git), lambda top: True)


def test_a_worktree_gets_what_it_needs_and_not_what_the_main_checkout_happens_to_have(
    trees: Trees, tmp_path: Path
) -> None:
    """As third_party/nccl/nccl of 2.x: setup.py insists on it, and an earlier `source get` left it out."""
    shutil.rmtree(trees.git.folder / OUTER)
    (trees.git.folder / OUTER).mkdir()
    asked = []

    def needed(root: Path) -> Callable[[str], bool]:
        asked.append(root)
        return lambda top: top == OUTER

    plan = replace(way(trees.git), needed=needed)
    worktree.add(trees.git, tmp_path / "planned", trees.second, plan)
    assert asked == [(tmp_path / "planned").resolve()]
    tops = [
        module.top for module in submodules.walk(Git(folder=asked[0], config=CONFIG)) if module.is_present
    ]
    assert tops == [OUTER]


def test_objects_are_linked_and_not_copied(trees: Trees) -> None:
    packs = [
        path
        for path in (trees.git.folder / ".git/worktrees/beside/modules").rglob("objects/*/*")
        if path.is_file()
    ]
    assert packs
    assert all(path.stat().st_nlink > 1 for path in packs)


def test_a_part_of_a_history_is_not_taken_for_a_complete_one(trees: Trees, tmp_path: Path) -> None:
    store = trees.git.folder / OUTER
    shutil.rmtree(store / "third_party")
    (store / ".git").unlink()
    shutil.rmtree(store)
    shutil.rmtree(trees.git.folder / ".git/modules" / OUTER)
    trees.git.run("submodule", "--quiet", "update", "--init", "--depth=1", OUTER)
    other = tmp_path / "other"
    worktree.add(trees.git, other, trees.second)
    Git(folder=other / OUTER).run("fsck", "--strict")
    assert Git(folder=other / OUTER).output("rev-parse", "--is-shallow-repository") == "true"


def test_a_submodule_that_became_plain_files_and_back(trees: Trees) -> None:
    trees.git.run("rm", "--quiet", "--force", OUTER)
    folder = trees.git.folder / OUTER
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "third_party").mkdir(parents=True)
    (folder / "outer.txt").write_text("vendored", "utf-8")
    vendored = trees.commit("vendored")
    (trees.folder / OUTER / "mine").write_text("mine", "utf-8")
    worktree.switch(trees.tree, vendored)
    assert (trees.folder / OUTER / "outer.txt").read_text("utf-8") == "vendored"
    assert not (trees.folder / OUTER / ".git").exists()
    worktree.switch(trees.tree, trees.first)
    assert contents(trees.folder)[f"{OUTER}/outer.txt"] == "1"
    assert (trees.folder / OUTER / "mine").read_text("utf-8") == "mine"


def test_a_submodule_that_moved_to_another_path(trees: Trees) -> None:
    trees.git.run("mv", OUTER, "third_party/elsewhere")
    moved = trees.commit("moved")
    worktree.switch(trees.tree, moved)
    found = contents(trees.folder)
    assert found["third_party/elsewhere/outer.txt"] == "2"
    assert found["third_party/elsewhere/third_party/inner/inner.txt"] == "2"
    assert not (trees.folder / OUTER).exists()
    worktree.switch(trees.tree, trees.first)
    assert contents(trees.folder)[f"{OUTER}/third_party/inner/inner.txt"] == "1"
    assert not (trees.folder / "third_party/elsewhere").exists()


def test_another_project_of_another_name_at_the_same_path(trees: Trees, tmp_path: Path) -> None:
    fork = repository(tmp_path / "fork", fork__txt="fork")
    trees.git.run("rm", "--quiet", "--force", OUTER)
    shutil.rmtree(trees.git.folder / OUTER, ignore_errors=True)
    trees.git.run("submodule", "--quiet", "add", "--name", "fork", str(fork.folder), OUTER)
    forked = trees.commit("forked")
    worktree.switch(trees.tree, forked)
    assert [name for name in contents(trees.folder) if name.startswith(OUTER)] == [f"{OUTER}/fork.txt"]


def test_an_address_of_old_is_not_the_last_word(served: Trees, tmp_path: Path) -> None:
    """The settings of a checkout keep the address that was true when it was cloned."""
    new = served.servers / "outer-moved"
    shutil.copytree(served.servers / "outer", new)
    latest = save(Git(folder=new, config=CONFIG), "three", outer__txt="3")
    other = repository(served.servers / "unrelated", text__txt="1")
    shutil.rmtree(served.servers / "outer")
    shutil.copytree(other.folder, served.servers / "outer")
    served.git.run("config", "--file", ".gitmodules", f"submodule.{OUTER}.url", str(new))
    served.git.run("update-index", "--cacheinfo", f"160000,{latest},{OUTER}")
    served.git.run("add", ".gitmodules")
    served.git.run("commit", "--quiet", "-m", "three")
    before = (served.git.folder / ".git/config").read_bytes()
    worktree.switch(served.tree, served.git.run("rev-parse", "HEAD"))
    assert contents(served.folder)[f"{OUTER}/outer.txt"] == "3"
    assert (served.git.folder / ".git/config").read_bytes() == before


def test_what_git_ignores_is_not_overwritten(trees: Trees) -> None:
    (trees.git.folder / "build").mkdir()
    (trees.git.folder / "build/kept.txt").write_text("theirs", "utf-8")
    trees.git.run("add", "--force", "build/kept.txt")
    third = trees.commit("three")
    (trees.folder / "build").mkdir()
    mine = trees.folder / "build/kept.txt"
    mine.write_text("mine", "utf-8")
    with pytest.raises(SourceError, match="has changes") as raised:
        worktree.switch(trees.tree, third)
    assert raised.value.looked == ("build/kept.txt",)
    with pytest.raises(InTheWay):
        submodules.move(trees.tree, third, "x", way(trees.tree).watch)
    assert mine.read_text("utf-8") == "mine"


def test_a_switch_that_died_within_a_file_is_finished(trees: Trees) -> None:
    """As SIGKILL leaves it: locks, a file that is half written, one that is gone, submodules half way."""
    own = Path(trees.tree.run("rev-parse", "--absolute-git-dir"))
    (own / "torchbuild-switch.json").write_text(f'{{"from": "{trees.first}", "to": "{trees.second}"}}')
    (own / "source.working").write_text("", "utf-8")
    (own / "index.lock").write_text("", "utf-8")
    (trees.folder / "file.txt").unlink()
    (trees.folder / "new.txt").write_text("", "utf-8")
    (trees.folder / OUTER / "outer.txt").write_text("2", "utf-8")
    (trees.folder / OUTER / "third_party/inner/inner.txt").unlink()
    worktree.switch(trees.tree, trees.second)
    assert contents(trees.folder) == contents(trees.git.folder)
    assert not trees.tree.run("status", "--porcelain")


def test_a_submodule_that_vanishes_with_a_change_in_it_stays(trees: Trees) -> None:
    git = trees.git
    late = git.folder / "third_party/late"
    (late / "late.txt").write_text("mine", "utf-8")
    moved = submodules.move(git, trees.first, "x", way(git).watch)
    assert moved.rc == 0
    assert (late / "late.txt").read_text("utf-8") == "mine"
    Git(folder=late).run("checkout", "--quiet", "late.txt")
    submodules.move(git, trees.second, "x", way(git).watch)
    submodules.move(git, trees.first, "x", way(git).watch)
    assert not late.exists()
    submodules.move(git, trees.second, "x", way(git).watch)
    bring_all(git)
    assert (late / "late.txt").read_text("utf-8") == "1"


def test_what_cannot_be_had_is_named_and_the_others_are_there(
    served: Trees, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torchbuild_tasks.system.git.complete._WAITS", ())
    git = served.git
    shutil.rmtree(git.folder / "third_party/late")
    shutil.rmtree(git.folder / ".git/modules/third_party/late")
    (served.servers / "late").rename(served.servers / "gone")
    other = tmp_path / "other"
    worktree.add(git, other, served.first)  # needs none of it
    late = Git(folder=other, config=CONFIG)
    late.run("checkout", "--quiet", "--detach", served.second)
    with pytest.raises(SourceError, match="1 submodule of .* could not be fetched") as raised:
        bring_all(late)
    assert raised.value.looked[0].startswith("third_party/late from")
    assert (other / OUTER / "outer.txt").read_text("utf-8") == "2"
    (served.servers / "gone").rename(served.servers / "late")
    bring_all(late)
    assert os.path.lexists(other / "third_party/late/late.txt")


def test_the_ref_that_a_killed_run_did_not_write_is_written(trees: Trees) -> None:
    outer = Git(folder=trees.folder / OUTER, config=CONFIG)
    head = outer.run("rev-parse", "HEAD")
    outer.run("update-ref", "-d", "refs/torchbuild/commit")
    bring_all(trees.tree)
    assert outer.output("rev-parse", "refs/torchbuild/commit") == head


def test_a_repository_that_the_users_git_fetched_gets_no_ref_of_ours(trees: Trees) -> None:
    outer = Git(folder=trees.git.folder / OUTER, config=CONFIG)
    refs = outer.output("for-each-ref")
    assert refs
    bring_all(trees.git)
    assert outer.output("for-each-ref") == refs


def test_objects_that_a_killed_run_linked_in_part_are_completed(trees: Trees, tmp_path: Path) -> None:
    """The commit is there and its files are not."""
    worktree.switch(trees.tree, trees.second)
    late = trees.folder / "third_party/late"
    store = Path(Git(folder=late).run("rev-parse", "--absolute-git-dir"))
    tree, commit = (Git(folder=late).run("rev-parse", name) for name in ("HEAD^{tree}", "HEAD"))
    shutil.rmtree(late)
    for name in ("index", "refs/torchbuild/commit"):
        (store / name).unlink()
    (store / "HEAD").write_text("ref: refs/heads/none\n", "utf-8")
    (store / f"objects/{tree[:2]}/{tree[2:]}").unlink()
    assert Git(folder=store, bare=True).has(commit)
    complete(trees.tree, way(trees.tree), lambda top: True, main=trees.git)
    assert (late / "late.txt").read_text("utf-8") == "1"


def test_a_checkout_that_borrows_itself_is_not_linked_in_part(trees: Trees, tmp_path: Path) -> None:
    """As `git clone --reference` makes it: the commit lies here, its files elsewhere."""
    store = trees.git.folder / ".git/modules/third_party/late"
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(store / "objects", elsewhere)
    commit = Git(folder=trees.git.folder / "third_party/late").run("rev-parse", "HEAD")
    for path in [path for path in (store / "objects").rglob("*") if path.is_file()]:
        if path.name != commit[2:]:
            path.unlink()
    (store / "objects/info/alternates").write_text(f"{elsewhere}\n", "utf-8")
    other = tmp_path / "other"
    worktree.add(trees.git, other, trees.second)
    shutil.rmtree(elsewhere)
    Git(folder=other / "third_party/late").run("fsck", "--strict")
    assert (other / "third_party/late/late.txt").read_text("utf-8") == "1"


def test_a_commit_of_the_users_is_kept_and_ours_are_not(trees: Trees) -> None:
    git = Git(folder=trees.folder / OUTER, config=CONFIG)
    mine = save(git, "mine", mine__txt="mine")
    bring_all(trees.tree)
    kept = ("for-each-ref", "--format=%(objectname)", "refs/torchbuild/kept")
    assert git.run(*kept) == mine
    worktree.switch(trees.tree, trees.second)
    worktree.switch(trees.tree, trees.first)
    assert git.run(*kept) == mine
