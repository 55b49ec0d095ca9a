"""A fix that depends on a fact is printed only where the log or this machine shows that fact."""

# ruff: noqa: E501  (a message in one line)

from __future__ import annotations

import functools

import pytest

from tests.support.diagnosis import book
from tests.support.for_each import each_case
from tests.support.machines import linux_facts, plan_of, with_tree
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.features.diagnosis.choose import read_log
from torchbuild_tasks.features.diagnosis.machine import Machine
from torchbuild_tasks.features.diagnosis.scan import LogScanner
from torchbuild_tasks.model import Reading


@functools.cache
def reader() -> Machine:
    """A machine with GCC 12 and no checkout."""
    facts = with_tree(linux_facts(), problem="no checkout", root="/home/ada/src")
    return Machine(facts, plan_of(facts), load_catalog(), built=False)


def read(log: str) -> Reading:
    """Read a log that was brought to this machine."""
    scanner = LogScanner(book(), places=reader().places)
    scanner.feed_block(log.encode() + b"\n")
    return read_log(scanner, book(), reader())


@each_case(
    ("line", "header"),
    [
        ("a.cc:14:11: error: ‘SIGABRT’ was not declared in this scope", "csignal"),
        ('x.h(49): error: identifier "uint32_t" is undefined', "cstdint"),
        (
            "x.h:1:8: error: ‘uint64_t’ in namespace ‘std’ does not name a type; did you mean ‘wint_t’?",
            "cstdint",
        ),
        ("x.h:1:8: error: no member named 'accumulate' in namespace 'std'", "numeric"),
        ("x.cpp:1:8: Fehler: »memcpy« wurde in diesem Gültigkeitsbereich nicht definiert", "cstring"),
        ("a.cpp(9): error C2039: 'back_inserter': is not a member of 'std'", "iterator"),
        ("a.cpp(9): error C3861: “strlen”: 找不到标识符", "cstring"),
        ('a.cu(12): error: namespace "std" has no member "function"', "functional"),
        ("a.cpp:3:5: error: variable ‘std::ifstream f’ has initializer but incomplete type", "fstream"),
        ("a.c:3:5: error: ‘INT_MAX’ undeclared (first use in this function)", "limits.h"),
        ("a.cpp:9:1: error: use of undeclared identifier 'FLT_MAX'", "cfloat"),
    ],
)
def test_a_name_of_the_c_library_is_of_a_header_that_is_not_included(line: str, header: str) -> None:
    reading = read(line)
    assert reading.kind == "missing-include"
    assert f"#include <{header}>" in reading.diagnoses[0].fix


@pytest.mark.parametrize(
    "line",
    [
        "a.cpp:3:5: error: ‘foo_bar’ was not declared in this scope",
        "a.cpp:3:5: error: 'list' was not declared in this scope",  # not std::list
        "a.cpp:3:5: error: no member named 'foo' in namespace 'std'",
    ],
)
def test_other_names_are_not(line: str) -> None:
    assert read(line).kind != "missing-include"


@pytest.mark.parametrize("name", ["optional", "is_same_v", "span"])
def test_a_newer_name_needs_a_newer_standard(name: str) -> None:
    reading = read(f"a.cpp:1:8: error: ‘{name}’ is not a member of ‘std’")
    assert reading.kind == "language-standard"
    assert name in reading.diagnoses[0].cause


HOST = '[1/2] {}/bin/nvcc -c a.cu\n{}(435): error: identifier "__builtin_x" is undefined'


def test_headers_of_gcc_that_nvcc_cannot_read_are_a_host_compiler_that_is_too_new() -> None:
    known = read(HOST.format("/usr/local/cuda-11.3", "/usr/include/c++/12/tuple")).diagnoses[0]
    assert known.id == "host-compiler"
    assert "CUDA 11.3 supports g++ up to 10" in known.fix
    assert "CUDA 12.0 or newer" in known.fix
    unknown = read(HOST.format("/opt/cuda", "/usr/lib/gcc/x86_64-linux-gnu/13/include/x.h")).diagnoses[0]
    assert unknown.id == "host-compiler"
    assert "nvcc --version tells" in unknown.fix


def test_a_template_of_the_source_is_none() -> None:
    log = "nvcc -c x.cu\n/usr/include/c++/12/bits/x.h:5:1: error: no match for call\na.cu:3:1: note: required from here"
    assert read(log).kind == "compile-error"
    assert (
        read("g++ -c a.cpp\n/usr/include/c++/12/bits/x.h:5:1: error: no match for call").kind
        == "compile-error"
    )


