"""The folder of a pre-flight: empty before, gone afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.capabilities import needs_enforced_permissions, needs_symlinks
from torchbuild_tasks.build.preflight import FOLDER, trial_folder
from torchbuild_tasks.errors import PreflightFailed, UsageError

SOURCES = {"a.cpp": "int a;\n", "b.cu": "\u20ac\n"}


def leave(folder: Path) -> None:
    (folder / "inner").mkdir(parents=True)
    (folder / "inner/old.o").write_bytes(b"x")


def test_it_holds_the_files_and_goes(tmp_path: Path) -> None:
    leave(tmp_path / ".torchbuild" / FOLDER)  # of a run that was killed
    with trial_folder(tmp_path, SOURCES) as folder:
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
            "a.cpp": b"int a;\n",
            "b.cu": b"\xe2\x82\xac\n",
        }
        leave(folder)
    assert not folder.exists()
    assert folder.parent.is_dir()


def test_it_goes_when_something_fails(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), trial_folder(tmp_path, SOURCES) as folder:
        raise KeyboardInterrupt
    assert not folder.exists()


@needs_symlinks
def test_a_link_is_not_followed(tmp_path: Path) -> None:
    other = tmp_path / "other"
    leave(other)
    (tmp_path / ".torchbuild").mkdir()
    (tmp_path / ".torchbuild" / FOLDER).symlink_to(other, target_is_directory=True)
    with trial_folder(tmp_path, SOURCES) as folder:
        assert not folder.is_symlink()
    assert (other / "inner/old.o").exists()


def test_a_file_of_that_name_goes(tmp_path: Path) -> None:
    (tmp_path / ".torchbuild").mkdir()
    (tmp_path / ".torchbuild" / FOLDER).write_bytes(b"")
    with trial_folder(tmp_path, SOURCES) as folder:
        assert folder.is_dir()


@needs_enforced_permissions
def test_a_checkout_that_cannot_be_written(tmp_path: Path) -> None:
    with trial_folder(tmp_path, {}):
        pass
    state = tmp_path / ".torchbuild"
    state.chmod(0o500)
    try:
        with (
            pytest.raises((PreflightFailed, UsageError), match="cannot be written"),
            trial_folder(tmp_path, {}),
        ):
            pass
    finally:
        state.chmod(0o700)
