"""Which program speaks, whose a file is, and what a line before the error says, decide what is told."""

# ruff: noqa: E501  (a wording in one line)

from __future__ import annotations

from tests.support.diagnosis import read
from tests.support.for_each import each_case

HASH = "-- SHA256 hash of\n    /b/x.tar.gz\n  does not match expected value\n-- Hash mismatch, removing...\n"
EACH = "CMake Error at b/download-x.cmake:170 (message):\n  Each download failed!\n\n\n"
CHAIN = (
    "Traceback (most recent call last):\n  File \"/s/gen.py\", line 3, in parse\n    return TABLE[name]\n"
    "KeyError: 'int64_t'\n\nThe above exception was the direct cause of the following exception:\n\n"
    "Traceback (most recent call last):\n  File \"/s/gen.py\", line 9, in main\n    raise RuntimeError(x) from e\n"
)  # fmt: skip


@each_case(
    ("log", "kind", "told"),
    [
        # a port
        ("OSError: [Errno 98] Address already in use", "port-in-use", "ss -ltnp"),
        ("Error: listen tcp 0.0.0.0:8080: bind: address already in use", "port-in-use", "port 8080"),
        ("OSError: [WinError 10048] Only one usage of each socket address (protocol/network address/port)", "port-in-use", "netstat"),
        ("torch.distributed.DistBackendError: NCCL error in: /pt/x.cpp:3, ncclSystemError: System call failed", "gpu-communication", "NCCL_DEBUG"),
        # whose line it is
        ("k.asm:9: error: symbol `foo' undefined", "assembler", "NASM"),
        ("simd/x86_64/j.nasm:3: error: operation size not specified", "assembler", "NASM"),
        ("/tmp/ccAb.s:12: Error: no such instruction: `vdpbf16ps %zmm0'", "old-assembler", "binutils"),
        ("a.c:12: Error: operand size mismatch for `mov'", "assembler", "binutils"),
        ("faiss/python/swigfaiss.swig:21: Error: Unable to find 'x.h'", "generator", "swig"),
        ("include/v.hpp:7: Error: Syntax error in input(1).", "generator", "generate code"),
        # a script of the linker
        ("mold: fatal: exports.map:1: { global: a; local *; };", "syntax-error", "exports.map:1"),
        ("ld.lld: error: libtorch.ver:3: ; expected, but got }", "syntax-error", "libtorch.ver:3"),
        ("/usr/bin/ld:exports.map:1: syntax error in VERSION script", "syntax-error", "exports.map"),
        # what of Python is missing
        ("CMake Error at F.cmake:230 (message):\n  Could NOT find Python (missing: Python_NumPy_INCLUDE_DIRS NumPy) (found\n  version \"3.12.3\")", "missing-package", "install numpy"),
        ("CMake Error at F.cmake:230 (message):\n  Could NOT find Python3 (missing: NumPy) (found version \"3.9.1\")", "missing-package", "install numpy"),
        ("CMake Error at F.cmake:230 (message):\n  Could NOT find Python3 (missing: Python3_INCLUDE_DIRS Python3_NumPy_INCLUDE_DIRS\n  Development NumPy)", "missing-package", "python3-dev"),
        ("nox > Session tests-3.14 failed: Python interpreter 3.14 not found.", "python-version", "Python 3.14"),
        ("pyenv: version `3.13.9' is not installed (set by /s/.python-version)", "python-version", "pyenv install 3.13.9"),
        # a limit of memory
        ("virtual memory exhausted: Cannot allocate memory", "out-of-memory", "ulimit -v"),
        # a version of git's tags
        ("LookupError: setuptools-scm was unable to detect version for /p.", "no-version", "SETUPTOOLS_SCM_PRETEND_VERSION"),
        ("Traceback (most recent call last):\n  File \"/p/setup.py\", line 3, in <module>\nException: Versioning for this project requires either an sdist tarball, or access to an upstream git repository.", "no-version", "PBR_VERSION"),
        ("ValueError: Error getting the version from source `vcs`: setuptools-scm was unable to detect version for /p", "no-version", "git fetch --tags"),
        # a sanitizer is no crash
        ("==7==ASan runtime does not come first in initial library list; you should either link runtime to your application", "sanitizer", "LD_PRELOAD"),
        ("==7==Your application is linked against incompatible ASan runtimes.", "sanitizer", "LD_PRELOAD"),
        ("==7==ERROR: AddressSanitizer: heap-use-after-free on address 0x6", "crash", "that is of your own source"),
        # Fortran
        ("Error: Type mismatch in argument ‘a’ at (1); passed REAL(8) to INTEGER(4)", "default-error", "-fallow-argument-mismatch"),
        ("Error: Type mismatch between actual argument at (1) and actual argument at (2) (REAL(4)/COMPLEX(4)).", "default-error", "-fallow-argument-mismatch"),
        ("Fatal Error: Cannot open module file ‘mod/grid.mod’ for reading at (1): No such file or directory", "fortran-module", "module grid"),
        ("x.f90(3): error #7002: Error in opening the compiled module file.  Check INCLUDE paths.   [GRID]", "fortran-module", "GRID"),
        ("error: Cannot parse module file for module 'grid': Source file 'grid.mod' was not found", "fortran-module", "module grid"),
        # what CUDA took away
        ('a.cu(3): error: identifier "__any" is undefined', "cuda-removed", "__any_sync"),
        ('a.cu(3): error: identifier "cudaBindTexture2D" is undefined', "cuda-removed", "texture object"),
        ("a.cu(1): error: surface is not a template", "cuda-removed", "CUDA 12"),
        ('a.cu(3): error: identifier "__any_of" is undefined', "compile-error", ""),
        # of two packages both sides are named
        ("error: No solution found when resolving dependencies\n  cause: Because a==2 depends on b<3 and your project depends on a==2, we can conclude that x.\n  And because your project depends on b>=3, we can conclude that your requirements are unsatisfiable.", "package-conflict", "a==2 depends on b<3"),
        ("  Because xformers (0.0.23) depends on torch (2.1.1)\n   and p depends on torch (^2.6), version solving failed.", "package-conflict", "xformers (0.0.23) depends on torch (2.1.1)"),
        # the program that was given the file
        ("patchelf --set-rpath x t.dll\npatchelf: not an ELF executable\nmake: *** [Makefile:2: all] Error 1", "bad-object", "patchelf was given"),
        ("python -m pytest: error: unrecognized arguments: --cov=src", "unknown-option", "pytest-cov"),
        ("clang: error: invalid linker name in argument '-fuse-ld=wild'", "missing-tool", "leave that option out"),
        ("Error downloading object: m.bin (ab12): Smudge error: Error downloading m.bin\nerror: external filter 'git-lfs filter-process' failed\nfatal: m.bin: smudge filter lfs failed", "not-on-server", "GIT_LFS_SKIP_SMUDGE=1"),
        ("/usr/bin/ld: error: vendor/libq.a: file too short", "bad-object", "get it again"),
        ("NotImplementedError: Could not run 'fa::fwd' with arguments from the 'CUDA' backend. This could be because", "no-kernel", "for CUDA"),
        ("cc1: fatal error: fast.c: No such file or directory\ncompilation terminated.", "missing-source", "fast.pyx"),
        ("cc1plus: fatal error: /s/third_party/fmt/src/os.cpp: No such file or directory", "missing-source", "third_party/fmt"),
        # what CMake's targets lack
        ('CMake Error at b/C.txt:1 (add_library):\n  add_library cannot create ALIAS target "fmt::fmt" because another target with the\n  same name already exists.', "cmake-script", "Two parts of this build"),
        # an earlier line has the cause
        ("fatal: detected dubious ownership in repository at '/r'\nTo add an exception for this directory, call:\n\n\tgit config --global --add safe.directory /r\nCMake Error at C.txt:3 (execute_process):\n  execute_process failed command indexes:\n\n    1: \"Child return code: 128\"\n", "git-state", "safe.directory '/r'"),
        ("--   Package 'libavcodec', required by 'virtual:world', not found\nCMake Error at P.cmake:607 (message):\n  A required package was not found\n", "missing-package", "libavcodec"),
        ("-- No package 'libzmq' found\nCMake Error at P.cmake:607 (message):\n  A required package was not found\n", "missing-package", "libzmq"),
        (HASH + EACH, "damaged-download", "URL_HASH"),
        (EACH, "network", "curl"),
        ("error: failed to get `pyo3` as a dependency of package `b v0.1.0`\n\nCaused by:\n  download of config.json failed\n\nCaused by:\n  [6] Could not resolve hostname (Could not resolve host: index.crates.io)", "network", "CARGO_HTTP_PROXY"),
        ("error: failed to get `q` as a dependency of package `b v0.1.0`\n\nCaused by:\n  no matching package named `q` found", "package-not-found", "Cargo.toml"),
        (CHAIN + "RuntimeError: unrecognized type int64_t", "python-exception", "unrecognized type int64_t"),
        (CHAIN + "RuntimeError: no schema", "python-exception", "KeyError"),
    ],
)  # fmt: skip
def test_the_program_that_speaks_decides_what_is_told(log: str, kind: str, told: str) -> None:
    reading = read(log)
    assert reading.kind == kind
    assert told in "\n".join(f"{each.cause}\n{each.fix}" for each in reading.diagnoses)


def test_what_cargo_says_after_an_empty_line_is_not_joined_to_another_error() -> None:
    assert read("error: No solution found\n\nCould not resolve host: x").kind != "network"