@pytest.mark.parametrize(
    ("line", "has"),
    [
        ("nvcc fatal   : Unsupported gpu architecture 'compute_35'", "up to 11.8"),
        ("nvcc fatal   : Unsupported gpu architecture 'sm_121'", "from 12.9 on"),
    ],
)
def test_which_toolkits_have_an_architecture_is_looked_up(line: str, has: str) -> None:
    assert has in read(line).diagnoses[0].cause


LOADER = (
    "{}: error while loading shared libraries: {}: cannot open shared object file: No such file or directory"
)


def test_a_package_for_building_does_not_bring_an_older_library() -> None:
    told = read(LOADER.format("/opt/gcc/libexec/cc1plus", "libmpfr.so.1")).diagnoses[0]
    assert "/opt/gcc/libexec/cc1plus cannot start" in told.cause
    assert "apt install lib" not in told.fix
    assert "LD_LIBRARY_PATH" in told.fix


def test_a_package_of_python_modules_brings_no_library() -> None:
    told = read(LOADER.format("protoc", "libprotoc.so.23")).diagnoses[0]
    assert "pip install protobuf" not in told.fix


def test_a_function_of_mkl_alone_is_not_of_openblas() -> None:
    reading = read("/usr/bin/ld: a.o: undefined reference to `cblas_gemm_bf16bf16f32'")
    assert reading.component == "Intel's MKL"
    assert "openblas" not in reading.diagnoses[0].fix


def test_a_program_that_does_not_start_is_no_import() -> None:
    log = "/usr/bin/cmake: symbol lookup error: /usr/lib64/libstdc++.so.6: undefined symbol: _ZNKSt7__cxx118messagesIcE"
    told = read(log).diagnoses[0]
    assert "env -u LD_LIBRARY_PATH /usr/bin/cmake" in told.fix
    assert "mport" not in told.fix
    assert not told.command


TOO_NEW = "{}x.h:1:2: error: #error -- unsupported GNU version! gcc versions later than 12 are not supported!"


def test_what_is_installed_here_counts_for_a_log_of_this_machine_only() -> None:
    assert "/usr/bin/g++ is installed" in read(TOO_NEW.format("/home/ada/src/")).diagnoses[0].fix
    assert "is installed" not in read(TOO_NEW.format("/home/bob/")).diagnoses[0].fix


