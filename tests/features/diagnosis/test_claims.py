"""A fix is a claim: it is told only where the log, the rows or this machine show that it holds."""

# ruff: noqa: E501  (a wording in one line)

from __future__ import annotations

import pytest

from tests.support.diagnosis import book, read
from tests.support.for_each import each_case
from tests.support.machines import linux_facts, plan_of, with_tree
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.features.diagnosis.choose import read_log
from torchbuild_tasks.features.diagnosis.machine import Machine
from torchbuild_tasks.features.diagnosis.scan import LogScanner
from torchbuild_tasks.model import Diagnosis


def elsewhere(log: str) -> Diagnosis:
    """What is told of a log that was brought here, outside of any checkout."""
    facts = with_tree(linux_facts(), problem="no checkout")
    scanner = LogScanner(book())
    scanner.feed_block(log.encode() + b"\n")
    machine = Machine(facts, plan_of(facts), load_catalog(), built=False)
    return read_log(scanner, book(), machine).diagnoses[0]


MISSING = "src/a.cpp:3:10: fatal error: {}: No such file or directory\n    3 | #include {}"

GFLAGS = MISSING.format("gflags/x.h", "<gflags/x.h>")


@each_case(
    ("log", "said"),
    [
        # A package where one has it; the source's own file has none.
        (MISSING.format("rapidjson/x.h", "<rapidjson/x.h>"), "sudo apt install rapidjson-dev"),
        (MISSING.format("core/x.h", '"core/x.h"'), "No package has it"),
        (MISSING.format("src/x.h", "<src/x.h>"), "No package has it"),
        (MISSING.format("nobody/x.h", "<nobody/x.h>"), "apt-file search /nobody/x.h (after sudo apt install apt-file"),
        # The packages are those of the compiler's system, not of this one.
        ("x86_64-conda-linux-gnu-c++ -c a\n" + GFLAGS, "conda install -c conda-forge gflags"),
        ("gcc -L/usr/lib64/x -c a\n" + GFLAGS, "sudo dnf install gflags-devel"),
        ("clang -arch-apple-darwin\n" + GFLAGS, "brew install gflags"),
        # A library is added where the link names none, and looked at where it does.
        ("ld: a.o: undefined reference to `cublasCreate_v2'", "-lcublas has it: look whether"),
        # What releases have it.
        ("ModuleNotFoundError: No module named 'imp'", "Take a Python up to 3.11"),
        ("AttributeError: module 'numpy' has no attribute 'float'.", "'numpy<1.24'"),
        ("ModuleNotFoundError: No module named 'torch.nn.attention.flex_attention'", "from 2.5 on"),
        ("ImportError: cannot import name 'RMSNorm' from 'torch.nn' (/x.py)", "from 2.4 on"),
        (MISSING.format("torch/csrc/stable/tensor.h", "<t>"), "a torch that has it (from 2.8 on)"),
        ("ImportError: /l/libstdc++.so.6: version `GLIBCXX_3.4.30' not found (required by /x)", "GCC 12"),
        ("RuntimeError: module compiled against API version 0xf but this one of numpy is 0xe", "numpy>=1.22"),
    ],
)  # fmt: skip
def test_a_fix_is_told_with_what_it_rests_on(log: str, said: str) -> None:
    assert said in elsewhere(log).fix


