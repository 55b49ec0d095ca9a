"""A word for an error that no error has: a name, a denial, a warning, one place that was searched."""

# ruff: noqa: E501  (a wording in one line)

from __future__ import annotations

import pytest

from tests.support.diagnosis import read

UNLIKE = "ld: warning: ignoring file /x/libc10.dylib, building for macOS-arm64 but attempting to link with file built for macOS-x86_64"
CARGO = "warning: {}/usr/include/c++/11/bits/std_function.h:435:145: error: parameter packs not expanded with '...':"
BUILT = "    Finished `dev` profile [unoptimized] target(s) in 0.20s\n"
WARNS = "/v/setup.py:211: UserWarning: {}\n  warnings.warn({!r})\n"
CUT = 'No CUDA runtime is found\nIf you cross-compile, this is not an error.\nFile "setup.py", line 60, in <module>\n    '


@pytest.mark.parametrize(
    "log",
    [
        BUILT + "ERROR handler installed",
        BUILT + "registered the signal handler",
        BUILT + "this is not an error",
        WARNS.format("libpng-config not found", "libpng-config not found"),
        "copying a\n" + WARNS.format("Building x without PNG support", "Building x without PNG support"),
        "Building x\nSearching for jpeglib.h. Didn't find in /usr/include",
        "Building x\nLooking for b.h: not found in /usr/include",
        "NOTE: op compatibility means that your system\n      meet the required dependencies to JIT install the op.",
        "All required packages are present",
        f"{UNLIKE}\n[100%] Built target a",
        "warning: x: error: this is what it would say",
        "warning: unused variable: `error`\n --> src/main.rs:3:5",
    ],
)
def test_it_is_none(log: str) -> None:
    assert read(log).status == "clean"


@pytest.mark.parametrize(
    ("log", "line"),
    [
        (BUILT + "ERROR handler was called", 2),
        (BUILT + "error: handler not installed", 2),
        (BUILT + "ERROR: no error handler", 2),
        ("Building x\nLooking for b.h: not found in any of these", 2),
        (WARNS.format("x not found", "x not found") + "error: x is needed", 3),
        ("Qt is required", 1),
        # A warning with which a link lacks a file, and nothing of how it ended.
        (UNLIKE, 1),
        (f"[1/2] Linking a\n`{UNLIKE}\n`", 2),
        (
            "ld: warning: ignoring file '/x/libomp.dylib': found architecture 'arm64', required architecture 'x86_64'",
            1,
        ),
        ("a.lib : warning LNK4272: library machine type 'x86' conflicts with target machine type 'x64'", 1),
        # cargo calls all of it a warning, whatever the compiler said
        (CARGO.format(""), 1),
        ("WARNING: a.cc:3:10: fatal error: torch/torch.h: No such file or directory", 1),
        (CARGO.format("torch-sys@0.17.0: "), 1),
        ("warning: tch@0.1.0: x.cpp(12): error C2039: 'a': is not a member of 'at'", 1),
        ("warning: tch@0.1.0: cl : Command line error D8021 : invalid numeric argument '/std'", 1),
        # Where a log is cut off, the source of what was raised has its text.
        (CUT + 'raise RuntimeError("--cuda_ext was requested, but nvcc was not found.', 4),
        (CUT + "raise OSError(f'the compiler does not start", 4),
    ],
)
def test_it_is_one(log: str, line: int) -> None:
    assert read(log).line_number == line
