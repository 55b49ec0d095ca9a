"""Folders deeper than a path may be long, or Python may call: killed tests of getcwd leave such."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from torchbuild_tasks.system.remove import remove_tree, size_of, snapshot


class Everything:
    """All paths count."""

    def matches(self, path: str) -> bool:
        return True

    def reaches(self, folder: str) -> bool:
        return True


@pytest.mark.skipif(sys.platform == "win32", reason="made through descriptors of folders")
@pytest.mark.parametrize(("name", "depth"), [("d", 2100), ("x" * 200, 50)])
def test_a_folder_too_deep_for_a_path_is_passed_over_and_removed(
    tmp_path: Path, name: str, depth: int
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / ".mine.too-deep").mkdir()
    folder = os.open(root, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=folder)
        below = os.open(name, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = below
    os.write(file := os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=folder), b"12345")
    os.close(file)
    os.close(folder)
    assert f"{name}/{name}/" in snapshot(root, Everything())
    assert size_of(root) == 0
    assert remove_tree(root) == 5
    assert not root.exists()