@each_case(
    ("log", "kind", "said"),
    [
        (
            "a.h:2:7: error: 'vld1q_f32_x4' was not declared in this scope",
            "missing-intrinsic",
            "newer compiler",
        ),
        ("a.pyx:1:8: 'scipy/linalg/x.pxd' not found", "missing-module", "install scipy"),
        ("GNUmakefile:3: *** missing separator.  Stop.", "makefile-syntax", "tab"),
        ("KeyError: 'MAX_JOBS_FOR'", "unset-variable", "export MAX_JOBS_FOR"),
        ("CMake Error at a.cmake:5 (message):\n  X requires AVX2 ISA support.", "processor-feature", "lscpu"),
        (
            'CMake Error at a:1 (find_package):\n  it set FOO_FOUND to FALSE so package "FOO" is considered'
            " to be NOT\n  FOUND.  Reason given by package:\n\n  no bar\n",
            *("package-refused", "FOO_DIR"),
        ),
        ('meson.build:2:9: ERROR: Dependency "no-such" not found', "missing-package", "PKG_CONFIG_PATH"),
        ("E: Unable to locate package libopenblas-devel", "system-package-not-found", "libopenblas-dev"),
        ("/usr/bin/ld: error: c10/libc10.so: file too short", "bad-object", "Delete it"),
        ("a.s:9: 错误： no such instruction: `{vex} vpdpbusd %ymm2'", "old-assembler", "binutils"),
        (
            "CMake Error at x.cmake:5 (message):\n  Not today.",
            "cmake-error",
            "x.cmake:5 stops there by itself",
        ),
        # Whose program speaks: the way out is that program's.
        ("error: no matching package named `x-y` found", "package-not-found", "Cargo.toml"),
        (
            "x: Because wheel was not found in the cache and you require wheel, we can conclude that your"
            " requirements are unsatisfiable.",
            *("package-not-found", "--find-links"),
        ),
        ("conda.X: The package for a located at /p/a-1 appears to be corrupted.", "damaged-download", "conda clean"),
        ("The following signatures couldn't be verified: NO_PUBKEY A4B4", "damaged-download", "cuda-keyring"),
        ("CMake Error at a:3 (file):\n  file DOWNLOAD HASH mismatch\n", "damaged-download", "URL_HASH"),
        ("= note: ld.lld: error: unable to find library -lfoo_x\n error: could not compile `a`", "missing-library", "RUSTFLAGS"),
        ("configure: error: flac library is required", "missing-package", "PKG_CONFIG_PATH"),
        ("CMake Error: Unable to (re)create the private pkgRedirects directory:", "permission", "chown"),
        ("a.json: cannot read: {", "generator", "git diff"),
        ("g++: fatal error: Terminated signal terminated program cc1", "interrupted", "who ended it"),
        ("error: failed to get `x-y` as a dependency of package `a v0.1.0 (/w)`", "package-not-found", "cargo fetch"),
        ("E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 7 (apt)", "file-in-use", "DPkg::Lock"),
        ('meson.build:3:4: ERROR: Subproject "x" required but not found.', "missing-source", "meson subprojects download x"),
        ("meson.build:3:4: ERROR: Unknown compiler(s): [['icx']]", "no-compiler", "meson-log.txt"),
        ("error: could not find native static library `foo`, perhaps an -L flag is missing?", "missing-library", "RUSTFLAGS"),
        ("ERROR: no such package '@cuda//': Cuda toolkit not found", "missing-target", "MODULE.bazel"),
        ("TypeError: step() got an unexpected keyword argument 'x'", "python-api", "pip list tells their versions"),
        # What git cannot do, and what does it.
        ("error: The following untracked working tree files would be overwritten by checkout:", "git-state", "git stash"),
        ("fatal: reference is not a tree: 4c2a", "not-on-server", "git submodule sync"),
        ("error: Your local changes to the following files would be overwritten by merge:", "git-state", "git stash"),
        ("fatal: transport 'ssh' not allowed", "git-state", "protocol.ssh.allow"),
        ("fatal: repository 'https://x/y' does not exist", "not-on-server", ".gitmodules"),
        # What a message says itself.
        (
            "OSError: No GPU is seen. Specify it in the MY_GPU_ARCHS environment variable.",
            *("python-exception", "says what to do: Specify it in the MY_GPU_ARCHS environment variable."),
        ),
        ("a.h(7): fatal error C1189: #error:  two copies of X are mixed", "compile-error", "by itself (#error)"),
        ("  Unknown CUDA Architecture Name 75 in X", "unsupported-arch", "'8.6'"),
        (
            "ImportError: cannot import name 'f' from partially initialized module 'm' (x)",
            *("python-api", "Install no other version"),
        ),
        ("AttributeError: module 'random' has no attribute 'x'", "python-api", "print(random.__file__)"),
        ("ImportError: cannot import name 'Literal' from 'typing' (/usr/lib/python3.7/typing.py)", "python-api", "Take the Python that"),
        # Whose a symbol, a header or a file is.
        ("nvlink error   : Undefined reference to '_Z4stepv' in 'a.o'", "undefined-symbol", "nvlink links"),
        ("x86_64-w64-mingw32-ld: a.o: undefined reference to `__imp_RegOpenKeyExA'", "undefined-symbol", "-ladvapi32"),
        ('k.cu(7): error: no instance of overloaded function "atomicAdd" matches the argument list', "arch-too-low", "atomicCAS"),
        ("ptxas fatal   : Unresolved extern function '_Z4stepf'", "undefined-symbol", "-rdc=true"),
        ("ptxas fatal   : Unresolved extern function '_Z3expd'", "undefined-symbol", "no -rdc brings it"),
        ("ImportError: /w/_x.so: undefined symbol: _ZN4mine4workEv", "undefined-at-load", "sources of setup.py"),
        ("/usr/bin/ld: /o/libq.so.1: undefined reference to `_gfortran_st_write'", "undefined-symbol", "-rpath-link"),
        ("x86_64-w64-mingw32-ld: a.o:a.c:(.text+0x2): undefined reference to `__imp_WSASend'", "undefined-symbol", "-lws2_32"),
        ("a.obj : error LNK2019: unresolved external symbol __imp_WSASend referenced in f", "undefined-symbol", "ws2_32.lib"),
        ("a.obj : error LNK2019: unresolved external symbol SSL_new referenced in f", "undefined-symbol", "libssl.lib"),
        ("src/a.cc:2:10: fatal error: proto/net.pb.h: No such file or directory", "missing-header", "protoc"),
        ("a.c:4:9: error: ‘PyArray_Descr’ has no member named ‘names’", "numpy-c-api", "numpy<2"),
        ('k.cu(9): error: identifier "__hmul2" is undefined', "arch-too-low", "TORCH_CUDA_ARCH_LIST"),
        ("LINK : fatal error LNK1181: cannot open input file 'b\\x.obj'", "missing-library", "made by this build itself"),
        (
            "CMake Error at a.cmake:2 (file):\n  file failed to open for reading (No such file or directory):\n\n"
            "    /usr/include/x86_64-linux-gnu/cudnn.h\n",
            *("missing-source", "nvidia-cudnn"),
        ),
        ("OSError: /x/_C.so: wrong ELF class: ELFCLASS32", "bad-object", "uname -m"),
        # What a file is, and what leads out of that.
        ("/usr/bin/ld: i386 architecture of input file `q.o' is incompatible with i386:x86-64 output", "bad-object", "file -L q.o"),
        ("ld.lld: error: q.o is incompatible with elf64-x86-64", "bad-object", "file -L q.o"),
        ("m.o: file not recognized: file format not recognized", "bad-object", "LLVM IR bitcode"),
        ("/usr/bin/ld: m.o: undefined reference to symbol 'low'\n/usr/bin/ld: lib/liblow.so: error adding symbols: DSO missing from command line", "undefined-symbol", "add -llow"),
        ("/usr/bin/ld: a.o: undefined reference to symbol 'pow@@GLIBC_2.29'\n/usr/bin/ld: /lib/libm.so.6: error adding symbols: DSO missing from command line", "undefined-symbol", "add -lm"),
        ("ld.lld: error: undefined symbol: vtable for Graph", "undefined-symbol", "first virtual function of Graph"),
        ("/usr/bin/ld: b.o:/w/config.h:2: multiple definition of `n'; a.o:/w/config.h:2: first defined here", "duplicate-symbol", "in a header (config.h)"),
        ("ninja: error: 'third/lib/libdep.a', needed by 'x', missing and no known rule to make it", "missing-library", "BUILD_BYPRODUCTS"),
        ("clang: error: invalid linker name in argument '-fuse-ld=wild'", "missing-tool", "wild"),
        ("CMake Error at a.cmake:2 (message):\n  Could not find compiler set in environment variable CC:\n\n  gcc-99.\n", "no-compiler", "Let CC name"),
        ("/lib/gcc/12/include/fmaintrin.h:63:1: error: inlining failed in call to ‘always_inline’ ‘f’: target specific option mismatch", "target-feature", "-mfma"),
        ("/lib/gcc/12/include/avx512vlbwintrin.h:6:1: error: inlining failed in call to ‘always_inline’ ‘f’: target specific option mismatch", "target-feature", "-mavx512vl -mavx512bw"),
        ("a.cpp:1:2: error: ‘size_t’ does not name a type", "missing-include", "#include <cstddef>"),
        ("a.h:1:2: error: 'function' in namespace 'std' does not name a template type", "missing-include", "#include <functional>"),
        ("a.cpp:3:3: error: 'thread' was not declared in this scope", "compile-error", "that line"),  # it may be anybody's
        ("d.cpp:2:1: error: version control conflict marker in file\n<<<<<<< HEAD", "conflict-marker", "git grep"),
        ("d.cpp:2:1: error: expected unqualified-id before ‘<<’ token\n    2 | <<<<<<< HEAD", "compile-error", "marks of a merge"),
        ("t.cu(2): error: __host__ or __device__ annotation on lambda requires --extended-lambda nvcc flag", "gpu-host-code", "Add --extended-lambda"),
        ('t.cu(4): error: calling a __host__ function("eps(int)") from a __global__ function("k") is not allowed', "gpu-host-code", "mark it __device__"),
        ("/bin/sh: 1: Cannot fork", "too-many-processes", "ulimit -u"),
        ('CMake Error at C.txt:9 (target_link_libraries):\n  Target "x" links to target "Foo::foo" but the target was not found.\n', "missing-package", "find_package(Foo) has to stand before"),
        ('CMake Error: The source directory "/w/nope" does not exist.', "missing-source", "what follows -S"),
        ("make: *** No targets specified and no makefile found.  Stop.", "no-makefile", "cmake -S . -B build"),
        ("subprocess.CalledProcessError: Command '['git', 'rev-parse', 'HEAD']' returned non-zero exit status 128.", "git-state", "safe.directory"),
        ("ld.lld: error: version script assignment of 'global' to symbol 'PyInit_x' failed: symbol not defined", "undefined-symbol", "grep -rn"),
        ("a.cpp:5:1: error: static assertion failed: only float is supported", "compile-error", "demands what the message says"),
        ("a.cpp:5:10: error: redefinition of 'int f()'", "compile-error", "#pragma once"),
        ("x.cpp(1): error C2065: 'M_PI': undeclared identifier", "posix-name", "_USE_MATH_DEFINES"),
        ("x.cpp(1): error C2065: 'and': undeclared identifier", "posix-name", "/permissive-"),
        ("x.cpp(1): error C2065: 'mine': undeclared identifier", "compile-error", "that line"),
        ("nvcc fatal   : A single input file is required for a non-link phase when an outputfile is specified", "command-words", "-Xcompiler"),
        ("error: option --single-version-externally-managed not recognized", "unknown-option", "setup.py --help"),
        ("ERROR: Invalid requirement: 'torch=2.4'", "packaging-metadata", "torch==2.4"),
        ("/bin/sh: 1: [[: not found", "shell-script", "SHELL := /bin/bash"),
        ("./b.sh: line 12: unexpected EOF while looking for matching `\"'", "shell-script", "bash -n SCRIPT"),
        ("error: pathspec 'v9.9' did not match any file(s) known to git", "git-state", "git fetch --tags"),
        ("fatal: No url found for submodule path 'third_party/x' in .gitmodules", "git-state", "git rm --cached third_party/x"),
        ("tar: This does not look like a tar archive\ntar: Exiting with failure status due to previous errors", "damaged-download", "Delete it"),
        ("a.c:(.text+0x5): undefined reference to `sqrt'", "undefined-symbol", "-lm"),
        ("/usr/bin/ld: crt1.o: undefined reference to `main'", "undefined-symbol", "-shared"),
        ("a.o: undefined reference to `__cudaRegisterLinkedBinary_25_tmpxft'", "undefined-symbol", "CUDA_SEPARABLE_COMPILATION"),
        ("/usr/bin/ld: cannot find crti.o: No such file or directory", "missing-library", "libc6-dev"),
        ("ModuleNotFoundError: No module named '_ctypes'", "missing-module", "build this Python itself again"),
        ("configure: error: Library requirements (foo >= 1.2) not met.", "missing-package", "PKG_CONFIG_PATH"),
        # Since when an option is known, and whose it is.
        ("g++: error: unrecognized command-line option '-std=gnu++20'", "unknown-option", "c++20 from 10"),
        ("cc1plus: error: bad value (‘znver4’) for ‘-march=’ switch", "bad-value", "g++ 12.3 is the first"),
        ("error: unknown target CPU 'sapphirerapids'", "bad-value", "clang 12 is the first"),
        ("error: invalid value 'c++23' in '-std=c++23'", "bad-value", "c++23 from 17"),
        ("clang: error: unknown argument: '-mnever'", "unknown-option", "Take -mnever out"),
        ("nvcc fatal   : Unknown option 'fopenmp'", "unknown-option", "-Xcompiler -fopenmp"),
        ("nvcc fatal   : Unknown option '-maxregcount'", "unknown-option", "Take -maxregcount out"),
        ("cc1: error: argument to ‘-O’ should be a non-negative integer, ‘g’, ‘s’ or ‘fast’", "bad-value", "where it is set"),
        ("CMake Error at cmake_install.cmake:5 (file):\n  file INSTALL cannot copy file \"/b/x.so\" to\n  \"/usr/local/lib/x.so\": Permission denied.\n", "permission", "CMAKE_INSTALL_PREFIX"),
        ("TypeError: Descriptors cannot be created directly.", "python-api", "protobuf<3.21"),
        ("s.cpp:1:1: fatal error: c10/cuda/impl/cuda_cmake_macros.h: No such file or directory", "missing-header", "torch.version.cuda"),
    ],
)  # fmt: skip
def test_the_class_of_an_error_has_its_own_fix(log: str, kind: str, said: str) -> None:
    assert read(log).kind == kind
    assert said in elsewhere(log).fix


