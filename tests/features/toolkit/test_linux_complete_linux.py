"""Links, and the right to run programs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.capabilities import needs_posix_permissions, needs_symlinks
from torchbuild_tasks.features.toolkit.linux import complete

pytestmark = needs_symlinks


def quiet(text: str) -> None:
    raise AssertionError(text)


def library(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(name.encode())


def test_a_linker_finds_every_library_by_its_plain_name(tmp_path: Path) -> None:
    names = ("lib/libcublas.so.13", "lib/libnvrtc-builtins.so.13.0", "lib/libnvrtc.alt.so.13", "lib/a.so.1")
    library(tmp_path, *names, "nvvm/lib64/libnvvm.so.4", "lib/libcupti.so.13", "lib/libcupti.so.2025.3.1")
    complete(tmp_path, quiet)
    links = {path.name: str(path.readlink()) for path in (tmp_path / "lib").iterdir() if path.is_symlink()}
    assert links == {
        "libcublas.so": "libcublas.so.13",
        "libnvrtc-builtins.so": "libnvrtc-builtins.so.13.0",
        "libnvrtc.alt.so": "libnvrtc.alt.so.13",
        "libcupti.so": "libcupti.so.13",
    }
    assert (tmp_path / "nvvm/lib64/libnvvm.so").read_bytes() == b"nvvm/lib64/libnvvm.so.4"
    assert (tmp_path / "lib64/libcublas.so").read_bytes() == b"lib/libcublas.so.13"


def test_what_a_part_brought_stays(tmp_path: Path) -> None:
    library(tmp_path, "lib/libcudart.so.13", "lib/libcudart.so", "lib64/own")
    complete(tmp_path, quiet)
    assert (tmp_path / "lib/libcudart.so").read_bytes() == b"lib/libcudart.so"
    assert not (tmp_path / "lib64").is_symlink()


@needs_posix_permissions
def test_programs_can_be_run_and_the_store_keeps_its_file(tmp_path: Path) -> None:
    library(tmp_path, "bin/nvcc", "bin/nvcc.profile", "bin/crt/link.stub", "nvvm/bin/cicc", "bin/ptxas")
    (tmp_path / "bin/ptxas").chmod(0o750)
    (tmp_path / "bin/nvcc").chmod(0o640)
    os.link(tmp_path / "bin/nvcc", tmp_path / "of the store")
    complete(tmp_path, quiet)
    modes = {name: (tmp_path / name).stat().st_mode & 0o777 for name in ("bin/nvcc", "bin/ptxas")}
    assert modes == {"bin/nvcc": 0o750, "bin/ptxas": 0o750}
    assert os.access(tmp_path / "nvvm/bin/cicc", os.X_OK)
    assert (tmp_path / "of the store").stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "bin/nvcc").read_bytes() == b"bin/nvcc"
    for name in ("bin/nvcc.profile", "bin/crt/link.stub"):
        assert (tmp_path / name).stat().st_mode & 0o111 == 0
    assert {path.name for path in (tmp_path / "bin").iterdir()} == {"nvcc", "nvcc.profile", "crt", "ptxas"}


@pytest.mark.parametrize("names", [(), ("include/x.h",)])
def test_a_toolkit_without_libraries_and_programs_is_left_as_it_is(
    names: tuple[str, ...], tmp_path: Path
) -> None:
    library(tmp_path, *names)
    before = sorted(tmp_path.rglob("*"))
    complete(tmp_path, quiet)
    assert sorted(tmp_path.rglob("*")) == before
