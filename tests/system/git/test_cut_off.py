"""What a killed run left in a repository goes, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.capabilities import needs_git
from torchbuild_tasks.system.git.cut_off import MARK, mark_change, remove_locks, was_cut_off

pytestmark = needs_git  # what it leaves is cleared where there is one


@pytest.fixture
def git_dir(tmp_path: Path) -> Path:
    """A repository with one of each file that git leaves when it is killed, and with such as it keeps."""
    folder = tmp_path / "tree" / ".git"
    for name in KEPT + LEFT:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    return folder


KEPT = ("index", "HEAD", "objects/pack/pack-1.pack", "objects/ab/cdef", "modules/one/HEAD")
LEFT = (
    "index.lock",
    "objects/pack/tmp_pack_1",
    "modules/one/shallow.lock",
    "modules/one/objects/pack/tmp_idx_2",
)


def left(git_dir: Path) -> set[str]:
    return {path.relative_to(git_dir).as_posix() for path in git_dir.rglob("*") if path.is_file()}


def test_locks_and_unfinished_packs_go_also_those_of_submodules(git_dir: Path) -> None:
    remove_locks(git_dir.parent, git_dir)
    assert left(git_dir) == set(KEPT)


def test_a_repository_is_cleared_only_after_a_run_that_was_cut_off(git_dir: Path, tmp_path: Path) -> None:
    with mark_change(tmp_path, git_dir.parent, git_dir):
        assert was_cut_off(tmp_path)
    assert not was_cut_off(tmp_path)
    assert left(git_dir) == {*KEPT, *LEFT}
    (tmp_path / MARK).touch()  # as a killed run leaves it
    with mark_change(tmp_path, git_dir.parent, git_dir):
        assert left(git_dir) == set(KEPT)
    assert not was_cut_off(tmp_path)


def test_the_mark_goes_when_the_change_fails(git_dir: Path, tmp_path: Path) -> None:
    with pytest.raises(KeyError), mark_change(tmp_path, git_dir.parent, git_dir):
        raise KeyError
    assert not was_cut_off(tmp_path)