@pytest.mark.parametrize(
    ("log", "row"),
    [
        ("cc1plus: out of memory allocating 131072 bytes after a total of 2912256 bytes", "address-space"),
        ("cc1plus: out of memory allocating 131072 bytes after a total of 3912256000 bytes", "oom-killed"),
        ("SyntaxError: Missing parentheses in call to 'print'. Did you mean print(...)?", "python2-code"),
        ("g++: error: option: No such file or directory", "message-as-words"),
    ],
)
def test_the_row_that_knows_more_comes_first(log: str, row: str) -> None:
    assert read(log).diagnoses[0].id == row


@pytest.mark.parametrize(
    "end",
    [
        "ERROR: Job failed: exit code 1",
        "ERROR: script returned exit code 2",
        "Finished: FAILURE",
        "##[error]Bash exited with code '2'.",
    ],
)
def test_what_a_ci_service_says_last_is_not_the_error(end: str) -> None:
    log = f"gcc -c a.c\nmake: *** No rule to make target 'a.o', needed by 'x'.  Stop.\n{end}"
    assert read(log).line_number == 2


@pytest.mark.parametrize(
    "log",
    [
        "fatal: clone of 'https://x/y' into submodule path 'y' failed\nFailed to clone 'y'. Retry scheduled\n"
        "Submodule path 'y': checked out '3147391d'",
        "warning: Failed to hardlink files\n   hardlinking may not be supported.\n"
        "Installed 9 packages in 4s\n + torch==2.6.0",
        "[WARNING] Unable to find a file, will proceed without it\n{'loss': 2.3}",
        "rm: cannot remove 'a': No such file or directory\nmake: [Makefile:2: clean] Error 1 (ignored)\nAR libx.a",
        "fatal: not a git repository (or any of the parent directories): .git\n-- Build files have been written to: /b",
    ],
)
def test_what_is_expected_to_fail_or_went_on_is_in_order(log: str) -> None:
    assert read(log).status == "clean"


