"""A fix speaks of nothing that neither the log nor a look-up shows: each case with one in which it is shown."""

# ruff: noqa: E501  (a message in one line)

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.features.diagnosis.test_premises import read
from tests.support.for_each import for_each
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.catalog.diagnosis import ComponentRow, FailureRow
from torchbuild_tasks.features.diagnosis.components import Components

_OURS = re.compile(r"\bUSE_\w+=|--with-helper|\btorchbuild\b")


def _logs(row: ComponentRow) -> Iterator[str]:
    """Yield an error of each form about a component, of a build that nothing shows to be torch's."""
    for name in (each.rstrip("$*#") for each in row.libs[:1]):
        yield f"/usr/bin/ld: cannot find -l{name}: No such file or directory"
    for name in (each.rstrip("$/") for each in row.headers[:1]):
        header = name if name.endswith(".h") else f"{name}/x.h"
        yield f"a.c:3:10: fatal error: {header}: No such file or directory"
    for name in (each.rstrip("$:_-") for each in row.packages[:1]):
        yield f'CMake Error at C.txt:3 (find_package):\n  Could not find a package configuration file provided by "{name}" with any of\n  the following names:'
    for name in (each.rstrip("$") for each in row.tools[:1]):
        yield f"/bin/sh: 1: {name}: not found"


def test_switches_of_torch_are_told_for_builds_of_torch_alone() -> None:
    rows = [row for row in load_catalog().component if row.name not in ("torch", "CPython")]
    told = {
        (row.name, log): found[0]
        for row in rows
        for log in _logs(row)
        for each in read(log).diagnoses
        if (found := _OURS.search(each.fix + each.command))
    }
    assert told == {}


def test_a_header_of_another_name_that_begins_alike_is_of_no_component() -> None:
    rows = load_catalog().component
    known = Components(rows)
    begun = [(row.name, each) for row in rows for each in row.headers if each[-1].isalpha()]
    names = [each for row in rows for each in row.headers]
    alone = [each for each in begun if not any(each[1].startswith(name) for name in names if name != each[1])]
    taken = [(name, each) for name, each in alone if known.find("header", f"{each}zork.h")]
    assert taken == []


