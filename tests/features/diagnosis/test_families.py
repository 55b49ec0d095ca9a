"""Errors that look alike and are not: one rule reads several tools' and projects' words, and no neighbour's."""

# ruff: noqa: E501  (a wording in one line)

from __future__ import annotations

import pytest

from tests.support.diagnosis import read
from tests.support.for_each import each_case

STOP = "CMake Error at CMakeLists.txt:7 (message):\n  {}\n\n\n-- Configuring incomplete, errors occurred!"
FIND = (
    "CMake Error at /c/FindPackageHandleStandardArgs.cmake:233 (message):\n  Could NOT find {0} (missing: {1})\n"
    "Call Stack (most recent call first):\n  /c/FindPackageHandleStandardArgs.cmake:603 (_FPHSA_FAILURE_MESSAGE)\n"
    "  {2}:175 (find_package_handle_standard_args)\n  CMakeLists.txt:8 (find_package)"
)
CUB = '/usr/local/cuda/include/{}(52): error: namespace "cub" has no member "{}"'
UNDEFINED = "/usr/bin/ld: a.o: undefined reference to `{}'\ncollect2: error: ld returned 1 exit status"


@each_case(
    ("log", "said"),
    [
        # A variable of the project without a value is no value that a compiler refuses.
        (STOP.format("FLATC_EXECUTABLE must be set when FOO_BUILD_FLATC is disabled."), "-DFLATC_EXECUTABLE=…"),
        (STOP.format("You must define ANDROID_ABI before this."), "-DANDROID_ABI=…"),
        (STOP.format("Variable ONEMKL_SYCL_SPEC is not set"), "-DONEMKL_SYCL_SPEC=…"),
        # A flag switches a part of the language off.
        ("a.h:9:3: error: exception handling disabled, use ‘-fexceptions’ to enable", "-fno-exceptions out"),
        ("a.h:9:3: error: cannot use 'throw' with exceptions disabled", "-fno-exceptions out"),
        ("a.h:9:3: error: use of typeid requires -frtti", "-fno-rtti out"),
        ("a.h:9:3: error: ‘dynamic_cast’ not permitted with ‘-fno-rtti’", "-fno-rtti out"),
        # A library that nothing builds is not deleted.
        ("libcudnn.so: error adding symbols: File in wrong format", "no build made it"),
        ("/h/me/libnvinfer.so: file not recognized: file format not recognized", "tells what it is"),
        ("libopenblas.so: error adding symbols: File in wrong format", "no build made it"),
        # CMake finds a package, and not its library.
        (FIND.format("Torch", "TORCH_LIBRARY", "/v/torch/share/cmake/Torch/TorchConfig.cmake"), "CMAKE_FIND_ROOT_PATH"),
        (FIND.format("glog", "glog_LIBRARY glog_X", "/o/lib/cmake/glog-config.cmake"), "CMAKE_FIND_ROOT_PATH"),
        # A file that a variable names.
        (
            "CMake Error at /c/CMakeDetermineSystem.cmake:154 (message):\n  Could not find toolchain file:\n  /scripts/vcpkg.cmake",
            "-DCMAKE_TOOLCHAIN_FILE",
        ),
        (STOP.format("CUTLASS_SOURCE_PATH '/o/cutlass' does not exist"), "-DCUTLASS_SOURCE_PATH=…"),
        # torch for CPUs under what needs a GPU.
        (STOP.format("A GPU build was asked for but this PyTorch installation\n  does not support CUDA."), "--index-url"),
        ("RuntimeError: foo needs ROCm, and this torch was built without HIP", "--index-url"),
        ("error: PyTorch is CPU-only, cannot build kernels", "--index-url"),
        # Bazel.
        ("ERROR: /r/BUILD:3:11: no such package '@rules_cc//cc': The repository '@rules_cc' could not be resolved", "--enable_workspace"),
        ("ERROR: Analysis failed: No repository visible as '@zlib' from main repository", "--enable_workspace"),
        ("ERROR: /r/e/z/BUILD.bazel:2:11: @z//:z: missing input file 'external/z/zz.h', owner: '@z//:zz.h'", "The BUILD file"),
        # The names of a release.
        ("ERROR: Requested a==0.2+cu1 from https://x/a-0.2.whl has different version in metadata: '0.2'", "The release is wrong"),
        ("ERROR: Requested b from file:///b-1.tar.gz has inconsistent name: expected 'b', but metadata has 'unknown'", "The release is wrong"),
        # A daemon that remembers a folder which was deleted.
        ("  Caused by:\n      0: Failed to stat `/s/e/buck-out/v2`\n      1: ENOENT: No such file or directory\nerror: command 'x' failed", "bazel shutdown"),
        # Two versions of a part.
        (CUB.format("thrust/system/cuda/x.h", "DebugSyncStream"), "Leave one copy"),
        ("/v/include/google/protobuf/a.h:4:9: error: ‘Arena’ is not a member of ‘google::protobuf’", "Leave one copy"),
        (UNDEFINED.format("caffe2::NetDef::NetDef(google::protobuf::Arena*)"), "takes a type of protobuf"),
        # A name whose quotes are lost.
        ("nms.h:140:11: error: cout is not a member of std", "#include <iostream>"),
    ],
)  # fmt: skip
def test_the_family_is_read(log: str, said: str) -> None:
    assert said in read(log).diagnoses[0].fix