def test_gits_very_last_word_is_an_error() -> None:
    log = "-- Installing: /x/a.h\nfatal: not a git repository (or any of the parent directories): .git"
    reading = read(log)
    assert (reading.line_number, reading.kind) == (2, "git-state")
    assert "git clone --recursive" in elsewhere(log).fix


def test_the_text_of_an_exception_may_be_another_one() -> None:
    log = (
        'Traceback (most recent call last):\n  File "/a/b.py", line 1, in f\n'
        'x.BackendUnavailable: Traceback (most recent call last):\n  File "/a/c.py", line 2, in g\n'
        "    import nobody_knows\nModuleNotFoundError: No module named 'nobody_knows'"
    )
    reading = read(log)
    assert (reading.line_number, reading.kind) == (6, "missing-module")


def test_bazels_summary_gives_way_to_the_linker() -> None:
    log = (
        "ERROR: /p/BUILD:10:10: Linking of rule '//a:b' failed (Exit 1) gcc failed: error executing command\n"
        "a.o:a.cpp:function f(): error: undefined reference to 'nvrtcVersion'\n"
        "collect2: error: ld returned 1 exit status"
    )
    assert read(log).line_number == 2


@pytest.mark.parametrize(
    ("log", "said"),
    [
        ("OSError: /m/libmkl_intel_thread.so.2: undefined symbol: omp_get_num_procs", "intel-openmp"),
        ("/b/triton/backends/nvidia/compiler.py: ptxas fatal   : Value 'sm_999' is not defined for option", "TRITON_PTXAS_PATH"),
        ("/tmp/pip-build-env-a/x.py: ModuleNotFoundError: No module named 'pkg_resources'", "isolated"),
        ("error: Multiple top-level packages discovered in a flat-layout: ['a', 'b'].", "packages = ['NAME']"),
        ("a.o: undefined reference to `c10::Device::Device(std::string const&)'", "See first whether the link names"),
        ("/usr/bin/ld: cannot find -lOnlyOfThisProject", "Look whether the source makes it itself"),
    ],
)  # fmt: skip
def test_a_row_tells_what_the_log_shows(log: str, said: str) -> None:
    assert said in elsewhere(log).fix


