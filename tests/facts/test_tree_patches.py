"""Patches of the user's own: which files count, in which order, as what text."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.facts.tree import look_at_patches, patch_folders


def test_by_name_folder_after_folder_and_each_folder_once(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for folder, names in (
        (one, ("0002-b.patch", "0001-a.diff", "README.md", "0003.PATCH")),
        (two, ("a.diff",)),
    ):
        folder.mkdir()
        for name in names:
            (folder / name).write_text(name, "utf-8")
    found = look_at_patches([str(one), str(tmp_path / "none"), str(two), str(one / ".." / "one")])
    assert [patch.name for patch in found] == ["0001-a.diff", "0002-b.patch", "0003.PATCH", "a.diff"]
    assert [patch.path for patch in found][-1] == str(two / "a.diff")


def test_line_ends_of_a_windows_checkout_are_not_the_patchs(tmp_path: Path) -> None:
    (tmp_path / "a.patch").write_bytes(b"x\r\ny\r\n")
    (tmp_path / "b.patch").write_bytes(b"x\r\ny\n")
    assert [patch.text for patch in look_at_patches([str(tmp_path)])] == ["x\ny\n", "x\r\ny\n"]


def test_a_patch_that_powershell_redirected_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.patch").write_bytes("ü\r\n".encode("utf-16"))
    assert [(patch.text, patch.problem) for patch in look_at_patches([str(tmp_path)])] == [("ü\n", "")]


def test_a_patch_that_is_no_text_is_reported(tmp_path: Path) -> None:
    (tmp_path / "a.patch").write_bytes(b"\xff\xfe\n")
    (tmp_path / "b.patch").mkdir()
    first, second = look_at_patches([str(tmp_path)])
    assert "UTF-8" in first.problem
    assert second.problem == "cannot be read"


def test_the_folder_that_is_named_stands_for_both_others(tmp_path: Path) -> None:
    beside, inside = tmp_path / "patches", tmp_path / "pt/patches"
    settings, source = str(tmp_path / "torchbuild.toml"), str(tmp_path / "pt")
    assert patch_folders(None, settings, source) == (str(beside), str(inside))
    assert patch_folders(None, None, source) == (str(inside),)
    assert patch_folders(str(tmp_path), settings, source) == (str(tmp_path),)
    with pytest.raises(UsageError, match="--patch-dir"):
        patch_folders(str(tmp_path / "none"), settings, source)