@each_case(
    ("log", "kind", "fix"),
    [
        ("gcc: error: /MD: No such file or directory", "other-compiler", "MSVC"),
        ("clang: error: no such file or directory: '/EHsc'", "other-compiler", "MSVC"),
        ("gcc: error: /home/x/a.cpp: No such file or directory", "missing-source", "git"),
        ("ninja: error: build.ninja:2: multiple rules generate a.py [-w dupbuild=err]", "build-graph", "USE_NINJA=0"),
        ("/tmp/x.s:4: Error: unknown pseudo-op: `.base64'", "old-assembler", "binutils"),
        ("ptxas /tmp/x.ptx, line 5; fatal   : Unsupported .version 8.7; current version is '8.4'", "ptx-version", "CUDA 12.8 or newer"),
        ("nvlink fatal   : Input file 'a.o' newer than toolkit (120 vs 118)", "bad-object", "one toolkit"),
        ("LINK : fatal error LNK1158: cannot run 'rc.exe'", "missing-tool", "Windows SDK"),
        ("make: *** No targets specified and no makefile found.  Stop.", "no-makefile", "configure first"),
        ("fatal: No url found for submodule path 'third_party/x' in .gitmodules", "git-state", "git rm --cached third_party/x"),
        ("AttributeError: 'NoneType' object has no attribute 'split'", "script-fault", "not found"),
        ("a.cpp(3): error C2065: 'ssize_t': undeclared identifier", "other-system", "WSL"),
        ("/usr/bin/ld: BFD (GNU Binutils for Ubuntu) 2.30 assertion fail ../../bfd/elf64-x86-64.c:2788", "compiler-crash", "another version of ld"),
        ("ld: a.o: undefined reference to `std::filesystem::__cxx11::path::_M_split_cmpts()'", "undefined-symbol", "-lstdc++fs"),
        ("error: could not create 'build/lib.linux': Permission denied", "permission", "build/lib.linux"),
        ("ld: library not found for -lomp\nclang: error: linker command failed with exit code 1", "missing-library", "brew install libomp"),
        ("protoc: error while loading shared libraries: libprotoc.so.23: cannot open shared object file: No such file", "missing-shared-library", "apt-file search /libprotoc.so.23"),
        ("x: error while loading shared libraries: libcuda.so: cannot open shared object file: No such file", "missing-shared-library", "nvidia-smi must work"),
        ("a.c:5:10: error: implicit declaration of function ‘foo’ [-Wimplicit-function-declaration]", "default-error", "-Wno-error=implicit-function-declaration"),
        ("a.cpp:5:10: error: invalid conversion from ‘const char*’ to ‘char*’ [-fpermissive]", "default-error", "-fpermissive"),
        ("a.cpp:1:24: error: narrowing conversion of ‘-1’ from ‘int’ to ‘size_t’ [-Wnarrowing]", "default-error", "-Wno-error=narrowing"),
        ("a.cpp:1:2: error: comparison of integers of different signs [-Werror,-Wsign-compare]", "warning-as-error", "sign-compare"),
        ("a.cu(79): error: expected an expression\na.cu(79): error: a pointer to a bound function may only be used to call the function", "api-mismatch", "data_ptr<T>()"),
        ("a.cpp:5:10: error: unknown type name '__bf16'", "missing-intrinsic", "newer compiler"),
        ("a.cu(12): error: identifier \"TORCH_CHECK\" is undefined", "api-mismatch", "version of torch"),
        ("a.cu(45): error: calling a constexpr __host__ function from a __device__ function is not allowed. The experimental flag '--expt-relaxed-constexpr' can be used to allow this.", "compile-error", "--expt-relaxed-constexpr"),
        ("ModuleNotFoundError: No module named 'setuptools.command.build'", "missing-module", "pip install --upgrade setuptools"),
        ("ModuleNotFoundError: No module named 'google.protobuf'", "missing-module", "pip install protobuf"),
        ("ModuleNotFoundError: No module named '_ctypes'", "missing-module", "pyenv install --force"),
        ("RuntimeError: Missing build dependency: Unable to `import yaml`.", "missing-module", "pip install pyyaml"),
        ("a.cpp:1:10: fatal error: GL/glew.h: No such file or directory", "missing-header", "libglew-dev"),
        ("E: Unable to correct problems, you have held broken packages.", "package-conflict", "apt policy"),
        ("  ╰─▶ Because only torch<=2.2.2 has wheels with a matching platform tag (e.g., `macosx_12_0_x86_64`)", "package-not-found", "torch<=2.2.2"),
        ("git@github.com: Permission denied (publickey).", "access-denied", "ssh -T git@github.com"),
        ("x: batch response: This repository is over its data quota.", "access-denied", "GIT_LFS_SKIP_SMUDGE=1"),
        ("/usr/bin/ld: cannot find crti.o: No such file or directory", "missing-library", "libc6-dev"),
        ("lto1: fatal error: bytecode stream in file ‘a.o’ generated with LTO version 8.0 instead of the expected 9.2", "bad-object", "-flto"),
        ("ld: warning: ignoring file libx.dylib, building for macOS-x86_64 but attempting to link with file built for macOS-arm64\nUndefined symbols for architecture x86_64:\n  \"f()\", referenced from: x", "bad-object", "uname -m"),
        ("RuntimeError: The server socket has failed to listen on any local network address. Address already in use", "port-in-use", "ss -ltnp"),
        ("RuntimeError: FlashAttention only supports Ampere GPUs or newer.", "arch-too-low", "sdpa"),
        ("RuntimeError: GET was unable to find an engine to execute this computation", "gpu-libraries", ""),
        ("torch._inductor.exc.InvalidCxxCompiler: No working C++ compiler found in torch._inductor.config.cpp.cxx: (None, 'g++')", "no-compiler", "apt install build-essential"),
        ("UnboundLocalError: cannot access local variable 'v' where it is not associated with a value", "script-fault", "condition"),
        ("NameError: name 'nvcc_flags' is not defined", "script-fault", "condition"),
        ("a.cc:(.text+0x20): relocation truncated to fit: R_AARCH64_CALL26 against `x'", "link-limit", "128 MiB"),
        ("libx.lib(libx.dll) : error LNK2005: \"void f(void)\" (?f@@YAXXZ) already defined in b.obj", "duplicate-symbol", "macro for a DLL"),
        (
            "CMake Error at C.txt:6 (find_package):\n  but it set MLIR_FOUND to FALSE so package \"MLIR\" is considered to be NOT FOUND.  Reason given by package:\n\n  The following imported targets are referenced, but are missing: LLVMX86Info",
            *("package-refused", "LLVM_DIR"),
        ),
        ("CMake Error in C.txt:\n  Target \"x\" INTERFACE_INCLUDE_DIRECTORIES property contains relative path:\n\n    \"include\"", "cmake-script", "newer"),
    ],
)  # fmt: skip
def test_the_fix_is_that_of_the_case(log: str, kind: str, fix: str) -> None:
    reading = read(log)
    assert reading.kind == kind
    assert fix in reading.diagnoses[0].fix