def test_a_version_or_an_inner_compiler_is_told_in_a_sentence() -> None:
    told = read("meson.build:1:4: ERROR: Meson version is 1.1 but project requires >=9.0").diagnoses[0]
    assert told.cause == "A tool's version does not fit: Meson version is 1.1 but project requires >=9.0."
    told = read("cc1: error: bad value ‘x’ for ‘-mtune=’ switch").diagnoses[0]
    assert told.cause.startswith("The compiler (cc1) does not take the value x for -mtune=")


def test_an_index_that_never_answered_is_told_before_the_package() -> None:
    log = (
        "WARNING: Retrying (Retry(total=0, connect=None)) after connection broken\n"
        "ERROR: Could not find a version that satisfies the requirement x (from versions: none)"
    )
    assert elsewhere(log).fix.startswith("The index did not answer")


def test_a_recipe_is_told_what_to_add_and_nothing_to_install() -> None:
    told = elsewhere("unpacking /nix/store/a-source\nModuleNotFoundError: No module named 'setuptools'")
    assert "nativeBuildInputs" in told.fix
    assert "pip install" not in told.fix


@pytest.mark.parametrize(
    ("libraries", "said"),
    [("-lnuma ", "-lnuma is named in this link"), ("", "This link names no -lnuma, which has it")],
)
def test_a_link_is_told_to_name_a_library_that_it_does_not_name(libraries: str, said: str) -> None:
    log = (
        f"FAILED: app\nc++ -o app {libraries}main.o\n/usr/bin/ld: a.o: undefined reference to `numa_free'\n"
        "collect2: error: ld returned 1 exit status\nninja: build stopped: subcommand failed."
    )
    assert said in elsewhere(log).fix


