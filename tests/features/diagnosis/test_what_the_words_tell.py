"""What a message itself tells decides: what it lists, whom it says is missing, whose file speaks."""

from __future__ import annotations

import pytest

from tests.support.diagnosis import read

each_case = pytest.mark.parametrize
_LICENSE = (
    'Traceback (most recent call last):\n  File "<string>", line 1, in <module>\n'
    "ValueError: invalid pyproject.toml config: `project.license`.\n"
    "configuration error: `project.license` must be valid exactly by one definition (0 matches found):\n\n"
    "    - {}keys:\n        'file': {{type: string}}\n      required: ['file']\n"
)
_UV = (
    "error: No solution found when resolving dependencies\n"
    "  cause: Because torch==2.6.0 has no wheels with a matching platform tag (e.g., `{}`) and you require"
    " torch==2.6.0, we can conclude that your requirements are unsatisfiable.\n\n"
    "hint: Wheels are available for `torch` (v2.6.0) on the following platforms: `manylinux_2_28_x86_64`,"
    " `macosx_11_0_arm64`, `win_amd64`\n"
)
_STRING = "{type: string, format: 'SPDX'}\n    - type: table\n      "


@each_case(
    ("log", "said", "unsaid"),
    [
        (_LICENSE.format(_STRING), 'license = "Apache-2.0"', "setuptools>=77"),
        (_LICENSE.format(""), "setuptools>=77", "Another release of what builds it"),
        ('ValueError: Unknown license: "apache license 2"\n', 'license = "Apache-2.0"', "setuptools>=77"),
        ('ccache: error: Could not find compiler "c++" in PATH', "install build-essential", "CCACHE_LOGFILE"),
        ("distcc[12] ERROR: failed to exec g++: No such file or directory", "install g++", "own log"),
        (
            "ValueError: setuptools-scm was unable to detect version for /x.",
            "PRETEND_VERSION",
            "Correct pyproject",
        ),
        (
            "ninja: error: build.ninja:9: multiple rules generate /w/build/temp.linux-3.11/csrc/kern.o",
            "Rename one of the two",
            "USE_NINJA=0",
        ),
        (_UV.format("macosx_13_0_x86_64"), "take torch 2.2.2", "torch 2.6 has wheels for Python"),
        (_UV.format("musllinux_1_2_x86_64"), "C library is musl", "torch 2.6 has wheels for Python"),
        (_UV.format("manylinux_2_17_x86_64"), "glibc 2.17", "torch 2.6 has wheels for Python"),
        (_UV.format("win_arm64"), "and this is win_arm64", "torch 2.6 has wheels for Python"),
        (
            "ninja: error: build.ninja:9: multiple rules generate src/kern.o",
            "Where CMake wrote it",
            "Rename",
        ),
    ],
)
def test_the_words_of_the_message_decide(log: str, said: str, unsaid: str) -> None:
    fix = " ".join(each.fix for each in read(log).diagnoses)
    assert said in fix
    assert unsaid not in fix


_LOADED = (
    'Traceback (most recent call last):\n  File "{}", line 9, in f\nImportError: {}: undefined symbol: {}\n'
)
_NEW = "_ZN3c106detail14torchCheckFailEPKcS2_jRKNSt7__cxx1112basic_stringIcE"


@each_case(
    ("frame", "file", "symbol", "said", "unsaid"),
    [
        (
            "/w/a.py",
            "/w/fast/_C.so",
            "_ZN3c106detail14torchCheckFailEPKcS2_jRKSs",
            "=0 out of",
            "import torch before",
        ),
        ("/w/a.py", "/w/fast/_C.so", _NEW, "import torch before", "=0 out of"),
        ("/e/torch/_ops.py", "/w/fast/_C.so", _NEW, "Build it again", "import torch before"),
        (
            "/w/a.py",
            "/e/torchaudio/lib/libtorchaudio.so",
            _NEW,
            "torchaudio has torch's own number",
            "import torch before",
        ),
        (
            "/w/a.py",
            "/e/site-packages/k/o.so",
            "cuGreenCtxStreamCreate",
            "a newer driver",
            "import torch before",
        ),
        (
            "/w/a.py",
            "/e/site-packages/k/o.so",
            "cudaLaunchKernelExC",
            "libcu|nvidia-",
            "newer driver (nvidia-smi",
        ),
    ],
)
def test_a_symbol_that_was_not_found_tells_whose_it_is(
    frame: str, file: str, symbol: str, said: str, unsaid: str
) -> None:
    fix = " ".join(each.fix for each in read(_LOADED.format(frame, file, symbol)).diagnoses)
    assert any(each in fix for each in said.split("|"))
    assert unsaid not in fix


