"""The files that the build's own texts name, and files of the user's next to them."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

from tests.support.for_each import each_case
from torchbuild_tasks.build.named_files import find_copies, find_named
from torchbuild_tasks.build.outputs import recordable_outputs
from torchbuild_tasks.catalog import load_catalog

GRAPH = """\
rule CXX
build c10/libc10.so c10/with$ blank.o | c10/side$:effect.txt: CXX $
    ../c10/a.cpp || x
  TARGET_PDB = bin/c10.pdb
build build.ninja: RERUN_CMAKE | ../c10/macros/cmake_macros.h.in ../CMakeLists.txt
"""


def header_list(*names: bytes) -> bytes:
    """What Ninja writes into .ninja_deps: a name each, then a record of a file's headers."""
    data = b"# ninjadeps\n" + struct.pack("<I", 4)
    for number, name in enumerate(names):
        padded = name + b"\0" * (-len(name) % 4)
        data += struct.pack("<I", len(padded) + 4) + padded + struct.pack("<I", ~number & 0xFFFFFFFF)
    return data + struct.pack("<IIII", 12 | 1 << 31, 0, 1, 2)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    build = tmp_path / "build"
    (build / "c10").mkdir(parents=True)
    (build / "build.ninja").write_text(GRAPH)
    (build / ".ninja_log").write_text("# ninja log v5\n1\t2\t3\tgen/x.cpp\tab\n")
    (build / ".ninja_deps").write_bytes(header_list(b"gen/seen.h", os.fsencode(tmp_path / "gen/abs.h")))
    (build / "install_manifest.txt").write_text(f"{tmp_path.as_posix()}/torch/include/c10/./a.h")
    (build / "c10/cmake_install.cmake").write_text(f'FILES "{build.as_posix()}/c10/x.cmake;y")\n')
    return tmp_path


@pytest.mark.parametrize(
    "path",
    [
        *("build/c10/libc10.so", "build/c10/with blank.o", "build/c10/side:effect.txt", "build/bin/c10.pdb"),
        *("build/bin/c10.ilk", "build/gen/x.cpp", "build/gen/seen.h", "gen/abs.h", "torch/include/c10/a.h"),
        *("build/c10/x.cmake", "build/c10/macros/cmake_macros.h"),
    ],
)
def test_what_a_build_names(tree: Path, path: str) -> None:
    wanted = {path, "build/bin/c10.pdb"} if path.endswith(".ilk") else {path}
    assert path in find_named(tree, tree / "build", wanted)


@pytest.mark.parametrize(
    "path",
    ["build/notes.txt", "build/c10/CMakeLists.txt", "build/libc10.so", "build/c10/a.cpp", "build/c10/x.o"],
)
def test_what_a_person_put_there(tree: Path, path: str) -> None:
    assert find_named(tree, tree / "build", {path}) == frozenset()


def test_texts_that_are_missing_or_torn_name_nothing(tmp_path: Path) -> None:
    assert find_named(tmp_path, tmp_path / "build", {"build/a"}) == frozenset()
    (tmp_path / "build").mkdir()
    (tmp_path / "build/.ninja_deps").write_bytes(header_list(b"gen/seen.h")[:21])
    (tmp_path / "build/.ninja_log").write_bytes(b"\xff\t\n1\t2")
    assert find_named(tmp_path, tmp_path / "build", {"build/a"}) == frozenset()


def test_a_copy_of_an_install_that_was_broken_off_is_known_by_its_source(tmp_path: Path) -> None:
    source, there = tmp_path / "c10/a.h", tmp_path / "build/editable/c10/a.h"
    for path in (source, there, tmp_path / "build/editable/c10/mine.h"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("same")
        os.utime(path, (5, 5))
    script = tmp_path / "build/cmake_install.cmake"
    script.write_text(f'file(INSTALL DESTINATION "x" TYPE FILE FILES "{source.as_posix()}")\n')
    wanted = {"build/editable/c10/a.h", "build/editable/c10/mine.h"}
    assert find_copies(tmp_path, tmp_path / "build", wanted) == {"build/editable/c10/a.h"}


@each_case(
    ("path", "asked"),
    [
        ("build/CMakeFiles/x.dir/a.o", False),
        ("build/c10/CMakeFiles/c10.dir/a.o", False),
        ("build/CMakeCache.txt", False),
        ("build/torchbuild-manifest.json", False),
        ("build/editable/CACHEDIR.TAG", False),
        ("torch/version.py", False),
        ("build/abi-check", False),
        ("build/aten/src/ATen/OperatorsEverything.cpp", False),
        ("build/caffe2/build_variables.bzl", False),
        ("build/third_party/protobuf/cmake/lib/cmake/protobuf/protobuf-options.cmake", False),
        ("build/aten/src/ATen/mine.cpp", True),
        ("build/notes.txt", True),
        ("build/editable/torch/lib/libc10.so", True),
        ("torch/lib/libc10.so", True),
    ],
)
def test_what_needs_a_name(path: str, asked: bool) -> None:
    outputs = recordable_outputs(load_catalog(), "setuptools")
    assert outputs.below("build/").needs_name(path) is asked
    if path.startswith("build/"):
        elsewhere = outputs.below("out/debug/")
        assert elsewhere.needs_name(path.replace("build/", "out/debug/", 1)) is asked