@pytest.mark.parametrize(
    ("log", "said", "unsaid"),
    [
        # A word of a message is a part only where the message says that this is missing.
        ("CMake Error at C.txt:3 (message):\n  Could not find CUDA-aware MPI", "", "CUDA_HOME"),
        ("CMake Error at C.txt:3 (message):\n  Could not find CUDA", "CUDA_HOME", ""),
        ("CMake Error at C.txt:3 (message):\n  CMake variable FOO_DIR not found", "", "install cmake"),
        ("error: CMake 3.20 or newer is required", "cmake>=3.20", ""),
        ("CMake Error at C.txt:5 (project):\n  The CMAKE_CXX_COMPILER:\n\n    icx\n\n  is not a full path and was not found in the PATH.", "setvars.sh", "HIPCXX"),
        ("CMake Error at C.txt:5 (project):\n  The CMAKE_CXX_COMPILER:\n\n    g++-99\n\n  is not a full path and was not found in the PATH.", "HIPCXX", "setvars.sh"),
        ("RuntimeError: Failed to compile\n[WinError 2] The system cannot find the file specified: 'cl.exe'", "x64 Native Tools", "where NAME"),
        ("configure: error: libpng >= 1.6 required", "libpng-dev", ""),
        ("mold: error: duplicate symbol: a.o: b.o: zork()", "twice", ""),
        ("ERROR: torchvision 0.21.0 has requirement torch==2.6.0, but you have torch 2.4.1.", "'torch==2.6.0'", "new venv"),
        ("ImportError: torchvision>=0.16 is required for this module, but found torchvision==0.14.", "'torchvision>=0.16'", "CMAKE_PREFIX_PATH"),
        ("error: Cython module foo.pyx could not be found", "", "install cython"),
        ("CMake Error at C.txt:3 (message):\n  Cannot find Python package numpy", "install numpy", "python3-dev"),
        ("configure: error: torch extension is not installed", "", "pip install torch"),
        # Other processors and systems are none of the GPU's.
        ("error: unsupported platform: freebsd", "uname", "TORCH_CUDA_ARCH_LIST"),
        ("CMake Error at C.txt:3 (message):\n  Unsupported architecture: riscv64", "uname", "TORCH_CUDA_ARCH_LIST"),
        ("a.cu:3:2: error: #error Unsupported architecture", "TORCH_CUDA_ARCH_LIST", "uname"),
        ("a.c:1:10: fatal error: immintrin.h: No such file or directory", "another processor", "apt install"),
        ("a.c:1:2: error: #error This needs C++17", "CMAKE_CXX_STANDARD", "torch"),
        ("/x/include/ATen/core.h:1:2: error: #error This needs C++17", "torch", ""),
        # That a program was killed tells no reason.
        ("./run.sh: line 12:  4242 Killed                  ./server --port 80", "does not tell why", "MAX_JOBS=1"),
        ("Out of memory: Killed process 4242 (server)", "Memory ran out", "does not tell why"),
        ("MemoryError", "ulimit -v", "dmesg"),
        # No Python and no torch crashed.
        ("Illegal instruction (core dumped)", "gdb", "import"),
        ("app: ../src/x.cc:10: main: Assertion `x > 0' failed.\nAborted (core dumped)", "expression", "python"),
        ("FileNotFoundError: [WinError 2] The system cannot find the file specified", "where NAME", "setup_helpers"),
        # Whose package it is.
        ("a.c:1:10: fatal error: google/protobuf/message.h: No such file or directory", "libprotobuf-dev", "pip install"),
        ("Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\n    from google.cloud import storage\nModuleNotFoundError: No module named 'google'", "", "protobuf"),
        ("Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\n    from google.protobuf import any_pb2\nModuleNotFoundError: No module named 'google'", "install protobuf", ""),
        ("a.c:1:10: fatal error: llvm/IR/Module.h: No such file or directory", "llvm-dev", "install clang"),
        ("a.c:1:10: fatal error: sys/sysctl.h: No such file or directory", "2.32", "libc6-dev"),
        ("a.c:1:10: fatal error: sys/capability.h: No such file or directory", "libcap-dev", "libc6-dev"),
        ("/bin/sh: 1: swig: not found", "install swig.", "nasm"),
        ("/usr/bin/ld: cannot find -lrocksdb", "", "ROCm"),
        ("error[E0433]: failed to resolve: use of undeclared crate or module `foo`", "cargo add foo", "apt-file"),
        ('meson.build:10:0: ERROR: Dependency "zork" not found, tried pkgconfig', "zork.pc", "cmake"),
        ("==> Starting build()...\na.c:1:10: fatal error: zlib.h: No such file or directory", "pacman -S zlib", "apt install"),
        ("/tmp/spack-stage/spack-stage-x-1.0/a.c:1:10: fatal error: zlib.h: No such file or directory", "package.py", "apt"),
        (" Problem: conflicting requests\n  - nothing provides libx.so.1 needed by bar-1.0-1.el9.x86_64", "dnf repoquery", "conda"),
        ("Could not solve for environment specs\n  - nothing provides libx needed by bar-1.0-h1", "conda", "pytorch-cuda"),
        # Whether a host, a file or a module is meant.
        ("wget: unable to resolve host address 'x.example.org'", "getent hosts", ""),
        ("RuntimeError: Failed to resolve type annotation for forward", "", "getent hosts"),
        ("RuntimeError: failed to fetch next batch", "", "curl"),
        ("ERROR: Failed to fetch https://x.example.org/a.tar.gz", "curl", ""),
        ("curl: (23) Failure writing output to destination", "", "reachable"),
        # What is linked lacks a symbol, whatever is installed.
        ("/usr/bin/ld: a.o: undefined reference to `triton::zork()'", "missing from the link", "pip install"),
        ("/usr/bin/ld: a.o: undefined reference to `zeTest'", "grep -rn", "oneAPI"),
        ("/usr/bin/ld: a.o: undefined reference to `zeDriverGet'", "missing from the link", "Install Intel"),
        ("/usr/bin/ld: a.o: undefined reference to `__cxa_throw'", "Link C++ with c++", ""),
        # Which wheel has a library, and what a started program needs.
        ("ImportError: libgfortran-040039e1.so.5.0.0: cannot open shared object file: No such file or directory", "NAME.libs", "ninstall torch"),
        ("./app: error while loading shared libraries: libcudnn.so.9: cannot open shared object file: No such file or directory", "LD_LIBRARY_PATH", "import torch"),
        ("ImportError: libcudnn.so.9: cannot open shared object file: No such file or directory", "import torch", ""),
        ('error MSB3073: The command "gen.exe" exited with code -1073741511.', "by hand", "torch"),
        ("/usr/bin/ld: /o/libfoo.so: file not recognized: file format not recognized", "file /o/libfoo.so", "conda"),
        # Since when a name of Python's C API is there.
        ("a.c:1:5: error: implicit declaration of function ‘Py_NewRef’ [-Werror=implicit-function-declaration]", "from 3.10 on", "Wno-error"),
        ("a.c:1:5: error: ‘PyUnicode_GET_SIZE’ undeclared (first use in this function)", "up to 3.11", "from"),
    ],
)  # fmt: skip
def test_the_fix_speaks_of_what_the_log_shows(log: str, said: str, unsaid: str) -> None:
    reading = read(log)
    fix = " ".join(f"{each.fix} {each.command}" for each in reading.diagnoses)
    assert said in fix
    assert not unsaid or unsaid not in fix


