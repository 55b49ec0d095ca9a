"""What a failure needs before it: a file of the source, a script's definition, a release of what is included."""

# ruff: noqa: E501  (a message in one line)

from __future__ import annotations

from collections.abc import Sequence

from tests.support.diagnosis import book, read
from tests.support.for_each import each_case
from tests.support.machines import linux_facts, plan_of, with_tree
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.features.diagnosis.choose import read_log
from torchbuild_tasks.features.diagnosis.machine import Machine
from torchbuild_tasks.features.diagnosis.scan import LogScanner
from torchbuild_tasks.model import Diagnosis


def elsewhere(log: str) -> Sequence[Diagnosis]:
    """What is told of a log that was brought here, outside of any checkout."""
    facts = with_tree(linux_facts(), problem="no checkout")
    scanner = LogScanner(book())
    scanner.feed_block(log.encode() + b"\n")
    machine = Machine(facts, plan_of(facts), load_catalog(), built=False)
    return read_log(scanner, book(), machine).diagnoses


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
        ("a.c:75:34: error: too few arguments to function call, expected 6, have 5\n  f(a);\n/u/include/zork.h:85:17: note: 'f' declared here", "compile-error", "The call and the declaration in /u/include/zork.h", "Look at that line"),
        ("a.cpp(12): error C2660: 'f': function does not take 5 arguments\nC:\\p\\include\\zork.h(33): note: see declaration of 'f'", "compile-error", "in C:\\p\\include\\zork.h", "Look at that line"),
        ("a.c:75:34: error: too few arguments to function call, expected 6, have 5\n  f(a);\nsrc/own.h:5:1: note: 'f' declared here", "compile-error", "Look at that line", "The call and the declaration"),
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


@each_case(
    ("error", "header"),
    [
        ('error: namespace "at::cuda" has no member "OptionalCUDAGuard"', "c10/cuda/CUDAGuard.h"),
        ("error: 'getCurrentCUDAStream' is not a member of 'at::cuda'", "c10/cuda/CUDAStream.h"),
        ("error: 'AT_CUDA_CHECK' was not declared in this scope", "ATen/cuda/Exceptions.h"),
        ("error: 'C10_CUDA_KERNEL_LAUNCH_CHECK' was not declared in this scope", "c10/cuda/CUDAException.h"),
        ("error: 'TORCH_CHECK' was not declared in this scope", ""),
        ("error: 'class at::Tensor' has no member named 'CUDAGuard'", ""),
        ("error: 'zork' is not a member of 'at::cuda'", ""),
    ],
)
def test_the_header_that_declares_a_name_of_torch_is_looked_up(error: str, header: str) -> None:
    fix = read(f"/tmp/a/v.cu:5:10: {error}\n").diagnoses[0].fix
    assert fix.startswith(f"Write #include <{header}>") is bool(header)
    assert ("torch has C10_CUDA_KERNEL_LAUNCH_CHECK from 1.8 on" in fix) is ("LAUNCH" in error)


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


_FRAMES = 'Traceback (most recent call last):\n  File "{0}/{1}/__init__.py", line 54, in <module>\n    from {1} import x\n'
_SPLIT = "error: No solution found when resolving dependencies for split (markers: python_full_version == '3.8.*')\n"
_RANGE = "  Because the requested Python version (>=3.8) does not satisfy Python>=3.11 and a==1 depends on Python>=3.11, a==1 cannot be used.\n"
_HINT = "\nhint: The `requires-python` value (>=3.8) includes others. Consider using a more restrictive `requires-python` value (like >=3.11).\n"


