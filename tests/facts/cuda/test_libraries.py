from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.facts.fakes import link, machine, windows_machine, write
from tests.support.capabilities import needs_symlinks
from torchbuild_tasks.facts.cuda.libraries import look_for_libraries
from torchbuild_tasks.model import Library, Python
from torchbuild_tasks.model.cuda import BuiltFor
from torchbuild_tasks.values import dumps

CUDNN = "#define CUDNN_MAJOR 9\n#define CUDNN_MINOR 8\n#define CUDNN_PATCHLEVEL 0\n"
NCCL = "#define NCCL_MAJOR 2\n#define NCCL_MINOR 21\n#define NCCL_PATCH 5\n"


def look(tmp_path: Path, files: Mapping[str, str], **environ: str) -> tuple[Library, ...]:
    return look_for_libraries(machine(tmp_path, files=files, environ=environ), ())


def test_in_the_system(tmp_path: Path) -> None:
    arch = "x86_64-linux-gnu"
    files = {
        f"/usr/include/{arch}/cudnn_version_v8.h": CUDNN.replace("9", "8"),
        f"/usr/lib/{arch}/libcudnn.so": "",
    }
    assert look(tmp_path, {**files, "/usr/include/nccl.h": NCCL}) == (
        Library(
            name="cudnn",
            version="8.8.0",
            include=f"/usr/include/{arch}",
            library=f"/usr/lib/{arch}",
            found_via="system",
        ),
        Library(name="nccl", version="2.21.5", include="/usr/include", found_via="system"),
    )


def test_what_a_root_names_comes_first(tmp_path: Path) -> None:
    files = {"/a/include/cudnn_version.h": CUDNN, "/a/lib/libcudnn.so.9": "", "/usr/include/cudnn.h": ""}
    first, second = look(tmp_path, files, CUDNN_ROOT="/a")
    assert (first.found_via, first.version) == ("CUDNN_ROOT", "9.8.0")
    assert (first.include, first.library) == ("/a/include", "/a/lib")
    assert (second.found_via, second.version, second.library) == ("system", None, None)


def test_folders_by_variables_one_of_which_may_be_the_file(tmp_path: Path) -> None:
    files = {"/i/nccl.h": NCCL, "/l/libnccl.so": "", "/c/cudnn_version.h": CUDNN, "/d/libcudnn.so": ""}
    cudnn, nccl = look(
        tmp_path,
        files,
        CUDNN_INCLUDE_DIR="/c",
        CUDNN_LIBRARY="/d/libcudnn.so",
        NCCL_INCLUDE_DIR="/i",
        NCCL_LIB_DIR="/l",
    )
    assert (cudnn.include, cudnn.library) == ("/c", "/d")
    assert cudnn.found_via == "CUDNN_INCLUDE_DIR, CUDNN_LIBRARY"
    assert (nccl.include, nccl.library, nccl.version) == ("/i", "/l", "2.21.5")


def test_in_conda_and_in_nvidias_wheels(tmp_path: Path) -> None:
    site = "/v/lib/python3.12/site-packages/nvidia"
    files = {
        "/conda/include/nccl.h": NCCL,
        f"{site}/cudnn/include/cudnn_version.h": CUDNN,
        f"{site}/cudnn/lib/libcudnn.so.9": "",
        f"{site}/nccl/lib/libnccl.so.2": "",
    }
    door = machine(tmp_path, files=files, environ={"CONDA_PREFIX": "/conda"})
    python = Python(executable="/v/bin/python", found_via="PATH", prefix="/v", version="3.12.1")
    assert [(seen.name, seen.found_via, seen.version) for seen in look_for_libraries(door, (python,))] == [
        ("cudnn", "NVIDIA's wheels", "9.8.0"),
        ("nccl", "CONDA_PREFIX", "2.21.5"),
        ("nccl", "NVIDIA's wheels", None),
    ]


@needs_symlinks
def test_one_in_a_venv_whose_lib64_is_a_link_is_one(tmp_path: Path) -> None:
    """As in every venv of Ubuntu's Python 3.12."""
    cudnn = "/v/lib/python3.12/site-packages/nvidia/cudnn"
    door = machine(
        tmp_path, files={f"{cudnn}/include/cudnn_version.h": CUDNN, f"{cudnn}/lib/libcudnn.so.9": ""}
    )
    link(tmp_path, "/v/lib64", "lib")
    python = Python(executable="/v/bin/python", found_via="PATH", prefix="/v", version="3.12.1")
    (seen,) = look_for_libraries(door, (python,))
    assert (seen.include, seen.library) == (f"{cudnn}/include", f"{cudnn}/lib")


@needs_symlinks
def test_without_headers_the_name_of_the_file_tells(tmp_path: Path) -> None:
    write(tmp_path, {"/usr/lib64/libnccl.so.2.21.5": ""})
    link(tmp_path, "/usr/lib64/libnccl.so.2", "libnccl.so.2.21.5")
    (nccl,) = look(tmp_path, {})
    assert (nccl.version, nccl.include, nccl.library) == ("2.21.5", None, "/usr/lib64")


def test_a_variable_that_leads_nowhere_finds_nothing(tmp_path: Path) -> None:
    assert look(tmp_path, {}, CUDNN_ROOT="/none", NCCL_ROOT_DIR="/none", NCCL_LIB_DIR="/none") == ()


def test_nvidias_installer_for_windows(tmp_path: Path) -> None:
    root = "C:\\Program Files\\NVIDIA\\CUDNN\\v9.8"
    files = {f"{root}\\include\\12.8\\cudnn_version.h": CUDNN, f"{root}\\lib\\12.8\\x64\\cudnn.lib": ""}
    door = windows_machine(tmp_path, files=files)
    assert look_for_libraries(door, ()) == (
        Library(
            name="cudnn",
            version="9.8.0",
            include=f"{root}\\include\\12.8",
            library=f"{root}\\lib\\12.8\\x64",
            found_via="Program Files",
        ),
    )


def test_magma(tmp_path: Path) -> None:
    """conda's is a static library."""
    types = "#define MAGMA_VERSION_MAJOR 2\n#define MAGMA_VERSION_MINOR 6\n#define MAGMA_VERSION_MICRO 1\n"
    files = {"/conda/include/magma_types.h": types, "/conda/lib/libmagma.a": ""}
    (found,) = look(tmp_path, files, CONDA_PREFIX="/conda")
    assert (found.name, found.version, found.include) == ("magma", "2.6.1", "/conda/include")
    assert (found.library, found.found_via) == ("/conda/lib", "CONDA_PREFIX")
    assert found.built_for is None


@pytest.mark.parametrize("broken", ["", "{", "[]", '{"helper": "magma", "more": 1}'])
def test_the_note_of_a_magma_of_ours(tmp_path: Path, broken: str) -> None:
    """A file that is not such a note gives no facts."""
    note = BuiltFor(
        helper="magma",
        version="2.9.0",
        cuda="13.0",
        archs=("8.0",),
        configuration="release",
        system="linux x86_64",
    )
    files = {"/m/include/magma_types.h": "", "/m/info/torchbuild.json": dumps(note)}
    assert look(tmp_path, files, MAGMA_HOME="/m")[0].built_for == note
    files["/m/info/torchbuild.json"] = broken
    assert look(tmp_path, files, MAGMA_HOME="/m")[0].built_for is None
