"""Libraries for BLAS: what is found where, and that it can be linked."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.facts.fakes import machine, windows_machine
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.facts.libraries import look_for_libraries, path_prefixes

ROWS, LINKED = load_catalog().blas, load_catalog().linked
MKL = {"include/mkl.h": "", "lib/libmkl_core.so": ""}


@pytest.mark.parametrize(
    ("environ", "root", "via"),
    [
        ({"CMAKE_PREFIX_PATH": "/x:/p"}, "/p", "CMAKE_PREFIX_PATH"),
        ({"INTEL_MKL_DIR": "/p"}, "/p", "INTEL_MKL_DIR"),
        ({}, "/env", "conda"),
        ({}, "/opt/intel/oneapi/mkl/latest", "system"),
    ],
)
def test_mkl_needs_its_headers(tmp_path: Path, environ: dict[str, str], root: str, via: str) -> None:
    files = {f"{root}/{name}": text for name, text in MKL.items()}
    (found,) = look_for_libraries(machine(tmp_path, files=files, environ=environ), ROWS, {"/env": "conda"})
    assert (found.name, found.found_via, found.library) == ("MKL", via, f"{root}/lib")
    bare = machine(tmp_path / "bare", files={f"{root}/lib/libmkl_core.so": ""}, environ=environ)
    assert look_for_libraries(bare, ROWS, {"/env": "conda"}) == ()


def test_one_to_link_counts_and_one_to_load_does_not(tmp_path: Path) -> None:
    folder = "/usr/lib/x86_64-linux-gnu"
    files = {f"{folder}/libopenblas.so.0": "", f"{folder}/libblas.so": "", "/h/lib/libflexiblas.so": ""}
    door = machine(tmp_path, files=files, environ={"FlexiBLAS_HOME": "/h"})
    assert [library.name for library in look_for_libraries(door, ROWS, {})] == ["FlexiBLAS", "Generic"]


def test_header_and_library_need_not_have_one_folder_above_them(tmp_path: Path) -> None:
    """CMake looks for one after the other (find_path, find_library)."""
    environ = {"CMAKE_LIBRARY_PATH": "/a", "CMAKE_INCLUDE_PATH": "/b"}
    (found,) = look_for_libraries(
        machine(tmp_path, files={"/a/libmkl_rt.so": "", "/b/mkl.h": ""}, environ=environ), ROWS, {}
    )
    assert (found.library, found.include, found.found_via) == ("/a", "/b", "CMAKE_LIBRARY_PATH")
    swapped = {"/b/libmkl_rt.so": "", "/a/mkl.h": ""}
    assert look_for_libraries(machine(tmp_path / "x", files=swapped, environ=environ), ROWS, {}) == ()


def test_on_windows(tmp_path: Path) -> None:
    files = {"C:\\env\\Library\\include\\mkl.h": "", "C:\\env\\Library\\lib\\mkl_core.lib": ""}
    (found,) = look_for_libraries(windows_machine(tmp_path, files=files), ROWS, {"C:\\env\\Library": "conda"})
    assert (found.name, found.library) == ("MKL", "C:\\env\\Library\\lib")


@pytest.mark.parametrize(
    ("files", "name"),
    [
        (("/usr/include/glog/logging.h", "/usr/lib/x86_64-linux-gnu/libglog.so"), "glog"),
        (("/usr/include/numa.h", "/usr/lib64/libnuma.so"), "libnuma"),
        (("/usr/include/fp16.h",), "FP16"),
        (("/opt/x/include/gflags/gflags.h", "/opt/x/lib/libgflags.a"), "gflags"),
        (("/usr/include/x86_64-linux-gnu/libavcodec/avcodec.h", "/usr/lib64/libavcodec.so"), "FFmpeg"),
    ],
)
def test_what_a_switch_links_with_is_found_where_cmake_looks(
    tmp_path: Path, files: tuple[str, ...], name: str
) -> None:
    door = machine(tmp_path, files=dict.fromkeys(files, ""), environ={"PATH": "/usr/bin:/opt/x/bin"})
    found = look_for_libraries(door, LINKED, path_prefixes(door))
    assert [library.name for library in found] == [name]
    less = machine(tmp_path / "less", files=dict.fromkeys(files[:-1], ""), environ={"PATH": "/usr/bin"})
    assert look_for_libraries(less, LINKED, path_prefixes(less)) == ()
