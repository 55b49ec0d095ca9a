"""Stub libraries of the driver: what the header declares can be linked with, and says that it is none."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.capabilities import needs_linux_compiler
from torchbuild_tasks.features.toolkit.linux import add_stubs

HEADER = """
typedef enum { CUDA_SUCCESS = 0 } CUresult;
#define cuMemAlloc cuMemAlloc_v2
CUresult cuInit(unsigned flags);
CUresult cuMemAlloc(void **p, unsigned long n);
static inline int cuInline_(void) { return 0; }
#if defined(__CUDA_API_VERSION_INTERNAL)
#undef cuMemAlloc
CUresult cuMemAlloc(void **p, unsigned n);
#endif
"""


def headers(folder: Path) -> None:
    (folder / "include").mkdir()
    (folder / "include" / "cuda.h").write_text(HEADER, "utf-8")
    (folder / "include" / "nvml.h").write_text("int nvmlInit_v2(void);\n", "utf-8")


@pytest.mark.integration
@needs_linux_compiler
def test_every_declared_function_can_be_linked_with(tmp_path: Path) -> None:
    headers(tmp_path)
    said: list[str] = []
    add_stubs(tmp_path, said.append, ("cc", "gcc", "clang", "c++", "g++", "clang++"))
    assert said == []
    stub = tmp_path / "lib/stubs/libcuda.so"
    library = ctypes.CDLL(str(stub))
    assert [library[name]() for name in ("cuInit", "cuMemAlloc", "cuMemAlloc_v2")] == [34, 34, 34]
    assert ctypes.CDLL(str(tmp_path / "lib/stubs/libnvidia-ml.so")).nvmlInit_v2() == 12
    assert b"libcuda.so.1\0" in stub.read_bytes(), "a program linked with it asks for the driver's own"
    assert sorted(path.name for path in stub.parent.iterdir()) == ["libcuda.so", "libnvidia-ml.so"]
    before = stub.stat().st_mtime_ns
    add_stubs(tmp_path, said.append)
    assert stub.stat().st_mtime_ns == before


@pytest.mark.integration
@needs_linux_compiler
def test_a_header_that_declares_nothing_makes_none_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "cuda.h").write_text("#error not for this compiler\n", "utf-8")
    said: list[str] = []
    add_stubs(tmp_path, said.append)
    assert [text.partition(" with")[0] for text in said] == ["no stub of libcuda.so can be made of cuda.h"]
    assert not (tmp_path / "lib/stubs/libcuda.so").exists()


def test_without_a_compiler_there_is_none_and_that_is_reported(tmp_path: Path) -> None:
    headers(tmp_path)
    said: list[str] = []
    add_stubs(tmp_path, said.append, ("no-such-compiler",))
    assert said == ["no C compiler (no-such-compiler) is on PATH: no stub libraries of the driver are made"]
    assert not (tmp_path / "lib").exists()


def test_stubs_of_a_part_are_enough(tmp_path: Path) -> None:
    headers(tmp_path)
    (tmp_path / "lib/stubs").mkdir(parents=True)
    for name in ("libcuda.so", "libnvidia-ml.so"):
        (tmp_path / "lib/stubs" / name).write_bytes(b"")
    add_stubs(tmp_path, lambda text: pytest.fail(text), ("no-such-compiler",))


@pytest.mark.integration
@needs_linux_compiler
def test_a_program_that_is_linked_with_the_stub_wants_the_driver(tmp_path: Path) -> None:
    headers(tmp_path)
    add_stubs(tmp_path, lambda text: pytest.fail(text))
    (tmp_path / "main.c").write_text(
        '#include "include/cuda.h"\nint main(void) { return cuInit(0); }\n', "utf-8"
    )
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))))
    subprocess.run([compiler, "main.c", "-o", "main", "-Llib/stubs", "-lcuda"], cwd=tmp_path, check=True)
    assert b"libcuda.so.1\0" in (tmp_path / "main").read_bytes()
