"""Tests of who is told: what a fix says depends on what was done, and on which system."""

from __future__ import annotations

from tests.support.diagnosis import read
from tests.support.for_each import each_case
from torchbuild_tasks.features.diagnosis.audience import Audience, plain

UNDEFINED = "undefined reference to `at::empty(int)'\ncollect2: error: ld returned 1 exit status"


@each_case(
    ("log", "said", "command"),
    [
        (
            "FAILED: lib/libtorch_cpu.so\n: && /usr/bin/c++ -o lib/libtorch_cpu.so\n" + UNDEFINED,
            "--clean",
            "",
        ),
        ("g++ -o a a.o -L../libtorch/lib -ltorch\na.o: " + UNDEFINED, "CMAKE_PREFIX_PATH", ""),
        (
            "g++ -DTORCH_EXTENSION_NAME=_C -c a.cpp -o a.o\ng++ a.o -o a\na.o: " + UNDEFINED,
            "that it was written for",
            "",
        ),
        ("x86_64-w64-mingw32-g++ a.cpp\n/usr/bin/x86_64-w64-mingw32-ld: cannot find -ldl", "Windows", ""),
        ("/usr/bin/ld: cannot find -ldl", "libc6-dev", ""),
        ("ld: library not found for -lgfortran\nApple clang version 12", "", ""),
        (
            "FAILED: aten/src/ATen/x.o\nc++ -c aten/src/ATen/x.cpp\n"
            "c++: fatal error: Killed signal terminated program cc1plus",
            "take 4",
            "torchbuild build --jobs 4",
        ),
        (
            "ERROR: BUILD:51: Compiling x.cpp failed: (Exit 4): gcc failed\n"
            "gcc: internal compiler error: Killed (program cc1plus)",
            "bazel",
            "",
        ),
    ],
)
def test_a_fix_is_for_who_is_told(log: str, said: str, command: str) -> None:
    told = read(log).diagnoses[0]
    assert said in told.fix
    assert told.command == command
    assert "sudo apt" not in told.fix or said == "libc6-dev"


def test_whose_import_fails() -> None:
    log = """Traceback (most recent call last):
  File "/v/site-packages/{}.py", line 9, in <module>
    from . import _C
ImportError: libc10.so: cannot open shared object file: No such file or directory"""
    assert "torch itself" in read(log.format("torch/__init__")).diagnoses[0].fix
    assert "import torch before" in read(log.format("mmcv/ops")).diagnoses[0].fix


def test_a_mark_is_never_shown() -> None:
    audience = Audience(doing="torch", system="linux")
    assert audience.select(("[program] a", "[mac] b", "[linux mac] c", "[torch] d", "e")) == ("c", "d", "e")
    assert audience.select(("[our words] a",)) == ("[our words] a",)
    assert plain("[linux mac] c") == "(linux, mac) c"
    assert plain("{!not torch}c {1}") == "(not torch) c {1}"
