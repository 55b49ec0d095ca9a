"""What a failure needs before it: a file of the source, a script's definition, a release of what is included."""

# ruff: noqa: E501  (a message in one line)

from __future__ import annotations

from tests.support.diagnosis import read
from tests.support.for_each import each_case

_CALLED = 'CMake Error at b/run.cmake:12 (message):\n  Command failed: "/usr/bin/ninja" -v\n  Error code: 1\n'
_VS = "nvcc fatal   : nvcc cannot find a supported version of Microsoft Visual Studio. Only the versions between 2017 and 2019 are supported"
_LINKED = 's.obj : error LNK2019: unresolved external symbol "public: __cdecl triton::ast::A::A(void)" (??0A@ast@triton@@QEAA@XZ) referenced in function main'


@each_case(
    ("log", "kind", "said", "unsaid"),
    [
        # Ninja names a file that lacks, also where it was to run CMake again.
        ("ninja: error: rebuilding 'build.ninja': '/p/torchgen/x.py', needed by 'a.cmake', missing and no known rule to make it", "missing-source", "git status", "CMake stopped"),
        ("ninja: error: rebuilding 'build.ninja': subcommand failed", "build-graph", "CMake's own error", "git status"),
        # A command that no file has defined.
        ('CMake Error at a/CMakeLists.txt:29 (zork_add):\n  Unknown CMake command "zork_add".', "cmake-script", "(function|macro)\\( *zork_add", "Correct it"),
        ('CMake Error at a/CMakeLists.txt:29 (pybind11_add_module):\n  Unknown CMake command "pybind11_add_module".', "cmake-script", "once pybind11", "grep -rniE"),
        # A script that only says where the error stands.
        (f"{_CALLED}  See logs for more information:\n    /b/x-out.log\n", "cmake-error", "in /b/x-out.log", "meet that"),
        (_CALLED, "cmake-error", "meet that", "x-out.log"),
        # make's last word in any language; 127 is the shell's.
        ("gmake: *** [Makefile:208: portable_lib] Fehler 2", "command-failed", "stands above this line", "could not start"),
        ("make[3]: *** [x/cmake_device_link.o] Error 127", "command-failed", "make VERBOSE=1", "stands above this line"),
        # nvcc's host compiler on Windows is no g++.
        (_VS, "host-compiler", "vcvarsall.bat x64", "g++"),
        # A name before < that is no template, by GCC.
        ("a.cpp:4:45: error: expected primary-expression before '>' token\n    x.data_ptr<scalar_t>(),", "compile-error", "is no template", "Look at that line"),
        # The note names the header whose declaration the call does not fit.
        ("a.c:75:34: error: too few arguments to function call, expected 6, have 5\n  f(a);\n/u/zork.h:85:17: note: 'f' declared here", "compile-error", "The call and the declaration in /u/zork.h", "Look at that line"),
        ("a.cpp(12): error C2660: 'f': function does not take 5 arguments\nC:\\p\\zork.h(33): note: see declaration of 'f'", "compile-error", "in C:\\p\\zork.h", "Look at that line"),
        ("a.c:75:34: error: too few arguments to function call, expected 6, have 5\n  f(a);\na.c:5:1: note: 'f' declared here", "compile-error", "Look at that line", "The call and the declaration"),
        # A package of Python brings no symbol to a link.
        (_LINKED, "undefined-symbol", "missing from the link", "pip install"),
        ("a.cpp:3:10: fatal error: llvm/ADT/Optional.h: No such file or directory", "missing-header", "an older one", "apt install"),
    ],
)  # fmt: skip
def test_a_fix_meets_what_the_message_shows(log: str, kind: str, said: str, unsaid: str) -> None:
    reading = read(f"{log}\n")
    assert reading.kind == kind
    fix = " ".join(each.fix for each in reading.diagnoses)
    cause = " ".join(each.cause for each in reading.diagnoses)
    assert said in f"{cause} {fix}"
    assert unsaid not in f"{cause} {fix}"


@each_case(
    ("error", "has"),
    [
        ("error: 'symeig' is not a member of 'at'", "up to 1.13"),
        ("error: no member named 'symeig' in namespace 'at'", "up to 1.13"),
        ('error: namespace "at" has no member "symeig"', "up to 1.13"),
        ("error C2039: 'symeig': is not a member of 'at'", "up to 1.13"),
        ("error: 'AT_DISPATCH_SWITCH' was not declared in this scope", "from 1.13 on"),
        ("error: 'class at::Tensor' has no member named 'mutable_data_ptr'", "from 2.1 on"),
        ("error: 'InferenceMode' is not a member of 'torch'", "from 1.9 on"),
        ("error: 'class at::Tensor' has no member named 'zork'", ""),
        ("error: 'mutable_data_ptr' is not a member of 'zork'", ""),
    ],
)
def test_the_release_of_a_name_of_torchs_headers_is_looked_up(error: str, has: str) -> None:
    (told,) = read(f"/tmp/a/v.cpp:5:10: {error}\n").diagnoses
    assert (f"which torch's headers have {has}" in told.cause) is bool(has)
    assert (f"a torch that has it ({has})" in told.fix) is bool(has)


def test_a_header_of_torch_that_lacks_a_name_of_another_is_of_a_mixture() -> None:
    text = "/v/site-packages/torch/include/ATen/x.h:5:10: error: 'symeig' is not a member of 'at'\n"
    assert "headers have" not in read(text).diagnoses[0].cause


@each_case(
    ("cuda", "file", "unfit"),
    [("11.4.315", "cub.cuh", True), ("12.4.131", "cub.cuh", False), ("11.4.315", "cub.cpp", False)],
)
def test_a_cuda_that_torch_was_not_made_for_is_named_before_its_source_is(
    cuda: str, file: str, unfit: bool
) -> None:
    built = f"Building wheel torch-2.5.1a0+gita8d6afb\n-- The CUDA compiler identification is NVIDIA {cuda}\n"
    error = f'/p/aten/src/ATen/cuda/{file}(63): error: class "cub::F<c10::B>" cannot be specialized in the current scope\n'
    (told,) = read(built + error).diagnoses
    assert ("PyTorch 2.5.1a0 is not made for CUDA 11.4" in told.fix) is unfit
    assert ("Look at that line" in told.fix) is not unfit
