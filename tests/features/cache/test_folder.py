"""A cache's folder is tried out before a build depends on it."""

from __future__ import annotations

from pathlib import Path

from tests.support.capabilities import needs_enforced_permissions
from torchbuild_tasks.features.cache.folder import look_into


def test_a_new_folder_is_made_and_left_empty(tmp_path: Path) -> None:
    found = look_into(tmp_path / "deep" / "cache")
    assert (found.created, found.problem) == (True, "")
    assert list(found.path.iterdir()) == []


def test_one_that_is_there_is_not_made(tmp_path: Path) -> None:
    (tmp_path / "entry").write_bytes(b"")
    found = look_into(tmp_path)
    assert (found.created, found.read_only, found.problem) == (False, False, "")


def test_a_file_in_its_place(tmp_path: Path) -> None:
    (tmp_path / "cache").write_bytes(b"")
    found = look_into(tmp_path / "cache")
    assert not found.read_only
    assert str(tmp_path / "cache") in found.problem


def test_a_full_disk(tmp_path: Path) -> None:
    found = look_into(tmp_path / "cache", least=1 << 62)
    assert "MiB are free" in found.problem
    assert not found.read_only
    (tmp_path / "cache" / "entry").write_bytes(b"")
    assert look_into(tmp_path / "cache", least=1 << 62).read_only


@needs_enforced_permissions
def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "entry").write_bytes(b"")
    tmp_path.chmod(0o500)
    try:
        found = look_into(tmp_path)
    finally:
        tmp_path.chmod(0o700)
    assert found.read_only
    assert found.problem


@needs_enforced_permissions
def test_a_folder_in_one_that_is_closed(tmp_path: Path) -> None:
    tmp_path.chmod(0)
    try:
        found = look_into(tmp_path / "cache")
    finally:
        tmp_path.chmod(0o700)
    assert found.problem