@each_case(
    ("log", "said", "unsaid"),
    [
        # A folder that hides what is installed, whoever asks.
        (_FRAMES.format("/w/x", "torch") + "ModuleNotFoundError: No module named 'torch._strobelight'", "take /w/x/torch away", "from 2.4 on"),
        (_FRAMES.format("/w/x", "numpy") + "ModuleNotFoundError: No module named 'numpy.core'", "leave the folder of its source", "-m pip install"),
        (_FRAMES.format("/w/x", "torchvision") + "ImportError: cannot import name 'io' from 'torchvision' (/w/x/torchvision/__init__.py)", "take /w/x/torchvision away", "Install the version"),
        (_FRAMES.format("/v/lib/python3.11/site-packages", "foo") + "ModuleNotFoundError: No module named 'torch._strobelight'", "from 2.4 on", "away"),
        # A project that is solved for each Python that it admits.
        (_SPLIT + _RANGE + _HINT, 'requires-python = ">=3.11"', "Take a Python within"),
        (_SPLIT + _RANGE, "Write a narrower requires-python", "Take a Python within"),
        ("error: No solution found when resolving dependencies:\n" + _RANGE, "Take a Python within", "requires-python"),
        (_SPLIT + "  Because torch==2.5.1 has no wheels with a matching Python version tag (e.g., cp314) and your project depends on torch==2.5.1, it is unsatisfiable.", "a narrower requires-python", "uv venv"),
        ("The current project's supported Python range (>=3.8,<4.0) is not compatible with some of the required packages Python requirement:\n  - torch requires Python >=3.9.0, so it will not be installable for Python >=3.8,<3.9.0\n\nBecause no versions of torch match >2.8.0,<3.0.0\n and torch (2.8.0) requires Python >=3.9.0, torch is forbidden.\nSo, because x depends on torch (^2.8.0), version solving failed.", "within >=3.8,<4.0 and >=3.9.0", "pip index"),
        # A command in a sentence was not typed.
        ("CMake Error at CMakeLists.txt:5 (message):\n  third_party/cutlass is empty, run git submodule update --init --recursive", "git submodule update", "already"),
        ("+ git submodule update --init --recursive\nCMake Error at CMakeLists.txt:5 (message):\n  third_party/cutlass is empty", "shows --recursive in a command already", "zork"),
        # What PyPI has under the name of another project.
        ("Collecting apex\n  Downloading apex-0.9.10dev.tar.gz (36 kB)\ncc1: fatal error: /tmp/pip-install-6jta6uty/zork_cc129595c2e3424bbb968a92e3c4636b/x.c: No such file or directory", "git+https://github.com/NVIDIA/apex", "--only-binary"),
        ("cc1: fatal error: /tmp/pip-install-6jta6uty/zork_cc129595c2e3424bbb968a92e3c4636b/x.c: No such file or directory", "--only-binary", "another project than the one for torch"),
        # A tool of a release that there is none of, a compiler of another language, a folder that is not there at all.
        ("scikit_build_core.errors.CMakeNotFoundError: Could not find CMake with version >=5", "No CMake 5 has been released", "--upgrade"),
        ("scikit_build_core.errors.CMakeNotFoundError: Could not find CMake with version >=4.1", "--upgrade", "has been released"),
        ("meson.build:1:0: ERROR: Unknown compiler(s): [['gfortran'], ['flang']]", "install gfortran", "Install it"),
        ("ERROR: Subproject zork is buildable: NO\n\nmeson.build:3:6: ERROR: Attempted to resolve subproject without subprojects directory present.", "is not there at all", "where a .wrap names it"),
        ("ERROR: Subproject zork is buildable: NO", "where a .wrap names it", "is not there at all"),
        ("CMake Error at /u/CMakeDetermineCUDACompiler.cmake:180 (message):\n  Failed to find nvcc.\n\n  Compiler requires the CUDA toolkit.", "Where there is none, install one", "Where it is named already"),
        ("OSError: Could not find compatible tinycudann extension for compute capability 75.", "TCNN_CUDA_ARCHITECTURES=75", "what that line asks for"),
    ],
)  # fmt: skip
def test_whose_the_matter_is_decides(log: str, said: str, unsaid: str) -> None:
    fix = " ".join(each.fix for each in elsewhere(log))
    assert said in fix
    assert unsaid not in fix


_PIP = "  × Building wheel for x (pyproject.toml) did not run successfully.\n  │ exit code: 1\n  ╰─> [16 lines of output]\n      running build_ext\n{}\n      [end of output]\n\n  ERROR: Failed building wheel for x\nFailed to build x\nerror: failed-wheel-build-for-install\n"


@each_case(
    ("line", "kind"),
    [
        ("      error: command 'zork' failed: No such file or directory", "missing-tool"),
        ("      error: command '/opt/zork' failed: Permission denied", "permission"),
        ("      ninja: build stopped: subcommand failed.", "command-failed"),
        ("      error: command 'zork' failed with exit code 1", "command-failed"),
    ],
)
def test_a_command_that_could_not_be_started_is_the_error_itself(line: str, kind: str) -> None:
    reading = read(_PIP.format(line))
    assert (reading.kind, reading.error_line.strip()) == (kind, line.strip())


def test_a_page_that_pip_asked_for_is_no_part_of_the_message() -> None:
    log = (
        "WARNING: Retrying (Retry(total=0, connect=None)) after connection broken by 'NameResolutionError("
        "\"HTTPSConnection(host='d.org', port=443): Failed to resolve 'd.org' ([Errno -2] Name or service not known)\")'"
        ": /whl/cu128/filelock/\nERROR: Could not find a version that satisfies the requirement filelock (from versions: none)\n"
    )
    cause = read(log).diagnoses[0].cause
    assert "Name or service not known)" in cause
    assert "/whl/" not in cause


def test_uv_is_known_by_its_words_far_above_the_error() -> None:
    built = "error: Failed to build `x @ file:///x`\n  cause: The build backend returned an error\n  cause: Call to `setuptools.build_meta.build_wheel` failed (exit status: 1)\n\n"
    raised = "         Traceback (most recent call last):\n           File \"<string>\", line 5, in <module>\n         ModuleNotFoundError: No module named 'torch'\n"
    step = "         running build_ext\n" * 20
    assert "uv pip install" in elsewhere(built + step + raised)[0].fix
    assert "uv pip install" not in elsewhere(step + raised)[0].fix


def test_what_uv_went_around_is_no_failure() -> None:
    built = "error: Failed to build `x`\n  cause: The build backend returned an error\n"
    went_on = "Falling back to the wheel of 1.2\nInstalled 3 packages in 5ms\n + x==1.2\n"
    assert read(built + went_on).status == "clean"