def test_objects_that_all_lines_name_are_no_prefix() -> None:
    from torchbuild_tasks.features.diagnosis.prefix import common_prefix

    assert (
        common_prefix(b"".join(b"g++: error: /x/%d.o: No such file or directory\n" % n for n in range(9)))
        is None
    )


def test_a_trial_in_the_log_of_trials_is_no_failure() -> None:
    log = "Performing C++ SOURCE FILE Test X failed with the following output:\nFAILED: CMakeFiles/cmTC_5cd5f.dir/src.cxx.obj\ncl.exe -c src.cxx\n"
    end = "\nninja: build stopped: subcommand failed.\n\n\n\nSource file was:\n#include <glog/x.h>\n  int main() {\n  return 0;\n  }\n\n\n\n"
    assert (
        read(
            f"{log}src.cxx(1): fatal error C1083: Cannot open include file: 'glog/x.h': No such file{end}"
        ).status
        == "clean"
    )


def test_the_root_of_a_chain_counts_whose_traceback_was_cut_off() -> None:
    log = "torch.x.InvalidCxxCompiler: No working C++ compiler found in cxx: (None, 'g++')\n\nThe above exception was the direct cause of the following exception:\n\nTraceback (most recent call last):\n  File \"<string>\", line 1, in <module>"
    reading = read(log)
    assert (reading.line_number, reading.kind) == (1, "no-compiler")
    assert "apt install build-essential" in reading.diagnoses[0].fix


GOOD = {
    "a step of docker that ended": "#8 13.10 update-alternatives: error: no alternatives for nvcc\n#8 DONE 14.0s\n#9 DONE 3.2s",
    "an exception that was caught": (
        "Traceback (most recent call last):\n  File \"setup.py\", line 12, in get_rev\n    rev = run(['git'])\n"
        "subprocess.CalledProcessError: Command '['git']' returned non-zero exit status 128.\n"
        "WARNING: could not determine the revision\nrunning develop\nFinished processing dependencies for x==1.0"
    ),
    "a warning of a module of exceptions": "sqlalchemy.exc.SAWarning: relationship x will copy column y",
    "a trial of configure": (
        "checking for main in -laio... no\nconftest.c:12:10: fatal error: libaio.h: No such file or directory\n"
        "compilation terminated.\nchecking for main in -lz... yes\nconfig.status: creating Makefile"
    ),
}  # fmt: skip


@pytest.mark.parametrize("log", GOOD.values(), ids=GOOD)
def test_what_ended_in_order_is_no_failure(log: str) -> None:
    assert read(log).status == "clean"


BAD = {
    "another step of docker": (
        "#12 10.1 /w/a.cpp:3:1: error: 'foo' does not name a type\n#8 DONE 14.0s\n"
        '#12 ERROR: process "/bin/sh -c pip install ." did not complete successfully: exit code: 1',
        *(1, "compile-error"),
    ),
    "an exception that was caught, and another error": (
        GOOD["an exception that was caught"].rpartition("\n")[0] + "\na.c:3:10: fatal error: x.h: No such file or directory"
        "\ncompilation terminated.\nerror: command '/usr/bin/gcc' failed with exit code 1",
        *(7, "missing-header"),
    ),
    "what configure says itself": (
        GOOD["a trial of configure"].rpartition("\nchecking")[0] + "\nconfigure: error: libaio is required but not found",
        *(4, "missing-package"),
    ),
    "a program that Python cannot start": (
        'Traceback (most recent call last):\n  File "/usr/lib/python3.10/subprocess.py", line 1863, in _execute_child\n'
        "FileNotFoundError: [Errno 2] No such file or directory: 'hipconfig'",
        *(3, "missing-tool"),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("log", "line", "kind"), BAD.values(), ids=BAD)
def test_what_did_not_is_one(log: str, line: int, kind: str) -> None:
    reading = read(log)
    assert (reading.line_number, reading.kind) == (line, kind)
