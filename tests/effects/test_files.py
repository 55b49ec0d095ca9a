"""Whole files or none, and the folder that is ours."""

from __future__ import annotations

import errno
import re
from pathlib import Path

import pytest

from torchbuild_tasks.effects.files import MARKER, MARKER_TEXT, STATE_DIR, state_dir, write_atomic
from torchbuild_tasks.errors import EnvFileError, UsageError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty one; tmp_path itself has the test's home."""
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def test_write_atomic_replaces_the_whole_file(folder: Path) -> None:
    path = folder / "env.sh"
    write_atomic(path, b"old and long", error=EnvFileError)
    write_atomic(path, b"new", error=EnvFileError)
    assert path.read_bytes() == b"new"
    assert list(folder.iterdir()) == [path]


@pytest.mark.parametrize(
    ("number", "says"),
    [(errno.ENOSPC, r"^\d+ bytes are free"), (errno.EROFS, "writable"), (errno.EIO, "again")],
)
def test_a_failed_write_changes_nothing_and_says_why(
    folder: Path, monkeypatch: pytest.MonkeyPatch, number: int, says: str
) -> None:
    path = folder / "env.sh"
    path.write_bytes(b"old")

    def fail(self: Path, data: bytes) -> int:
        with self.open("wb") as partial:
            partial.write(data[:1])
        raise OSError(number, "the reason")

    monkeypatch.setattr(Path, "write_bytes", fail)
    with pytest.raises(EnvFileError, match=r"env\.sh cannot be written: the reason\.") as caught:
        write_atomic(path, b"new", error=EnvFileError)
    assert path.read_bytes() == b"old"
    assert list(folder.iterdir()) == [path]
    assert re.search(says, caught.value.next_step)


def test_a_missing_folder_is_told(folder: Path) -> None:
    with pytest.raises(EnvFileError, match="No such file or directory"):
        write_atomic(folder / "no" / "env.sh", b"", error=EnvFileError)


def test_the_state_folder_is_marked_and_unseen_by_git(folder: Path) -> None:
    state = state_dir(folder)
    assert state == folder / STATE_DIR
    assert (state / ".gitignore").read_text() == "*\n"
    assert (state / MARKER).read_text() == MARKER_TEXT
    assert "torchbuild_tasks" in MARKER_TEXT
    assert state_dir(folder) == state


def test_what_is_no_folder_of_ours_is_left_alone(folder: Path) -> None:
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    (folder / STATE_DIR).symlink_to(elsewhere)
    with pytest.raises(UsageError, match="not as a folder"):
        state_dir(folder)
    assert not list(elsewhere.iterdir())