@pytest.mark.parametrize(
    "log",
    [
        "a.cpp:3:4: internal compiler error: in f, at g.cc:12",
        "csrc/f.cpp:12:10: fatal error: cutlass/x.h: No such file or directory",
        "Could not find any of CMakeLists.txt, setup.py in /x/third_party/gloo",
    ],
)
def test_whoever_builds_another_thing_gets_no_command_for_torch(log: str) -> None:
    told = elsewhere(log)
    assert "torchbuild" not in told.command + told.fix
    assert "third_party/cutlass" not in told.fix


def test_a_submodule_of_torch_is_fetched_in_torchs_checkout() -> None:
    facts = with_tree(linux_facts(), empty=("third_party/gloo",))
    scanner = LogScanner(book())
    scanner.feed_block(b"a.cpp:1:10: fatal error: gloo/x.h: No such file or directory\n")
    machine = Machine(facts, plan_of(facts), load_catalog(), built=False)
    assert "torchbuild source update" in read_log(scanner, book(), machine).diagnoses[0].fix


def test_a_crash_of_a_compiler_is_not_told_to_be_run_again() -> None:
    told = read("a.cpp:3:4: internal compiler error: in f, at g.cc:12").diagnoses[0]
    assert "--jobs" not in told.fix + told.command


def test_a_file_of_a_packages_name_is_named_where_the_package_is_known() -> None:
    trace = "Traceback (most recent call last):\n  File \"/w/{0}.py\", line 2, in <module>\n    x\nAttributeError: partially initialized module '{0}' has no attribute 'f'"
    assert "Rename /w/torch.py" in read(trace.format("torch")).diagnoses[0].fix
    assert "Rename /w/logging.py" in read(trace.format("logging")).diagnoses[0].fix
    assert "shows the circle" in read(trace.format("mine")).diagnoses[0].fix  # a circle of one's own files


