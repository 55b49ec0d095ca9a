"""A checkout is renamed when it is complete, and has a note about its origin."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from torchbuild_tasks.errors import SourceError
from torchbuild_tasks.features.source import places
from torchbuild_tasks.features.source.places import Note
from torchbuild_tasks.system.files import state_dir

NOTE = Note(url="https://h/pytorch.git", word="2.9", ref="refs/tags/v2.9.1", commit="a" * 40)


def test_a_note_is_read_as_it_was_written(tmp_path: Path) -> None:
    places.write_note(tmp_path, NOTE)
    assert places.read_note(tmp_path) == NOTE
    mode = next(tmp_path.rglob(places.NOTE)).stat().st_mode & 0o777
    assert sys.platform == "win32" or mode == 0o600  # its address may hold a login


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"url": 1, "word": "2.9"}'])
def test_a_note_that_cannot_be_read_is_none(tmp_path: Path, text: str) -> None:
    places.write_note(tmp_path, NOTE)
    next(tmp_path.rglob(places.NOTE)).write_text(text, "utf-8")
    assert places.read_note(tmp_path) is None


def test_a_checkout_is_published_over_nothing_or_an_empty_folder_alone(tmp_path: Path) -> None:
    target = tmp_path / "v2.9.1"
    for exists in (False, True):
        if exists:
            target.mkdir()
        assert places.is_free(target)
        tree = places.temporary_checkout(target) / "tree"
        tree.mkdir(parents=True)
        (tree / "version.txt").write_text("2.9.1", "utf-8")
        places.publish(tree, target)
        assert (target / "version.txt").is_file()
        assert not places.is_free(target)
        (target / "version.txt").unlink()
        target.rmdir()
    target.mkdir()
    (target / "mine.py").touch()
    with pytest.raises(SourceError):
        places.publish(tmp_path, target)
    assert (target / "mine.py").is_file()


def test_the_store_lists_complete_checkouts_and_unfinished_ones_apart(tmp_path: Path) -> None:
    sources = tmp_path / places.SOURCES
    growing = places.temporary_checkout(sources / "main")
    for folder in (sources / "v2.9.1", sources / "other", growing):
        folder.mkdir(parents=True)
    places.write_note(sources / "v2.9.1", NOTE)
    state_dir(growing)
    assert places.checkouts(tmp_path) == (sources / "v2.9.1",)
    assert places.unfinished_folders(sources) == (growing,)
    assert places.unfinished_folders(tmp_path / "nowhere") == ()
