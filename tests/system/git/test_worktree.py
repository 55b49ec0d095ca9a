"""Worktrees and their submodules, with a real git; also killed on the way."""

from __future__ import annotations

import random
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.capabilities import needs_git, needs_shebang, needs_signals, needs_symlinks
from tests.support.gits import CONFIG, contents, fatal_git, repository, save, with_submodules
from torchbuild_tasks.errors import SourceError
from torchbuild_tasks.system.git import worktree
from torchbuild_tasks.system.git.run import Git

pytestmark = [pytest.mark.integration, needs_git]

FIRST = {
    "file.txt": "1",
    "third_party/outer/outer.txt": "1",
    "third_party/outer/third_party/inner/inner.txt": "1",
}
SECOND = {
    "file.txt": "2",
    "new.txt": "2",
    "third_party/outer/outer.txt": "2",
    "third_party/outer/third_party/inner/inner.txt": "2",
    "third_party/late/late.txt": "1",
}


class Trees:
    """The checkout of `with_submodules`, its commits, and where a worktree of it goes."""

    def __init__(self, folder: Path, first: str, second: str) -> None:
        self.git, self.first, self.second = Git(folder=folder / "main", config=CONFIG), first, second
        self.folder = folder / "beside"
        self.tree = Git(folder=self.folder, config=CONFIG)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> tuple[Git, str, str]:
    """Made once; every test has a copy of the checkout."""
    return with_submodules(tmp_path_factory.mktemp("model"))


@pytest.fixture
def trees(tmp_path: Path, model: tuple[Git, str, str]) -> Trees:
    git, first, second = model
    shutil.copytree(git.folder, tmp_path / "main", symlinks=True)
    return Trees(tmp_path, first, second)


def test_a_worktree_has_its_submodules_at_its_own_commit(trees: Trees) -> None:
    worktree.add(trees.git, trees.folder, trees.first)
    assert contents(trees.folder) == FIRST
    assert contents(trees.git.folder) == SECOND
    assert [entry.state for entry in worktree.entries(trees.git)] == ["here"]
    assert not trees.tree.run("status", "--porcelain")


def test_submodules_come_from_the_main_checkout_without_a_network(tmp_path: Path) -> None:
    _, first, second = with_submodules(tmp_path)
    trees = Trees(tmp_path, first, second)
    address = Git(folder=trees.git.folder / "third_party/outer").run("config", "remote.origin.url")
    (tmp_path / "servers").rename(tmp_path / "gone")
    worktree.add(trees.git, trees.folder, trees.first)
    worktree.switch(trees.tree, trees.second)
    worktree.switch(trees.tree, trees.first)
    worktree.switch(trees.tree, trees.second)
    assert contents(trees.folder) == SECOND
    assert Git(folder=trees.folder / "third_party/outer").run("config", "remote.origin.url") == address


def test_the_users_configuration_is_left_alone(trees: Trees) -> None:
    before = (trees.git.folder / ".git/config").read_bytes()
    worktree.add(trees.git, trees.folder, trees.first)
    worktree.switch(trees.tree, trees.second)
    worktree.remove(trees.git, trees.folder)
    assert (trees.git.folder / ".git/config").read_bytes() == before


def test_a_worktree_outlives_the_submodules_that_it_came_from(trees: Trees) -> None:
    worktree.add(trees.git, trees.folder, trees.second)
    store = Git(folder=trees.git.folder / "third_party/outer", config=CONFIG)
    store.run("checkout", "--quiet", "--detach", "origin/main")
    store.run("reflog", "expire", "--expire=now", "--all")
    store.run("update-ref", "-d", "refs/remotes/origin/next")
    store.run("gc", "--quiet", "--prune=now")
    Git(folder=trees.folder / "third_party/outer").run("fsck", "--strict")


def test_a_submodule_that_the_main_checkout_left_out_is_left_out(trees: Trees) -> None:
    trees.git.run("submodule", "--quiet", "deinit", "--force", "third_party/late")
    worktree.add(trees.git, trees.folder, trees.second)
    assert not (trees.folder / "third_party/late/.git").exists()
    assert (trees.folder / "third_party/outer/.git").exists()


@needs_symlinks
def test_switching_between_a_link_and_the_folder_in_its_place(trees: Trees) -> None:
    """2.0 has `.jenkins -> .ci`, 1.10 has folders of these names."""
    main = trees.git.folder
    for name in ("new", "old"):
        (main / name).mkdir()
        (main / name / "build.sh").write_text(name, "utf-8")
    folders = save(trees.git, "two folders")
    shutil.rmtree(main / "old")
    (main / "old").symlink_to("new")
    link = save(trees.git, "a link")
    worktree.add(trees.git, trees.folder, link)
    worktree.switch(trees.tree, folders)
    assert (trees.folder / "old/build.sh").read_text("utf-8") == "old"
    worktree.switch(trees.tree, link)
    assert (trees.folder / "old/build.sh").read_text("utf-8") == "new"