@each_case(
    ("line", "torn"),
    [
        (
            "/opt/rocm-5.6.0/include/hip/hip_bf16.h:30:10: fatal error: 'hip/amd_detail/x.h' file not found",
            True,
        ),
        ("/usr/include/pybind11/pybind11.h:3:10: fatal error: pybind11/x.h: No such file or directory", True),
        (
            "/e/site-packages/torch/include/ATen/T.h:3:1: fatal error: ATen/x.h: No such file or directory",
            True,
        ),
        ("/usr/include/gnu/stubs.h:7:11: fatal error: gnu/stubs-32.h: No such file or directory", False),
        ("csrc/hip/a.h:3:10: fatal error: 'hip/hip_fp16.h' file not found", False),
        ("/opt/x/include/x/a.h:3:10: fatal error: 'hip/hip_fp16.h' file not found", False),
    ],
)
def test_an_installed_header_that_lacks_one_beside_it_is_not_whole(line: str, torn: bool) -> None:
    fix = " ".join(each.fix for each in read(line).diagnoses)
    assert ("in a whole installation" in fix) is torn


_ASKS = (
    'Traceback (most recent call last):\n  File "/tmp/pip-build-env-x/a.py", line 1, in <module>\n'
    '  File "{}", line 10, in <module>\n    import distutils.core\n'
    "ModuleNotFoundError: No module named 'distutils'\n"
)


@each_case(
    ("file", "said"),
    [
        (
            "/tmp/pip-build-env-x/overlay/lib/python3.12/site-packages/setuptools/__init__.py",
            "pins an old one",
        ),
        (
            "/tmp/pip-build-env-x/overlay/lib/python3.12/site-packages/pkg_resources/__init__.py",
            "pins an old one",
        ),
        ("/w/setup.py", "'setuptools<74' for a source"),
    ],
)
def test_an_old_setuptools_that_asks_for_distutils_is_what_the_package_pins(file: str, said: str) -> None:
    assert said in read(_ASKS.format(file)).diagnoses[0].fix


_ANOTHER = "gcc -c g.c\ng.c:1:10: fatal error: cblas.h: No such file or directory\nmake: *** [g.o] Error 1\n"


@each_case(
    ("log", "line"),
    [
        ("cc a\nmake: zork: No such file or directory\nmake: *** [a.o] Error 127\n" + _ANOTHER, 2),
        ("cc a\ngmake[2]: zork: Command not found\ngmake[2]: *** [a.o] Error 127\n" + _ANOTHER, 2),
        ("cc a\nmake: zork: No such file or directory\nmake: [a.o] Error 127 (ignored)\n" + _ANOTHER, 5),
        ("cc a\nmake: *** [a.o] Fehler 2\n  ERROR: Failed building wheel for x\nFailed to build x\n", 2),
        ("cc a\nmake: *** [a.o] Fehler 2\nERROR: ERROR: Failed to build installable wheels (x)\n", 2),
    ],
)
def test_the_first_that_make_reports_is_the_error(log: str, line: int) -> None:
    assert read(log).line_number == line


@each_case(
    ("code", "said"),
    [
        (2, "interrupted from outside"),
        (4, "an instruction that this processor does not have"),
        (6, "crashed"),
        (7, "crashed"),
        (8, "crashed"),
        (9, "by force"),
        (11, "crashed"),
        (15, "interrupted from outside"),
    ],
)
@each_case(
    "form",
    [
        "  │ exit code: -{0}",
        "error: command '/usr/bin/zork' failed with exit code -{0}",
        "error: command '/usr/bin/zork' failed with exit code {1}",
        "make: *** [Makefile:2: x] Error {1}",
    ],
)
def test_a_code_of_a_signal_is_read_as_that(code: int, said: str, form: str) -> None:
    assert any(said in each.cause for each in read(form.format(code, 128 + code)).diagnoses)


