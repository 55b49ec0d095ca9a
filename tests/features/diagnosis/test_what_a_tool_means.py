"""What a tool's message means for the way out: what it says is told, and what only looks like it is not."""

# ruff: noqa: E501  (a message in one line)

from __future__ import annotations

import pytest

from tests.support.diagnosis import read

COMMIT = "fatal: reference is not a tree: df63f88a364da6be3963b4924c327b12f88d7748"
CMAKE = "CMake Error at b/cmake_install.cmake:52 (file):\n  file INSTALL cannot find"
NOT_RUN = (
    "error: failed to run custom build command for `a v0.1.0`\n\n"
    "Caused by:\n  could not execute process `/t/a` (never executed)\n\nCaused by:\n"
)


def advises(log: str, said: str, unsaid: str) -> None:
    fix = " ".join(f"{each.fix} {each.command}" for each in read(log).diagnoses)
    assert said in fix
    assert not unsaid or unsaid not in fix


@pytest.mark.parametrize(
    ("log", "said", "unsaid"),
    [
        (f"{COMMIT}\nCMake Error at x-populate-gitclone.cmake:40 (message):\n  Failed to checkout tag", "GIT_SHALLOW", "source reset"),
        (f"{COMMIT}\nUnable to checkout 'df63f88a' in submodule path 'third_party/x'", "torchbuild source reset", "GIT_SHALLOW"),
        (f"{NOT_RUN}  Permission denied (os error 13)", "CARGO_TARGET_DIR", "$USER"),
        (f"{NOT_RUN}  No such file or directory (os error 2)", "", "noexec"),
        (f'{CMAKE} "/b/libp.so": No\n  such file or directory.', "cmake --build", "git status"),
        (f'{CMAKE} "/s/README.md": No\n  such file or directory.', "git status", "cmake --build"),
        ("zork/x.proto: File not found.", "-I has to name", "--clean"),
        ('a.proto:2:1: Import "zork/x.proto" was not found or had errors.', "-I has to name", "--clean"),
        ("nvc++-Error-Unknown switch: -fwrapv", "CC=gcc", ""),
        ("g++: error: unrecognized command line option '-fzork'", "Take -fzork out", "CC=gcc"),
        ("C:/t/a.c:13: error: include file 'Python.h' not found\nC:/python_embeded/x", "embedded", "bootstrap"),
    ],
)  # fmt: skip
def test_the_message_decides(log: str, said: str, unsaid: str) -> None:
    advises(log, said, unsaid)


RAISED = (
    "Traceback (most recent call last):\n  File 'a.py', line 1\nModuleNotFoundError: No module named 'zork'"
)
LINK = "LINK : fatal error LNK1181: cannot open input file 'aio.lib'"


def test_a_traceback_that_is_cut_off_has_the_exception_that_was_passed_over_before() -> None:
    warned = "CMake Warning at a.cmake:2 (message):\n    " + RAISED.replace("\n", "\n    ")
    cut = "-- Generating\nTraceback (most recent call last):"
    assert "zork" in read(f"{warned}\n\n{cut}").error_line
    assert "zork" not in read(f"{warned}\n\n{cut}\n  File 'b.py', line 1\nValueError: b").error_line


def test_a_trial_that_a_script_only_warns_of_counts_last() -> None:
    warned = f"{LINK}\n [WARNING]  async_io requires libaio"
    assert "zork" in read(f"{warned}\n{RAISED}").error_line
    assert "LNK1181" in read(f"{LINK}\n{RAISED}").error_line
    assert "LNK1181" in read(warned).error_line
    assert "LNK1181" in read(f"{warned}\nerror: command 'link.exe' failed with exit code 1181").error_line


NO_INSTANCE = 'a.cu(7): error: no instance of function template "at::ceil_div" matches the argument list'
RAN = "FAILED: [code=127] p.o\nzork /usr/bin/c++ -Dp -o p.o -c p.cpp\n/bin/sh: 1:"


