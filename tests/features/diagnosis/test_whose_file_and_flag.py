"""What the error names decides: the file that is not right, the compiler that is not there, a flag of the log."""

# ruff: noqa: E501  (a message in one line)

from __future__ import annotations

from tests.features.diagnosis.test_premises import read
from tests.support.for_each import each_case

_CMAKE = "-- /usr/lib/x86_64-linux-gnu\nCMake Error at /usr/share/cmake-3.25/Modules/FindPackageHandleStandardArgs.cmake:230 (message):\n"


@each_case(
    "log, said, not_said",
    [
        # a description of a build is named with its line
        (
            "meson.build:1:8: ERROR: Double quotes are not supported. Use single quotes.",
            "that line of meson.build",
            "Dockerfile",
        ),
        ('sub/meson.build:4:0: ERROR: Unknown function "frob".', "that line of sub/meson.build", "No row"),
        ("meson_options.txt:1:3: ERROR: Invalid option type", "that line of meson_options.txt", "No row"),
        (
            "error: duplicate key\n --> Cargo.toml:8:2\n  |\n8 | [dependencies]\n  |  ^^^^^^^^^^^^",
            "Cargo.toml:8:2 is the place",
            "setuptools",
        ),
        (
            "error: invalid table header\n --> crates/a/Cargo.toml:3:1\n  |",
            "crates/a/Cargo.toml:3:1 is the place",
            "setuptools",
        ),
        (
            "error: failed to parse manifest at `/x/Cargo.toml`\n\nCaused by:\n  missing field `package`",
            "/x/Cargo.toml is the place",
            "setuptools",
        ),
        # Debian's venv, and a back end without the hook of editable installs
        (
            "Error: Command '['/w/bin/python3', '-m', 'ensurepip', '--upgrade']' returned non-zero exit status 1.",
            "python3-venv",
            "stands above",
        ),
        (
            "  - Installing foo (0.1 /x): Failed\n\n  HookMissing\n\n  build_editable\n\n  at ~/lib/pyproject_hooks/_impl.py:345 in build_editable\n",
            "without -e",
            "No row",
        ),
        (
            "error: failed to parse manifest at `/x/Cargo.toml`\n\nCaused by:\n  feature `edition2024` is required",
            "newer Cargo",
            "one name",
        ),
        (
            "flit_core.config.ConfigError: license field should be <class 'dict'>, not <class 'str'>",
            "flit_core>=3.11",
            "setuptools",
        ),
        # what lacks is a program, which no development files bring
        (
            "error: could not execute process `sccache rustc -vV` (never executed)\n\nCaused by:\n  No such file or directory (os error 2)",
            "RUSTC_WRAPPER",
            "No row",
        ),
        (f"{_CMAKE}  Could NOT find SWIG (missing: SWIG_EXECUTABLE SWIG_DIR)\n", "install swig", "Config"),
        (
            f"{_CMAKE}  Could NOT find PkgConfig (missing: PKG_CONFIG_EXECUTABLE)\n",
            "install pkg-config",
            "Config",
        ),
        (
            f"{_CMAKE}  Could NOT find Python3 (missing: Python3_EXECUTABLE Interpreter)\n",
            "not in PATH",
            "Install the development",
        ),
        (
            f"{_CMAKE}  Could NOT find Python3 (missing: Python3_INCLUDE_DIRS Development)\n",
            "development files",
            "not in PATH",
        ),
        # the step before the link
        (
            "/usr/bin/ar: a.o: plugin needed to handle lto object\n/usr/bin/ld: main.o: undefined reference to `foo'",
            "gcc-ar",
            "grep -rn",
        ),
        (
            "a.obj : error LNK2001: unresolved external symbol __cudaRegisterLinkedBinary_12_a_cu_1234",
            "-dlink",
            "cudart.lib has",
        ),
        ("t.cu:1:10: fatal error: helper_math.h: No such file or directory", "cuda-samples", "apt-file"),
        (
            "AssertionError: in /p/native_functions.yaml:123:\n  could not parse",
            "Correct what it cannot read",
            "traceback",
        ),
        (
            "/usr/bin/ld:/p/libx.ver: file format not recognized; treating as linker script\n/usr/bin/ld:/p/libx.ver:1: syntax error",
            "--version-script=/p/libx.ver",
            "LLVM",
        ),
        (
            "setup.py: error: Cython>=3.0 is required, found 0.29.36",
            "Install the version that is asked for",
            "No row",
        ),
        (
            "CMake Error at /opt/homebrew/share/cmake/Modules/FindPackageHandleStandardArgs.cmake:230 (message):\n  Could NOT find OpenMP_C (missing: OpenMP_C_FLAGS)\n",
            "brew --prefix libomp",
            "apt",
        ),
        # what a generator includes
        ("/p/f.i:2: Error: Unable to find 'base.i'", "find . -path '*base.i'", "brings it back"),
        (
            "error: a.fbs:1: 0: error: unable to locate include file: base.fbs",
            "find . -path '*base.fbs'",
            "git diff",
        ),
        (
            "error: Could not find include file 'mlir/IR/OpBase.td'",
            "find . -path '*mlir/IR/OpBase.td'",
            "git diff",
        ),
        # a compiler that is nowhere has no whole path
        (
            'ccache: error: Could not find compiler "x86_64-conda-linux-gnu-c++" in PATH',
            "unset CC CXX",
            "CUDA_HOME",
        ),
        ('ccache: error: Could not find compiler "g++-99" in PATH', "No program g++-99", "whole path"),
        ("/bin/sh: 1: aarch64-conda-linux-gnu-cc: not found", "is conda's", "apt"),
        ("ccache: error: Recursive invocation of ccache", "whole path", "No program"),
        # Python found the module, so it is there
        (
            "ImportError: /x/ops/_C.so: cannot open shared object file: No such file or directory",
            "uname -m",
            "LD_LIBRARY_PATH names",
        ),
        (
            "OSError: /x/ops/lib_C.so: cannot open shared object file: No such file or directory",
            "Build and install",
            "uname",
        ),
        # two MSVC
        (
            "a.obj : error LNK2001: unresolved external symbol __imp___tls_index_?x@?1??f@@YAXXZ@4_NA",
            "vcvars_ver",
            "grep -rn",
        ),
        (
            "ImportError: /x/p/_C.so: cannot allocate memory in static TLS block",
            "LD_PRELOAD=/x/p/_C.so",
            "find /",
        ),
        (
            "Could not load bitsandbytes native library: /x/libbitsandbytes_cpu.so: cannot open shared object file: No such file or directory",
            "COMPUTE_BACKEND",
            "BNB_CUDA_VERSION",
        ),
    ],
)
def test_the_fix_is_for_what_is_named(log: str, said: str, not_said: str) -> None:
    fix = read(log).diagnoses[0].fix
    assert said in fix
    assert not_said not in fix