def test_a_sentence_of_two_fixes_is_told_once() -> None:
    log = "ERROR: Could not find a version that satisfies the requirement torch==9.9 (from versions: 2.0, 2.1)\nERROR: No matching distribution found for torch==9.9"
    fixes = [each.fix for each in read(log).diagnoses]
    sentences = [part for fix in fixes for part in re.split(r"(?<=[.:]) (?=[A-Z])", fix) if len(part) > 40]
    assert sentences
    assert len(sentences) == len(set(sentences))


@pytest.mark.parametrize(
    ("log", "said", "unsaid"),
    [
        ("ERROR: Could not find a version that satisfies the requirement cmake>=3.26.1 (from versions: 3.25.0)", "--extra-index-url", "another Python"),
        ("ERROR: Could not find a version that satisfies the requirement zork>=3.26.1 (from versions: 3.25.0)", "take one of these", "extra-index-url"),
        ("  × No solution found when resolving dependencies:\n  ╰─▶ Because only cmake==3.25.0 is available and you require cmake>=3.26.1,\n      we can conclude that your requirements are unsatisfiable.\n\n      hint: `cmake` was found on https://x.org/whl,\n      but not at the requested version (cmake>=3.26.1).", "unsafe-best-match", "UV_EXCLUDE_NEWER"),
        ("gcc: error: /opt/libcudnn.so.7/include: Not a directory", "names it has to name the folder", "headers beside it"),
        ("NotADirectoryError: [Errno 20] Not a directory: '/opt/x/y'", "ls -ld", "headers beside it"),
        ("C:\\vcpkg\\installed\\x64-windows\\include\\absl\\x.h(2,3): error C2665: zork", "vcpkg's CMAKE_TOOLCHAIN_FILE", ""),
        ("C:\\o\\_deps\\absl\\x.h(2,3): error C2665: zork", "", "vcpkg"),
        ("bash: /b/x.sh: /bin/bash: bad interpreter: No such file or directory", "/usr/bin/env", "CUDAHOSTCXX"),
        ('a.obj : error LNK2001: unresolved external symbol "public: long __cdecl at::Tensor::item<long>(void)const " (??$item@J@Tensor@at@@QEBAJXZ)', "int64_t", "begin with"),
        ('a.obj : error LNK2001: unresolved external symbol "public: void __cdecl at::Tensor::zork(void)const " (?zork@Tensor@at@@QEBAXXZ)', "", "int64_t"),
        ("fatal: could not create work tree dir '': No such file or directory", "newer CMake", "git status"),
        ("fatal: could not create work tree dir 'x': Permission denied", "ls -ld", "git status"),
        ("fatal: unable to access 'https://x.org/a.git/': error:1407742E:SSL routines:SSL23_GET_SERVER_HELLO:tlsv1 alert protocol version", "Take a newer git", "HTTPS_PROXY"),
        ("C:/t/a.c:13: error: include file 'Python.h' not found\nC:/python_embeded/x", "embedded", "python3-dev"),
        ('a.cuh(708): error: class "cooperative_groups::__v1::thread_block" has no member "num_threads"', "newer one (CUDA_HOME", "look in the block"),
        ('CMake Error: Could not read presets from /x: Unrecognized "version" field', "newer CMake", "CMakeConfigureLog"),
        ('CMake Error in C.txt:\n  Target "p" requires the language dialect "CXX26" (with compiler\n  extensions).  But the current compiler "GNU" does not support this', "newer compiler", "CMakeConfigureLog"),
        ("ninja: error: build.ninja:5: multiple rules generate a.o", "listed twice", ""),
        ("ImportError: cannot import name 'x' from 'utils' (/home/u/p/utils/__init__.py)", "Python searches first", "pip show"),
        ("ImportError: cannot import name 'x' from 'zork' (/v/lib/python3.10/site-packages/zork/__init__.py)", "pip show zork", "Python searches first"),
        ("sed: can't read Makefile.in: No such file or directory", "a step before it", "quotation mark"),
        ("CMake Error: The following variables are used in this project, but they are set to NOTFOUND.\nPlease set them or make sure they are set and tested correctly in the CMake files:\nZORK_LIBRARY\n    linked by target", "-DZORK_LIBRARY=FILE", "ZORK_LIBRARYConfig"),
        ("CMake Error at C.txt:3 (string):\n  string sub-command JSON does not exist.", "JSON is a word that newer", "edited; else"),
        ('go: x.org/y@v1: Get "https://p.org/": dial tcp: lookup p.org: no such host', "getent hosts", ""),
        ("git: 'lfs' is not a git command. See 'git --help'.", "git-lfs", "git status"),
        ("ERROR: cannot verify x.org's certificate, issued by 'CN=R3': Issued certificate has expired.", "clock", ""),
        ("Fatal Python error: init_fs_encoding: failed to get the Python codec of the filesystem encoding", "PYTHONHOME", "gdb"),
        ("ld: Undefined symbols:\n  _zork, referenced from: _main in a.o", "grep -rn", ""),
        ("tar: x.tar.gz: Cannot open: No such file or directory", "a step before it", "open."),
        ("install: cannot change permissions of '/usr/local/lib': Operation not permitted", "/usr/local/lib", ""),
        ("standard_init_linux.go:228: exec user process caused: no such file or directory", "dos2unix", "PATH"),
    ],
)  # fmt: skip
def test_what_the_message_decides_is_told(log: str, said: str, unsaid: str) -> None:
    fix = " ".join(f"{each.fix} {each.command}" for each in read(log).diagnoses)
    assert said in fix
    assert not unsaid or unsaid not in fix