@needs_symlinks
def test_a_link_of_the_users_in_the_place_of_a_folder_stays(trees: Trees) -> None:
    without = trees.git.run("rev-parse", "HEAD")
    (trees.git.folder / "folder").mkdir()
    folder = save(trees.git, "a folder", **{"folder/file__txt": "1"})
    worktree.add(trees.git, trees.folder, without)
    (trees.folder / "mine").mkdir()
    (trees.folder / "folder").symlink_to("mine")
    with pytest.raises(SourceError) as error:
        worktree.switch(trees.tree, folder)
    assert "folder" in error.value.looked
    assert (trees.folder / "folder").is_symlink()


def test_switching_takes_submodules_along_and_leaves_other_files(trees: Trees) -> None:
    worktree.add(trees.git, trees.folder, trees.second)
    for place in ("build", "third_party/late"):
        (trees.folder / place).mkdir(exist_ok=True)
        (trees.folder / place / "mine").write_text("mine", "utf-8")
    worktree.switch(trees.tree, trees.first)
    assert contents(trees.folder) == FIRST
    for place in ("build", "third_party/late"):
        assert (trees.folder / place / "mine").read_text("utf-8") == "mine"


def _edit(tree: Path) -> None:
    (tree / "file.txt").write_text("mine", "utf-8")


def _edit_nested(tree: Path) -> None:
    (tree / "third_party/outer/third_party/inner/inner.txt").write_text("mine", "utf-8")


def _stage(tree: Path) -> None:
    (tree / "file.txt").write_text("mine", "utf-8")
    Git(folder=tree).run("add", "file.txt")
    (tree / "file.txt").write_text("1", "utf-8")


def _commit_in_submodule(tree: Path) -> None:
    save(Git(folder=tree / "third_party/outer", config=CONFIG), "mine", outer__txt="mine")


def _add_in_the_way(tree: Path) -> None:
    (tree / "new.txt").write_text("mine", "utf-8")


@pytest.mark.parametrize("change", [_edit, _edit_nested, _stage, _commit_in_submodule, _add_in_the_way])
def test_a_changed_tree_is_neither_switched_nor_removed(trees: Trees, change: Callable[[Path], None]) -> None:
    worktree.add(trees.git, trees.folder, trees.first)
    change(trees.folder)
    before, head = contents(trees.folder), trees.tree.run("rev-parse", "HEAD")
    with pytest.raises(SourceError, match="has changes") as raised:
        worktree.switch(trees.tree, trees.second)
    assert raised.value.looked
    with pytest.raises(SourceError, match="would be lost"):
        worktree.remove(trees.git, trees.folder)
    assert contents(trees.folder) == before
    assert trees.tree.run("rev-parse", "HEAD") == head


def test_a_commit_that_nothing_else_has_is_not_removed(trees: Trees) -> None:
    worktree.add(trees.git, trees.folder, trees.first)
    save(trees.tree, "mine", file__txt="mine")
    with pytest.raises(SourceError, match="would be lost") as raised:
        worktree.remove(trees.git, trees.folder)
    assert "which no branch or tag has" in raised.value.looked[0]
    trees.tree.run("branch", "kept")
    worktree.remove(trees.git, trees.folder)
    assert not trees.folder.exists()


def test_removing_leaves_nothing_and_takes_what_was_built(trees: Trees) -> None:
    worktree.add(trees.git, trees.folder, trees.first)
    (trees.folder / "build").mkdir()
    (trees.folder / "build/object.o").write_text("", "utf-8")
    worktree.remove(trees.git, trees.folder)
    assert not trees.folder.exists()
    assert worktree.entries(trees.git) == ()
    assert trees.git.run("worktree", "list").count("\n") == 0
    assert contents(trees.git.folder) == SECOND


