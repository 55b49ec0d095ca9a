"""Which editable install a clean takes away, and what is moved out of a folder that is emptied."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from tests.support.for_each import each_case
from tests.support.machines import base_python, linux_facts, python
from torchbuild_tasks.build.clean import set_cmake_cache_aside, set_foreign_files_aside, uninstall_command
from torchbuild_tasks.build.outputs import recordable_outputs
from torchbuild_tasks.build.ownership import begin
from torchbuild_tasks.build.work import Work
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.errors import BuildFailed


@each_case("folder", ["/src/pytorch", "/src/pytorch/"])
def test_the_editable_install_of_this_checkout(folder: str) -> None:
    facts = linux_facts(pythons=(base_python(), python(torch_from=folder)))
    command = uninstall_command(facts)
    assert command is not None
    assert command.argv == ("/venv/bin/python", "-m", "pip", "uninstall", "--yes", "torch")
    assert "/venv" in command.because


@each_case("folder", [None, "/src/pytorch2", "/src", "/home/me/pytorch"])
def test_any_other_torch_stays(folder: str | None) -> None:
    assert uninstall_command(linux_facts(pythons=(python(torch_from=folder),))) is None


def test_a_cache_that_cannot_be_set_aside_is_an_error_for_a_person(tmp_path: Path) -> None:
    """On Windows another program may have it open, and then it is tried for two seconds."""
    cache = tmp_path / "CMakeCache.txt"
    cache.touch()
    (tmp_path / "CMakeCache.txt.old").mkdir()
    work = SimpleNamespace(build_dir=tmp_path, ledger=SimpleNamespace(open=lambda: None))
    with pytest.raises(BuildFailed, match=r"CMakeCache.txt.old cannot be written: it is a folder"):
        set_cmake_cache_aside(cast("Work", work))
    assert cache.is_file()


# ---------------------------------------------------------------- folders that scikit-build-core empties


def work_of(root: Path, notes: list[str]) -> Work:
    report = SimpleNamespace(note=notes.append)
    work = SimpleNamespace(root=root, build_dir=root / "build", catalog=load_catalog(), report=report)
    return cast("Work", work)


def test_what_is_of_others_is_moved_out_before_the_folder_is_emptied(tmp_path: Path) -> None:
    outputs = recordable_outputs(load_catalog(), "scikit-build-core")
    claims = begin(tmp_path, "build", outputs, log_time=None)
    there = tmp_path / "build/editable"
    (there / "torch").mkdir(parents=True)
    for name in ("CACHEDIR.TAG", ".gitignore", "torch/a.so"):
        (there / name).write_text("made")
    (tmp_path / "build/install_manifest.txt").write_text(str(there / "torch/a.so"))
    claims.finish()
    notes: list[str] = []
    set_foreign_files_aside(work_of(tmp_path, notes))
    assert not notes
    (there / "torch/mine.txt").write_text("mine")
    (there / "CACHEDIR.TAG").unlink()  # as a clean does that keeps a file, or a kill
    set_foreign_files_aside(work_of(tmp_path, notes))
    assert (tmp_path / "build/editable.kept-1/torch/mine.txt").read_text() == "mine"
    assert "editable.kept-1: torch/mine.txt" in notes[0]
    assert not there.exists()
    there.mkdir()
    (there / "more.txt").write_text("mine")
    set_foreign_files_aside(work_of(tmp_path, notes))
    assert (tmp_path / "build/editable.kept-2/more.txt").exists()