@each_case(
    ("log", "wrong"),
    [
        (STOP.format("FOO_LEVEL must be one of 1 2 3"), "-DFOO_LEVEL=…"),
        (STOP.format("CUDNN_ROOT not set"), "-DCUDNN_ROOT=…"),
        ("a.h:9:3: error: exception specification does not match", "-fno-exceptions"),
        ("build/lib/libfoo.so: error adding symbols: File in wrong format", "no build made it"),
        (FIND.format("Torch", "TORCH_LIBRARY", "/c/FindTorch.cmake"), "CMAKE_FIND_ROOT_PATH"),
        (STOP.format("This PyTorch supports CUDA, but nvcc is not found"), "--index-url"),
        ("ERROR: /r/BUILD:3:11: no such target '//a:b': target 'b' not declared", "--enable_workspace"),
        ("error: [Errno 2] No such file or directory: '/s/e/out/v2'", "bazel shutdown"),
        # The project's own file, not a header of the part.
        ('/s/k.cu(52): error: namespace "cub" has no member "DebugSyncStream"', "Leave one copy"),
        (UNDEFINED.format("google::protobuf::X::f(google::protobuf::Arena*)"), "takes a type of"),
        (UNDEFINED.format("at::native::f(at::Tensor const&)"), "takes a type of"),
    ],
)  # fmt: skip
def test_its_neighbour_is_not(log: str, wrong: str) -> None:
    assert wrong not in read(log).diagnoses[0].fix


def test_conflicts_that_an_old_pip_installs_over_are_no_failure() -> None:
    conflict = "ERROR: foo 2.0 has requirement bar>=3.8.0, but you'll have bar 3.7.1 which is incompatible.\n"
    assert (
        read(conflict + "Installing collected packages: bar\nSuccessfully installed bar-3.7.1").status
        == "clean"
    )
    assert read(conflict + "Installing collected packages: bar").status == "clean"
    assert (
        read("foo 2.0 has requirement bar>=3.8.0, but you have bar 3.7.1.\nmake: *** [x] Error 1").status
        != "clean"
    )


def test_what_tests_print_that_all_pass_is_no_failure() -> None:
    raised = "ValueError: no such thing\n"
    assert read(raised + "===== 10 passed, 2 skipped, 1 warning in 3.20s =====").status == "clean"
    assert read(raised + "100% tests passed, 0 tests failed out of 7").status == "clean"
    assert read(raised + "===== 1 failed, 10 passed in 3.20s =====").status != "clean"
    assert read(raised + "===== 10 passed, 1 error in 3.20s =====").status != "clean"
    assert read("10 passed in 3.20s\n" + raised).status != "clean"
    assert read("a.cpp:3:1: error: expected ;\n10 passed in 3.20s").status != "clean"


HEADER = "src/a.cpp:3:10: fatal error: gflags/x.h: No such file or directory\n    3 | #include <gflags/x.h>"


@pytest.mark.parametrize(
    "line",
    [
        "libgflags-dev is already the newest version (2.2.2-2).",
        "Setting up libgflags-dev:amd64 (2.2.2-2) ...",
    ],
)
def test_what_the_log_shows_as_installed_is_not_installed_again(line: str) -> None:
    assert "changes nothing" in read(f"{line}\n{HEADER}").diagnoses[0].fix
    assert (
        "sudo apt install libgflags-dev"
        in read(f"Setting up libgflags2.2 (2.2.2-2)\n{HEADER}").diagnoses[0].fix
    )