def test_what_pip_says_below_a_conflict_is_told() -> None:
    log = (
        "ERROR: Cannot install a because these package versions have conflicting dependencies.\n\n"
        "The conflict is caused by:\n    The user requested numpy==2.2\n    detlib 1.0 depends on numpy<2\n"
    )
    assert "numpy==2.2; detlib 1.0 depends on numpy<2" in read(log).diagnoses[0].cause


def test_an_exception_that_is_told_again_by_who_goes_on_is_no_failure() -> None:
    log = (
        'Traceback (most recent call last):\n  File "a.py", line 1, in f\nAssertionError: no GPU was found\n'
    )
    assert (
        read(f"{log}ERROR:root:no GPU was found, falling back to CPU\ntraining finished\n").status == "clean"
    )
    line = "RuntimeError: no GPU was found"
    assert read(f"{line}\n{line}; using CPU instead\nresult: 42\nfinished\n").status == "clean"
    assert read(f"{log}ERROR:root:no GPU was found, giving up\ntraining finished\n").status != "clean"


def test_what_make_ignores_is_no_failure() -> None:
    log = "gcc: error: unrecognized command-line option ‘-mx’\nmake: [Makefile:3: probe] Error 1{}\nBuild finished: a\n"
    assert read(log.format(" (ignored)")).status == "clean"
    assert read(log.format("").replace("make: [", "make: *** [")).status != "clean"


def test_a_commits_title_in_a_log_of_kubernetes_is_no_error() -> None:
    line = "2026-11-20T10:16:49.561466113Z stderr F {}\n"
    assert (
        read(line.format("HEAD is now at 857a3d2 fatal: killed by signal 9") + line.format("v1")).status
        == "clean"
    )
    assert read(line.format("fatal: killed by signal 9")).status != "clean"