@pytest.mark.parametrize(
    ("log", "said", "unsaid"),
    [
        ("cc1: error: invalid feature modifier in '-march=armv8.2-a+fp16+bf16'", "g++ 10", ""),
        ("cc1: error: invalid feature modifier in '-march=armv8.2-a+zork'", "", "is the first that knows"),
        (f"D:/p/{NO_INSTANCE}\n            argument types are: (long long, long)", "long has 32 bits", ""),
        (f"/p/{NO_INSTANCE}\n            argument types are: (long long, long)", "", "long has 32 bits"),
        (f"D:/p/{NO_INSTANCE}\n            argument types are: (int, float)", "", "long has 32 bits"),
        ("mold: error: undefined symbol: f(std::__cxx11::basic_string<char> const&)", "_GLIBCXX_USE_CXX11_ABI", ""),
        ("mold: error: undefined symbol: f(int)", "grep -rn", "_GLIBCXX_USE_CXX11_ABI"),
        ("a.sh: line 1: ./configure: cannot execute: required file not found", "dos2unix", ""),
        ("a.sh: line 1: ./configure: cannot execute binary file: Exec format error", "", "dos2unix"),
        ("curl: (22) The requested URL returned error: 406", "The server answered", "HTTPS_PROXY"),
        ("curl: (22) The requested URL returned error: 503", "", "The server answered"),
        ("LINK : fatal error LNK1104: cannot open file 'python314.lib'", "Py_GIL_DISABLED", ""),
        ('CMake Error at C.txt:4 (find_package):\n  Could not find a package configuration file provided by "nanobind" with any\n', "--cmake_dir", ""),
        ("Fatal Error: Cannot open module file 'mpi_f08.mod' for reading at (1): No such file", "mpifort", ""),
        ("Fatal Error: Cannot open module file 'zork.mod' for reading at (1): No such file", "module zork", "mpifort"),
        (f"{RAN} zork: not found", "COMPILER_LAUNCHER", ""),
        ("FAILED: [code=127] p.o\nzork -o p.o\n/bin/sh: 1: zork: not found", "zork", "COMPILER_LAUNCHER"),
        ("error: Couldn't parse requirement in `r.txt` at position 6\n  cause: wildcards in versions must be at the end\n         torch==2.1.*+cu118\n", "==2.1.2+cu118", ""),
        ("error: can't copy 'build/x/_C.abi3.so': doesn't exist or not a regular file", "cmake>=3.26.1", ""),
        ("error: can't copy 'build/x/_C.so': doesn't exist or not a regular file", "", "3.26"),
        ("g.hpp:1:3: error: constexpr function never produces a constant expression [-Winvalid-constexpr]\n 1 | constexpr int get_warp_size()", "ROCm 7", "-Wno-error"),
        ("g.hpp:1:3: error: constexpr function never produces a constant expression [-Winvalid-constexpr]\n 1 | constexpr int f()", "-Wno-error", "ROCm 7"),
        ("d.cpp:1:2: error: 'JPEG_LIB_VERSION' was not declared in this scope", "libjpeg", ""),
        ("d.cpp:1:2: error: 'ZORK_LIB_VERSION' was not declared in this scope", "", "libjpeg"),
        ("CMake Error at cuda.cmake:70 (message):\n  Failed to find nvToolsExt", "Take torch 2.5 or newer", ""),
        ("ptxas fatal   : Memory allocation failure\nD:\\p\\a.cu(3): catastrophic error : out of memory", "page file", "dmesg"),
        ("ptxas fatal   : Memory allocation failure", "dmesg", "page file"),
        ("CMake Error: Unable to (re)create the private pkgRedirects directory:\n/b", "build folder", ""),
    ],
)  # fmt: skip
def test_what_is_known_of_the_message_leads_out(log: str, said: str, unsaid: str) -> None:
    advises(log, said, unsaid)


def test_a_cause_ends_with_the_sentence_that_it_quotes() -> None:
    hashes = "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE. If you have updated"
    assert read(hashes).diagnoses[0].cause.endswith("THE REQUIREMENTS FILE.")