def test_what_was_removed_in_part_can_be_added_again(trees: Trees, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that is killed between the folder and git's own note of it."""
    worktree.add(trees.git, trees.folder, trees.first)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(worktree, "rename_and_remove", _stopped_removal)
        worktree.remove(trees.git, trees.folder)
    assert not trees.folder.exists()
    worktree.add(trees.git, trees.folder, trees.first)
    assert contents(trees.folder) == FIRST


def _stopped_removal(folder: Path) -> None:
    shutil.rmtree(folder)
    raise KeyboardInterrupt


def test_a_foreign_worktree_is_not_removed(trees: Trees) -> None:
    trees.git.run("worktree", "add", "--quiet", "--detach", str(trees.folder))
    with pytest.raises(SourceError, match="not made by torchbuild_tasks"):
        worktree.remove(trees.git, trees.folder)
    assert (trees.folder / "file.txt").exists()


def test_a_folder_with_something_in_it_is_refused(trees: Trees) -> None:
    trees.folder.mkdir()
    (trees.folder / "mine").write_text("mine", "utf-8")
    with pytest.raises(SourceError, match="is there already"):
        worktree.add(trees.git, trees.folder, trees.first)
    assert worktree.entries(trees.git) == ()


@pytest.mark.parametrize("ref", ["v9.9.9", "--force", "HEAD~99"])
def test_an_unknown_ref_is_an_error_and_never_another_branch(trees: Trees, ref: str) -> None:
    with pytest.raises(SourceError, match="no branch, tag or commit"):
        worktree.add(trees.git, trees.folder, ref)
    assert not trees.folder.exists()


def test_an_unknown_ref_is_fetched_only_from_a_remote_that_is_there(trees: Trees) -> None:
    with pytest.raises(SourceError) as refused:
        worktree.commit_of(trees.git, "v9.9.9")
    assert refused.value.next_step.endswith("branch --all")
    trees.git.run("remote", "add", "origin", "https://example.org/it.git")
    with pytest.raises(SourceError) as refused:
        worktree.commit_of(trees.git, "v9.9.9")
    assert refused.value.next_step.endswith("fetch origin v9.9.9")


KILLED = """
import sys
from pathlib import Path
from torchbuild_tasks.system.git import worktree
from torchbuild_tasks.system.git.run import Git
verb, main, folder, ref, *config = sys.argv[1:]
git = Git(folder=Path(main), config=tuple(config))
if verb == "switch":
    worktree.switch(Git(folder=Path(folder), config=tuple(config)), ref)
elif verb == "add":
    worktree.add(git, Path(folder), ref)
else:
    worktree.remove(git, Path(folder))
"""


def _killed(trees: Trees, verb: str, ref: str, at: int, *, after: bool) -> bool:
    """Run a verb that git kills; whether it came to that."""
    environ = fatal_git(trees.folder.with_name(f"bin{at}{verb}"), at, after=after)
    argv = [sys.executable, "-c", KILLED, verb, str(trees.git.folder), str(trees.folder), ref, *CONFIG]
    done = subprocess.run(argv, env=environ, capture_output=True, check=False)
    assert done.returncode in (0, -9), done.stderr.decode()
    return done.returncode == -9


@needs_shebang
@needs_signals
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 16))])
def test_whatever_is_killed_is_finished_by_the_next_run(trees: Trees, seed: int) -> None:
    dice = random.Random(seed)
    killed = _killed(trees, "add", trees.first, dice.randint(3, 30), after=dice.random() < 0.5)
    if not _is_here(trees):
        worktree.add(trees.git, trees.folder, trees.first)
    assert contents(trees.folder) == FIRST
    (trees.folder / "untracked").write_text("mine", "utf-8")

    killed |= _killed(trees, "switch", trees.second, dice.randint(8, 50), after=dice.random() < 0.5)
    worktree.switch(trees.tree, trees.second)
    assert contents(trees.folder) == SECOND
    assert not trees.tree.run("status", "--porcelain").replace("?? untracked", "")
    assert (trees.folder / "untracked").read_text("utf-8") == "mine"

    (trees.folder / "untracked").unlink()
    killed |= _killed(trees, "remove", "HEAD", dice.randint(3, 40), after=dice.random() < 0.5)
    if worktree.entries(trees.git):
        worktree.remove(trees.git, trees.folder)
    assert not list(trees.folder.parent.glob("*beside*"))
    assert trees.git.run("worktree", "list").count("\n") == 0
    assert contents(trees.git.folder) == SECOND
    assert killed


def _is_here(trees: Trees) -> bool:
    return [entry.state for entry in worktree.entries(trees.git)] == ["here"]


def test_what_a_checkout_without_history_lacks_is_there_once_its_advice_was_followed(tmp_path: Path) -> None:
    main = repository(tmp_path / "main")
    save(main, "second")
    Git(folder=tmp_path).run("clone", "-q", "--depth=1", main.folder.as_uri(), "not deep")
    shallow = Git(folder=tmp_path / "not deep")
    with pytest.raises(SourceError) as caught:
        worktree.commit_of(shallow, "HEAD~1")
    command = shlex.split(caught.value.next_step.partition("Fetch it: ")[2])
    subprocess.run(command, check=True, capture_output=True)
    assert worktree.commit_of(shallow, "HEAD~1") == main.output("rev-parse", "HEAD~1")
