"""The folder in which a linker is called ld."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.capabilities import needs_symlinks
from torchbuild_tasks.build.preflight import link_linker
from torchbuild_tasks.errors import PreflightFailed

pytestmark = needs_symlinks


def test_the_link_leads_to_the_program_of_the_plan(tmp_path: Path) -> None:
    folder = tmp_path / ".torchbuild/linker"
    for name in ("one", "other", "other"):
        (tmp_path / name).write_bytes(b"")
        link_linker(tmp_path, folder, tmp_path / name)
        assert (folder / "ld").resolve() == tmp_path / name
    assert [path.name for path in folder.iterdir()] == ["ld"]


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / ".torchbuild").mkdir()
    (tmp_path / ".torchbuild/MARKER").write_text("ours", "utf-8")
    (tmp_path / ".torchbuild/linker").write_bytes(b"a file")
    with pytest.raises(PreflightFailed, match="cannot be written"):
        link_linker(tmp_path, tmp_path / ".torchbuild/linker", tmp_path / "ld")