@each_case(
    "flag, symbol, named",
    [
        ("0", "_ZN3c106detail14torchCheckFailEPKcS2_jRKSs", True),
        ("1", "_ZN3c106detail14torchCheckFailEPKcS2_jRKSs", False),
        (
            "1",
            "_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
            True,
        ),
        (
            "0",
            "_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
            False,
        ),
        ("0", "_ZN2at5zerosEv", False),
    ],
)
def test_the_flag_of_the_other_abi_is_named(flag: str, symbol: str, named: bool) -> None:
    log = f"c++ -O2 -D_GLIBCXX_USE_CXX11_ABI={flag} -c ops.cpp\nImportError: /x/ops.so: undefined symbol: {symbol}"
    assert (f"-D_GLIBCXX_USE_CXX11_ABI={flag}, and" in read(log).diagnoses[0].fix) is named


def test_what_stands_above_a_traceback_that_was_cut_is_the_error() -> None:
    cut = 'Traceback (most recent call last):\n  File "/x/a.py", line 1, in f\n    y()\n  File "/x/b.py", line 2, in g\n    z()'
    assert read(f"Could not load the native library: /x/y.bin is damaged\n{cut}").line_number == 1


def test_the_line_within_the_output_that_pip_shows_is_the_error() -> None:
    log = "  error: subprocess-exited-with-error\n  × Getting requirements to build wheel did not run successfully.\n  ╰─> [1 lines of output]\n      error in p setup command: use_2to3 is invalid.\n      [end of output]\n"
    assert read(log).line_number == 4


@each_case(
    "log",
    [
        "/pt/build/caffe2/CMakeFiles/torch_cpu.dir/a.cpp.o\nccache: error: Failed to create directory /x/tmp: Permission denied",
        "FAILED: caffe2/CMakeFiles/torch_cpu.dir/a.cpp.o\nc++: fatal error: Killed signal terminated program cc1plus",
    ],
)
def test_our_flags_are_not_for_a_build_that_is_not_here(log: str) -> None:
    told = read(log).diagnoses[0]
    assert "--set" not in told.fix
    assert "--jobs" not in told.fix
    assert not told.command


@each_case(
    "said, line",
    [
        ("    nvcc fatal   : Unsupported gpu architecture 'compute_50'", 9),
        ("    /usr/bin/ld: cannot find -lmkl_rt: No such file or directory", 9),
        ("    ninja: build stopped: subcommand failed.", 1),
    ],
)
def test_what_a_compiler_said_in_a_trial_is_the_error(said: str, line: int) -> None:
    log = f"""\
CMake Error at /usr/share/cmake-3.25/Modules/CMakeTestCUDACompiler.cmake:103 (message):
  The CUDA compiler

    "/usr/local/cuda/bin/nvcc"

  is not able to compile a simple test program.

  It fails with the following output:
{said}

Call Stack (most recent call first):
  CMakeLists.txt:2 (project)


-- Configuring incomplete, errors occurred!
"""
    assert read(log).line_number == line


def test_an_older_compiler_is_not_advised_beside_what_it_leaves() -> None:
    glibc = '/usr/include/bits/mathcalls.h(79): error: exception specification is incompatible with that of previous function "cospi" (declared at line 2 of /opt/cuda-12.6/include/crt/math_functions.h)'
    gnu = "/opt/cuda-12.6/include/crt/host_config.h:143:2: error: #error -- unsupported GNU version! gcc versions later than 13 are not supported!"
    first, second = read(f"{glibc}\n{gnu}").diagnoses
    assert (first.id, second.id) == ("glibc-241-cuda", "nvcc-gnu-version")
    assert "An older g++ alone leaves that error" in second.fix
    assert "g++-13" in read(gnu).diagnoses[0].fix
