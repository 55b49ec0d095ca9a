"""Whose script stops, whose library is missing, and who only tried: the answer is for the one that it is of."""

# ruff: noqa: E501  (a wording in one line)

from __future__ import annotations

from tests.features.diagnosis.test_claims import elsewhere
from tests.support.for_each import each_case

STEP = "CMake Error at /b/x-prefix/src/x-stamp/x-configure-.cmake:49 (message):\n  Command failed: 1\n\n   '/usr/bin/cmake' '-GNinja' '-S' '/s/sub' '-B' '/b/x'\n"
INSTALL = 'CMake Error at build/cmake_install.cmake:71 (file):\n  file INSTALL cannot find\n  "/s/build/{}":\n  No such file or directory.\n'


@each_case(
    ("log", "said", "not_said"),
    [
        # A script that CMake has written for a step is not to be corrected.
        (STEP + "\n  See also\n\n    /b/x-prefix/src/x-stamp/x-configure-*.log\n", "Read /b/x-prefix/src/x-stamp/x-configure-*.log", "if() above"),
        (STEP.replace("'-GNinja' ", "'-GNinja' '-DA=" + "b" * 300 + "' ") + "\n  See also\n\n    /b/x.log\n", "Read /b/x.log", "if() above"),
        (STEP, "stands above this line", "if() above"),
        (STEP.replace("/b/x-prefix/src/x-stamp/x-configure-.cmake", "cmake/x.cmake"), "if() above", "has written"),
        # A library that another's release brings is copied, and not made, by a build.
        (INSTALL.format("lib/libnvrtc-builtins.so.13.0"), "take it out of the install() rule", "--target NAME"),
        (INSTALL.format("lib/libcudart.so.12"), "take it out of the install() rule", "--target NAME"),
        (INSTALL.format("lib/libmine.so"), "cmake --build BUILD --target NAME", "find /"),
        (INSTALL.format("lib/libtorch_cpu.so"), "cmake --build BUILD first", "find /"),
        # GCC declares a function of an instruction set only where its flag is given.
        ("h.cpp:2:22: error: '__builtin_ia32_crc32di' was not declared in this scope; did you mean 'x'?", "-mavx2", "Take a newer compiler ("),
        ("h.c:2:22: error: '__builtin_ia32_crc32di' undeclared (first use in this function)", "-mavx2", "Take a newer compiler ("),
        ("h.c:2:22: error: '__builtin_ia32_crc32di' needs isa option -msse4.2", "-msse4.2", "Take a newer compiler ("),
        ("h.cpp:2:22: error: '__builtin_addcll' was not declared in this scope", "Take a newer compiler (", "-mavx2"),
    ],
)  # fmt: skip
def test_the_answer_is_for_the_one_that_it_is_of(log: str, said: str, not_said: str) -> None:
    told = elsewhere(log)
    assert said in told.fix
    assert not_said not in told.fix
