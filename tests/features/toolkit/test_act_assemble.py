"""A toolkit is assembled completely or not at all, from consistent parts."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.support.capabilities import needs, needs_hard_links, needs_symlinks
from torchbuild_tasks.errors import ArchiveRefused, DownloadFailed
from torchbuild_tasks.features.helpers import store as shelf
from torchbuild_tasks.features.helpers.store import TOOLKIT_MARKER, read_toolkit_marker
from torchbuild_tasks.features.toolkit.act import assemble
from torchbuild_tasks.system.files import UNPACKING
from torchbuild_tasks.system.mark import MARKER

NAME = "cuda-13.0.2-linux-x86_64-12345678"
DEAD = 999_999_999  # no process has such a number
CONTENT = {
    "nvcc-1": {"nvidia/cu13/bin/nvcc.profile": "TOP", "nvidia/cu13/include/crt/host.h": "crt", MARKER: "{}"},
    "cudart-1": {"a/include/cuda_runtime.h": "rt", "a/LICENSE": "one", "a/include/__init__.py": "1"},
    "cccl-1": {"a/include/cub/cub.cuh": "cub", "a/LICENSE": "two", "a/.metadata/x": "y"},
}
INSIDE = {"nvcc-1": "nvidia/cu13", "cudart-1": "a", "cccl-1": "a"}


def lay(store: Path, name: str, files: dict[str, str]) -> Path:
    """An unpacked part of the store."""
    folder = store / "unpacked" / name
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, "utf-8")
    return folder


def parts(store: Path) -> list[tuple[Path, str]]:
    return [(lay(store, name, files), INSIDE[name]) for name, files in CONTENT.items()]


def put_together(store: Path, these: list[tuple[Path, str]] | None = None, version: str = "13.0.2") -> Path:
    return assemble(
        parts(store) if these is None else these,
        store / "toolkits" / NAME,
        version=version,
        note=lambda text: None,
    )


def listed(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_the_parts_lie_in_one_folder_that_says_what_it_is(tmp_path: Path) -> None:
    folder = put_together(tmp_path)
    assert listed(folder) == {
        "bin/nvcc.profile",
        "include/crt/host.h",
        "include/cuda_runtime.h",
        "include/cub/cub.cuh",
        "licenses/cudart-1/LICENSE",
        "licenses/cccl-1/LICENSE",
        "version.json",
        TOOLKIT_MARKER,
    }
    said = json.loads((folder / "version.json").read_text("utf-8"))
    assert said == {"cuda": {"name": "CUDA SDK", "version": "13.0.2"}}
    mark = json.loads((folder / TOOLKIT_MARKER).read_text("utf-8"))
    assert mark.pop("finished")
    assert mark == {"schema": 1, "id": NAME, "version": "13.0.2", "parts": ["nvcc-1", "cudart-1", "cccl-1"]}
    assert [path.name for path in folder.parent.iterdir()] == [NAME]


@needs_hard_links
def test_the_files_are_not_there_twice(tmp_path: Path) -> None:
    folder = put_together(tmp_path)
    assert (folder / "include/cuda_runtime.h").samefile(
        tmp_path / "unpacked/cudart-1/a/include/cuda_runtime.h"
    )


def test_where_no_link_can_be_made_the_files_are_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*args: object) -> None:
        raise OSError("another file system")

    monkeypatch.setattr(os, "link", refused)
    folder = put_together(tmp_path)
    assert (folder / "include/cuda_runtime.h").read_text("utf-8") == "rt"
    assert (folder / "include/cuda_runtime.h").stat().st_nlink == 1


def test_one_that_is_there_is_left_alone(tmp_path: Path) -> None:
    folder = put_together(tmp_path)
    before = (folder / TOOLKIT_MARKER).stat().st_mtime_ns, folder.stat().st_ino
    (folder / "own").write_text("of the user", "utf-8")
    assert put_together(tmp_path) == folder
    assert ((folder / TOOLKIT_MARKER).stat().st_mtime_ns, folder.stat().st_ino) == before
    assert (folder / "own").exists()


def test_one_of_other_parts_is_made_anew(tmp_path: Path) -> None:
    folder = put_together(tmp_path)
    put_together(tmp_path, parts(tmp_path)[:2])
    assert not (folder / "include/cub").exists()
    mark = read_toolkit_marker(folder)
    assert mark is not None
    assert mark.parts == ("nvcc-1", "cudart-1")
    put_together(tmp_path, parts(tmp_path)[:2], version="13.0.3")
    assert '"13.0.3"' in (folder / "version.json").read_text("utf-8")


def test_a_folder_that_is_not_ours_stays(tmp_path: Path) -> None:
    folder = tmp_path / "toolkits" / NAME
    folder.mkdir(parents=True)
    (folder / "precious").write_text("", "utf-8")
    with pytest.raises(DownloadFailed, match="exists already, and contains files that torchbuild"):
        put_together(tmp_path)
    assert listed(folder) == {"precious"}


def test_a_part_that_is_not_there_is_named(tmp_path: Path) -> None:
    these = [*parts(tmp_path), (tmp_path / "unpacked" / "nvvm-1", "nvidia/cu13")]
    with pytest.raises(DownloadFailed, match="missing: nvvm-1") as error:
        put_together(tmp_path, these)
    assert "no such folder" in error.value.looked[0]
    assert list((tmp_path / "toolkits").iterdir()) == []


def test_a_part_without_its_folder_is_named(tmp_path: Path) -> None:
    these = [(path, "nvidia/cu12") for path, _ in parts(tmp_path)]
    with pytest.raises(DownloadFailed, match="missing: nvcc-1"):
        put_together(tmp_path, these)


def test_the_same_file_twice_is_fine_and_two_of_one_name_are_not(tmp_path: Path) -> None:
    good = lay(tmp_path, "more-1", {"x/include/cuda_runtime.h": "rt"})
    put_together(tmp_path, [*parts(tmp_path), (good, "x")])
    bad = lay(tmp_path, "bad-1", {"x/include/cuda_runtime.h": "other"})
    with pytest.raises(ArchiveRefused, match=r"contain include/cuda_runtime\.h") as error:
        put_together(tmp_path, [*parts(tmp_path), (bad, "x")])
    assert error.value.looked == ("one is of cudart-1", "the other is of bad-1")
    # What stood there before still does: it goes when the new one is whole.
    mark = read_toolkit_marker(tmp_path / "toolkits" / NAME)
    assert mark is not None
    assert mark.parts[-1] == "more-1"


@needs_symlinks
def test_links_of_a_part_stay_links(tmp_path: Path) -> None:
    part = lay(tmp_path, "cudart-1", {"a/lib/libcudart.so.13.0.96": "ELF"})
    (part / "a/lib/libcudart.so.13").symlink_to("libcudart.so.13.0.96")
    folder = put_together(tmp_path, [(part, "a")])
    assert (folder / "lib/libcudart.so.13").readlink() == Path("libcudart.so.13.0.96")
    again = lay(tmp_path, "more-1", {"a/lib/libcudart.so.13": "a file"})
    with pytest.raises(ArchiveRefused):
        put_together(tmp_path, [(part, "a"), (again, "a")])


def test_what_a_killed_run_left_goes(tmp_path: Path) -> None:
    left = tmp_path / "toolkits" / f".{NAME}.{DEAD}.{UNPACKING}"
    (left / "include").mkdir(parents=True)
    other = tmp_path / "toolkits" / f".cuda-12.4.1-linux-x86_64-0.{DEAD}.{UNPACKING}"
    other.mkdir()
    put_together(tmp_path)
    assert not left.exists()
    assert other.exists(), "the next prune takes it"


def test_a_run_that_fails_on_the_way_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "link", full)
    monkeypatch.setattr(shutil, "copy2", full)
    with pytest.raises(DownloadFailed, match="No space left"):
        put_together(tmp_path)
    assert list((tmp_path / "toolkits").iterdir()) == []


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": 1}', '{"id": 3}'])
def test_a_mark_that_cannot_be_read_is_none(text: str, tmp_path: Path) -> None:
    (tmp_path / TOOLKIT_MARKER).write_text(text, "utf-8")
    assert read_toolkit_marker(tmp_path) is None
    assert read_toolkit_marker(tmp_path / "nothing") is None


# ---------------------------------------------------------------- pruning


def test_prune_keeps_the_toolkit_that_is_wanted_and_removes_others(tmp_path: Path) -> None:
    folder = put_together(tmp_path)
    (tmp_path / "toolkits" / "mine").mkdir()
    ids = {path.name for path, _ in parts(tmp_path)}
    assert shelf.prune(tmp_path, {*ids, NAME}).paths == ()
    assert str(folder) in shelf.prune(tmp_path, ids, dry_run=True).paths
    assert folder.exists()
    assert shelf.prune(tmp_path, ids).paths == (str(folder),)
    assert not folder.exists()
    assert (tmp_path / "toolkits" / "mine").exists(), "it has no mark of ours"


def test_prune_sweeps_what_killed_runs_left(tmp_path: Path) -> None:
    left = tmp_path / "toolkits" / f".{NAME}.{DEAD}.{UNPACKING}"
    left.mkdir(parents=True)
    assert shelf.prune(tmp_path, ()).paths == (str(left),)
    assert not left.exists()


def test_prune_leaves_what_another_run_is_making(tmp_path: Path) -> None:
    folder = put_together(tmp_path)
    with shelf.hold(tmp_path, [NAME], lambda text: None):
        assert folder.exists()
        assert [path for path, _ in shelf.prune(tmp_path, ()).kept] == [str(folder)]
    assert folder.exists()


@needs_hard_links
@needs(sys.platform != "win32", "x bits")
def test_prune_of_the_parts_leaves_the_toolkit_complete(tmp_path: Path) -> None:
    folder = put_together(tmp_path)
    for name in CONTENT:
        (tmp_path / "unpacked" / name / MARKER).write_text("{}", "utf-8")
    assert len(shelf.prune(tmp_path, {NAME}).paths) == 3
    assert (folder / "include/cuda_runtime.h").read_text("utf-8") == "rt"
    assert os.listdir(tmp_path / "unpacked") == []  # noqa: PTH208
