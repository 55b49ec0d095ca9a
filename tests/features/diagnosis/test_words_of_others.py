"""Words of a commit or an option are no error, and a fix is for who speaks and for what its package has."""

# ruff: noqa: E501  (a wording in one line)

from __future__ import annotations

from tests.features.diagnosis.test_claims import elsewhere
from tests.support.diagnosis import read
from tests.support.for_each import each_case

COMMIT = "commit 1058e0ab8a129d66855561cbbd45b3703714fadf\nAuthor: n <a@b>\nDate:   Sun Nov 29 23:53:57 2026 +0000\n\n"
FULLER = "AuthorDate: Sun Nov 29 23:53:57 2026 +0000\nCommit:     n <a@b>\nCommitDate: Sun Nov 29 23:53:57 2026 +0000\n\n"
PTXAS = "ptxas fatal   : Value 'sm_121a' is not defined for option 'gpu-name'"
PIP = "ERROR: Could not find a version that satisfies the requirement {} (from versions: 2.0.0, {})"
POETRY = "  - Installing torch (2.7.1): Failed\n\n    | Unable to find installation candidates for torch (2.7.1)\n    | \n    |   - 24 candidate(s) were identified"
TRIAL = """-- The CXX compiler identification is unknown
CMake Error at /usr/share/cmake-3.25/Modules/CMakeTestCXXCompiler.cmake:60 (message):
  The C++ compiler

    "/x/g++"

  is not able to compile a simple test program.

  It fails with the following output:

    {}
    ninja: build stopped: subcommand failed.
"""
DECODE = "UnicodeDecodeError: 'utf-8' codec can't decode byte 0xff in position 54: invalid start byte"
FULL = "CMake Error at /usr/share/cmake-3.25/Modules/CMakeDetermineSystem.cmake:192 (configure_file):\n  No space left on device"
START = "No such file or directory\nCMake Error: Generator: execution of make failed. Make command was: "


@each_case(
    ("log", "status"),
    [
        (COMMIT + "    Add error submodule\n", "clean"),
        (COMMIT + "    Mend it\n    \n    error: this was fatal\n    ld: cannot find -lx", "clean"),
        (FULLER + "    CMake Error at a.txt:1 (message)", "clean"),
        (COMMIT + "    Mend it\nfatal: bad object x", "diagnosed"),
        ("  - Build settings: CXX_FLAGS= -Werror=format -Wno-error, USE_X=OFF\n1.0", "clean"),
        ("CXX_FLAGS=-Wno-error=format,-Werror", "clean"),
        ("g++: error: unrecognized command-line option '-Wno-errors'", "diagnosed"),
        ("tool: -Wno-error is not known", "unknown"),
    ],
)  # fmt: skip
def test_a_commit_and_an_option_are_no_error(log: str, status: str) -> None:
    assert read(log).status == status


@each_case(
    ("log", "said", "not_said"),
    [
        # Triton's exception says whose ptxas it is, where no frame of the traceback is near.
        (f"triton.runtime.errors.PTXASError: PTXAS error: Internal Triton PTX codegen error\n`ptxas` stderr:\n{PTXAS}", "TRITON_PTXAS_PATH", "which -a nvcc"),
        (PTXAS, "which -a nvcc", "TRITON_PTXAS_PATH"),
        # 2.2.2 is the newest on Macs with Intel alone.
        (PIP.format("torch==2.5.1", "2.2.2"), "arm64", "uv venv"),
        (PIP.format("torch>=2.10", "2.2.2"), "arm64", "uv venv"),
        (PIP.format("torch==2.5.1", "2.4.1"), "pip found", "Rosetta"),
        (PIP.format("torch==1.8.1", "2.2.2"), "pip found", "Rosetta"),
        (PIP.format("torch==2.5.1", "2.2.2") + "\nLinux-6.1", "pip found", "Rosetta"),
        # NVIDIA's wheels have no file that -l finds; a header is in them.
        ("mold: fatal: library not found: cudnn", "ln -s libcudnn.so.N", "Rosetta"),
        ("/usr/bin/ld: cannot find -lnccl: No such file or directory", "-l:libnccl.so.N", "Rosetta"),
        ("a.cpp:1:10: fatal error: cudnn.h: No such file or directory", "nvidia-cudnn", "ln -s"),
        # Who decodes stands above the exception.
        ("torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:\n" + DECODE, "VSLANG=1033", "iconv"),
        ("torch._inductor.exc.InductorError: " + DECODE, "VSLANG=1033", "iconv"),
        (DECODE, "iconv", "VSLANG"),
        # SELinux says so in other words than a new glibc does.
        ("ImportError: libx.so: cannot enable executable stack as shared object requires: Permission denied", "getenforce", "Rosetta"),
        ("ImportError: libx.so: cannot enable executable stack as shared object requires: Invalid argument", "patchelf", "getenforce"),
        # torch's own sources for CUDA are compiled by clang where they were to be converted.
        ("In file included from /pt/aten/src/THC/THCSleep.cu:1:\n/pt/build/aten/src/THC/THCGeneral.h:13:10: fatal error: 'cuda_runtime.h' file not found", "build_amd.py", "Rosetta"),
        ("/x/src/a.cu:1:10: fatal error: 'cuda_runtime.h' file not found", "--cuda-path", "build_amd.py"),
        # A compiler that was tried is there; one that is not is still to be installed.
        (TRIAL.format("FAILED: a.o"), "/x/g++ is there", "apt install g++"),
        (TRIAL.format("collect2: internal error: Segmentation fault signal terminated program ld"), "version of the compiler", "apt install g++"),
        ("-- The CXX compiler identification is unknown\nCMake Error at CMakeLists.txt:2 (project):\n  No CMAKE_CXX_COMPILER could be found.", "g++", "is there, so"),
        ("ccache: error: execute_noreturn of /x/empty failed: Exec format error", "file -L /x/empty", "whole path"),
        ("ccache: error: execute_noreturn of /x/g++ failed: No such file or directory", "whole path", "file -L"),
        # What cmake --build starts is in its cache.
        (START + "/v/bin/ninja -j 2 install && ", "CMakeCache.txt", "CMakeConfigureLog"),
        (START + " -f Makefile -j", "CMakeCache.txt", "CMakeConfigureLog"),
        # The script that met the error does not lie where the disk is full.
        (FULL, "df -h in the build folder", "/usr/share"),
        ("cp: error writing '/big/pt/x.o': No space left on device", "df -h /big/pt/", "TMPDIR (else"),
        # Names of a library that another version of it has.
        ("a.cpp:2:1: error: use of enum ‘AVLockOp’ without previous declaration", "the version of FFmpeg", "Look at that line"),
        ("a.cpp:2:1: error: ‘AV_LOCK_CREATE’ was not declared in this scope", "the version of FFmpeg", "Look at that line"),
        ('k.cu(4): error: namespace "thrust" has no member class "unary_function"', "CUDA 12 toolkit", "Look at that line"),
        ('k.cu(4): error: namespace "cub" has no actual member "Max"', "CUDA 12 toolkit", "Look at that line"),
        (POETRY, "torch 2.7 has wheels for Python", "Rosetta"),
    ],
)  # fmt: skip
def test_a_fix_is_for_who_speaks_and_what_is_there(log: str, said: str, not_said: str) -> None:
    fix = elsewhere(log).fix
    assert said in fix, fix
    assert not_said not in fix, fix
