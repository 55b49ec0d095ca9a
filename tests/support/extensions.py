"""Extensions of torch, one a build style, each with one operator that computes a * b + 1."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.preflight import RecordingReporter


class Telling(RecordingReporter):
    """A reporter that remembers its notes, and the output of the programs."""

    def __init__(self) -> None:
        super().__init__()
        self.output = b""

    def block(self, block: bytes) -> None:
        self.output += block

    def __getattr__(self, name: str) -> Any:
        return lambda *words, **how: True


OPERATOR = """\
#include <torch/library.h>
#include <ATen/ATen.h>
static at::Tensor muladd(const at::Tensor& a, const at::Tensor& b) { return a * b + 1; }
TORCH_LIBRARY(NAME, m) { m.def("muladd(Tensor a, Tensor b) -> Tensor", muladd); }
"""
# A module of Python that holds nothing: importing it runs what registers the operator.
MODULE = """\
#include <Python.h>
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_C", 0, -1, 0, 0, 0, 0, 0};
PyMODINIT_FUNC PyInit__C(void) { return PyModule_Create(&module); }
"""
STABLE = """\
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/tensor.h>
using torch::stable::Tensor;
static int64_t dimensions(const Tensor& a) { return a.dim(); }
void boxed(StableIValue* stack, uint64_t, uint64_t) {
  stack[0] = torch::stable::detail::from(dimensions(torch::stable::detail::to<Tensor>(stack[0])));
}
STABLE_TORCH_LIBRARY(NAME, m) { m.def("dimensions(Tensor a) -> int"); }
STABLE_TORCH_LIBRARY_IMPL(NAME, CompositeExplicitAutograd, m) { m.impl("dimensions", &boxed); }
"""
SETUP = """\
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension
setup(name="NAME", version="1.0", packages=["NAME"], install_requires=ASKS,
      ext_modules=[CppExtension("NAME._C", ["op.cpp", "module.cpp"], extra_compile_args=["-O0"]KIND)],
      cmdclass={"build_ext": BuildExtension}, options=OPTIONS)
"""
CMAKE = """\
cmake_minimum_required(VERSION 3.18)
project(NAME LANGUAGES CXX)
find_package(Python REQUIRED COMPONENTS Interpreter Development.Module)
find_package(Torch REQUIRED)
python_add_library(_C MODULE op.cpp module.cpp WITH_SOABI)
target_compile_options(_C PRIVATE -O0)
target_compile_features(_C PRIVATE cxx_std_20)
target_link_libraries(_C PRIVATE ${TORCH_LIBRARIES})
install(TARGETS _C DESTINATION NAME)
"""
PYPROJECT = """\
[build-system]
requires = ["scikit-build-core", "torch==1.0"]
build-backend = "scikit_build_core.build"
[project]
name = "NAME"
version = "1.0"
"""
CUDA = """\
__global__ void kernel(float* a) { a[threadIdx.x] += 1; }
extern "C" void launch(float* a) { kernel<<<1, 32>>>(a); }
"""
INIT = "import torch\nfrom . import _C\n"


def lay_extension(folder: Path, name: str, **texts: str) -> Path:
    """Write an extension's files; `texts` replace some by their name, with `_` for a dot."""
    (folder / name).mkdir(parents=True)
    files = {"op.cpp": OPERATOR, "module.cpp": MODULE, f"{name}/__init__.py": INIT}
    files |= {file.replace("_", ".", 1): text for file, text in texts.items()}
    for file, text in files.items():
        (folder / file).write_text(text.replace("NAME", name), "utf-8")
    return folder


def setuptools_extension(folder: Path, name: str, asks: str = "[]", **texts: str) -> Path:
    """Lay out one of torch.utils.cpp_extension."""
    setup = SETUP.replace("ASKS", asks).replace("KIND", "").replace("OPTIONS", "{}")
    return lay_extension(folder, name, **{"setup_py": setup, **texts})


def stable_extension(folder: Path, name: str) -> Path:
    """Lay out one with the stable ABI of torch and the limited API of Python: one wheel for many of both."""
    kind = ', py_limited_api=True, define_macros=[("Py_LIMITED_API", "0x03090000")]'
    setup = SETUP.replace("ASKS", "[]").replace("KIND", kind)
    setup = setup.replace("OPTIONS", '{"bdist_wheel": {"py_limited_api": "cp39"}}')
    return lay_extension(folder, name, setup_py=setup, op_cpp=STABLE)


def cmake_extension(folder: Path, name: str, *, cuda: bool = False) -> Path:
    """Lay out one of scikit-build-core that finds torch by CMake; its build asks for a torch of long ago.

    With `cuda` it has a kernel, whose architectures its CMakeLists.txt leaves to the environment.
    """
    cmake = CMAKE.replace("CXX)", "CXX CUDA)").replace("op.cpp", "op.cpp own.cu") if cuda else CMAKE
    files = {"CMakeLists_txt": cmake, "pyproject_toml": PYPROJECT, "own_cu": CUDA}
    return lay_extension(folder, name, **files)