def test_an_error_of_a_script_right_above_that_of_cmake_is_the_first() -> None:
    log = "-- Generating\nbash: /b/x.sh: /bin/bash: bad interpreter: No such file or directory\nCMake Error at C.txt:85 (message):\n  FAILED to change it\n"
    assert read(log).line_number == 2


_CONFIGURES = "-- Configuring done\n-- Generating done\n-- Build files have been written to: /b"


def test_a_configure_that_failed_and_was_done_again_is_no_failure() -> None:
    first = 'CMake Error: Could not read presets from /x: Unrecognized "version" field\n-- configuring without it\n'
    assert (
        read(f"{first}{_CONFIGURES}\n[1/2] Building C object a.o\n[2/2] Linking C executable a\nDone.").status
        == "clean"
    )
    failed = read(
        f"{first}{_CONFIGURES}\n[1/2] Building C object a.o\nFAILED: a.o\na.c:1:1: error: zork\nninja: build stopped: subcommand failed."
    )
    assert failed.line_number == 8
    assert read(f"{_CONFIGURES}\n{first}-- Configuring incomplete, errors occurred!").line_number == 4
    other = read(
        f"{first}-- Configuring incomplete, errors occurred!\n{_CONFIGURES}\nmake: *** [Makefile:91: all] Error 2"
    )
    assert other.line_number == 1


# Rows for messages that torch's own build alone writes, and those of its packaging.
_OF_TORCH = {
    *("torch-own-module", "cmake-install-prefix-env", "pocketfft", "cuda-version-unsupported-ci", "numa-h"),
    *("old-tree-deps", "glibc-version", "too-many-resources", "setup-shim"),
}
_BY_PIP = "Building wheels for collected packages: zork\n{}\nERROR: Failed building wheel for zork\n"


@for_each(
    [row for row in load_catalog().failure if row.samples and row.severity == "error"], lambda row: row.id
)
def test_our_own_commands_are_told_for_builds_of_torch_alone(row: FailureRow) -> None:
    for sample in row.samples[:1]:
        told = [each for each in read(_BY_PIP.format(sample)).diagnoses if each.id not in _OF_TORCH]
        found = [each.id for each in told if "torchbuild" in f"{each.fix} {each.command}"]
        assert not found, told
