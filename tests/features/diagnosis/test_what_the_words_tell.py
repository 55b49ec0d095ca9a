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