_NARROW = (
    "/OUT:build\\lib\\x.cp310-{}.pyd\n"
    "LINK : fatal error LNK1181: cannot open input file 'build\\temp.{}-cpython-310\\Release\\a.obj'\n"
)


@each_case(("tag", "folder", "narrow"), [("win_amd64", "win32", True), ("win32", "win32", False)])
def test_tools_for_32_bits_beside_a_python_for_64_are_told_of(tag: str, folder: str, narrow: bool) -> None:
    assert ("DISTUTILS_USE_SDK=1" in read(_NARROW.format(tag, folder)).diagnoses[0].fix) is narrow


@each_case(
    ("program", "said"),
    [
        ("/usr/bin/grpc_cpp_plugin", "protobuf-compiler-grpc"),
        ("grpc_python_plugin", "protobuf-compiler-grpc"),
        ("/usr/bin/swig", "install swig"),
        ("/opt/zork/bin/swig", "Find what names"),
        ("/usr/bin/zork", "Find what names"),
    ],
)
def test_a_program_of_a_package_is_told_with_it_by_its_path_as_well(program: str, said: str) -> None:
    assert said in read(f"{program}: program not found or is not executable").diagnoses[0].fix


@each_case(
    ("log", "gone"),
    [
        ("cdef np.ndarray[np.int_t, ndim=1] x\n                   ^\na.pyx:8:23: Invalid type.\n", "int_t"),
        ("ctypedef cnp.uint_t T\n         ^\na.pyx:2:9: 'uint_t' is not a type identifier\n", "uint_t"),
        ("from numpy cimport int_t\n^\na.pyx:1:0: 'numpy/int_t.pxd' not found\n", "int_t"),
        ("cdef np.ndarray[np.foo_t, ndim=1] x\n                   ^\na.pyx:8:23: Invalid type.\n", ""),
        ("from zork cimport x\n^\na.pyx:1:0: 'zork/x.pxd' not found\n", ""),
    ],
)
def test_a_type_that_numpy_declares_no_more_is_told_of(log: str, gone: str) -> None:
    fix = read(log).diagnoses[0].fix
    assert (f"for Cython have {gone} up to 1.26" in fix) if gone else ("for Cython have" not in fix)


@each_case(
    ("named", "lacks", "also"),
    [
        ((60, 70), 60, "compute_70"),
        ((120, 80, 121), 120, "compute_121"),
        ((35, 50, 80), 35, ""),
        ((50, 35), 50, "compute_35"),
        ((75,), 60, ""),
    ],
)
def test_other_architectures_that_such_a_toolkit_lacks_are_named(
    named: tuple[int, ...], lacks: int, also: str
) -> None:
    flags = " ".join(f"-gencode=arch=compute_{each},code=sm_{each}" for each in named)
    log = f"nvcc {flags} -c a.cu\nnvcc fatal   : Unsupported gpu architecture 'compute_{lacks}'\n"
    cause = read(log).diagnoses[0].cause
    assert f"(and {also})" in cause if also else "(and" not in cause


@each_case(
    ("name", "said"),
    [
        ("flash-attn", "leave out --only-binary"),
        ("mamba_ssm==2.2.4", "leave out --only-binary"),
        ("flash-attn-zork", "Look first at its spelling"),
        ("zork", "Look first at its spelling"),
    ],
)
def test_what_has_no_wheel_at_all_is_told_as_that(name: str, said: str) -> None:
    lines = (f"Could not find a version that satisfies the requirement {name} (from versions: none)", "")
    assert said in read("ERROR: " + "\n".join(lines)).diagnoses[0].fix


def test_a_warning_of_why_there_is_no_gpu_is_the_cause_where_the_output_was_cut_off() -> None:
    log = (
        "  × python setup.py egg_info did not run successfully.\n  │ exit code: 1\n"
        "  ╰─> [9 lines of output]\n"
        "      /e/torch/cuda/__init__.py:83: UserWarning: CUDA initialization: Error 804: forward"
        " compatibility was attempted on non supported HW (Triggered internally at a.cpp:109.)\n"
        '      Traceback (most recent call last):\n        File "<string>", line 2, in <module>\n'
    )
    assert (read(log).line_number, read(log).diagnoses[0].id) == (4, "cuda804")
    assert read(log + "      KeyError: 3\n      [end of output]\n").diagnoses[0].id != "cuda804"
