"""What is remembered of caches outlives a build, and a broken file costs nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchbuild_tasks.features.cache.folder import Memory

FOLDER = Path("/cache")


def test_it_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "store" / "memory.json"
    Memory(path).keep(FOLDER, [{"compiler": "g++"}], created=True)
    again = Memory(path)
    assert again.list_settings(FOLDER) == [{"compiler": "g++"}]
    assert again.is_ours(FOLDER)
    assert not again.is_ours(Path("/other"))


def test_a_folder_stays_made_and_can_be_forgotten(tmp_path: Path) -> None:
    memory = Memory(tmp_path / "memory.json")
    memory.keep(FOLDER, [{"a": "1"}], created=True)
    memory.keep(FOLDER, [{"a": "2"}], created=False)
    assert Memory(tmp_path / "memory.json").is_ours(FOLDER)
    memory.forget(FOLDER)
    assert Memory(tmp_path / "memory.json").list_settings(FOLDER) == []


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"seen": 1}', '{"seen": {"/cache": [1]}}', '{"made": null}']
)
def test_a_broken_file_is_as_good_as_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "memory.json"
    path.write_text(text, "utf-8")
    memory = Memory(path)
    assert memory.list_settings(FOLDER) == []
    memory.keep(FOLDER, [{"a": "1"}], created=False)
    assert Memory(path).list_settings(FOLDER) == [{"a": "1"}]


def test_no_file_and_one_that_cannot_be_written_do_no_harm(tmp_path: Path) -> None:
    Memory(None).keep(FOLDER, [{}], created=True)
    (tmp_path / "file").write_bytes(b"")
    Memory(tmp_path / "file" / "memory.json").keep(FOLDER, [{}], created=True)
