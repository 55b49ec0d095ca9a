"""What a tool's message means for the way out: what it says is told, and what only looks like it is not."""

# ruff: noqa: E501  (a message in one line)

from __future__ import annotations

import pytest

from tests.support.diagnosis import read

COMMIT = "fatal: reference is not a tree: df63f88a364da6be3963b4924c327b12f88d7748"
CMAKE = "CMake Error at b/cmake_install.cmake:52 (file):\n  file INSTALL cannot find"
NOT_RUN = (
    "error: failed to run custom build command for `a v0.1.0`\n\n"
    "Caused by:\n  could not execute process `/t/a` (never executed)\n\nCaused by:\n"
)


@pytest.mark.parametrize(
    ("log", "said", "unsaid"),
    [
        (f"{COMMIT}\nCMake Error at x-populate-gitclone.cmake:40 (message):\n  Failed to checkout tag", "GIT_SHALLOW", "source reset"),
        (f"{COMMIT}\nUnable to checkout 'df63f88a' in submodule path 'third_party/x'", "torchbuild source reset", "GIT_SHALLOW"),
        (f"{NOT_RUN}  Permission denied (os error 13)", "CARGO_TARGET_DIR", "$USER"),
        (f"{NOT_RUN}  No such file or directory (os error 2)", "", "noexec"),
        (f'{CMAKE} "/b/libp.so": No\n  such file or directory.', "cmake --build", "git status"),
        (f'{CMAKE} "/s/README.md": No\n  such file or directory.', "git status", "cmake --build"),
        ("zork/x.proto: File not found.", "-I has to name", "--clean"),
        ('a.proto:2:1: Import "zork/x.proto" was not found or had errors.', "-I has to name", "--clean"),
        ("nvc++-Error-Unknown switch: -fwrapv", "CC=gcc", ""),
        ("g++: error: unrecognized command line option '-fzork'", "Take -fzork out", "CC=gcc"),
        ("C:/t/a.c:13: error: include file 'Python.h' not found\nC:/python_embeded/x", "embedded", "bootstrap"),
    ],
)  # fmt: skip
def test_the_message_decides(log: str, said: str, unsaid: str) -> None:
    fix = " ".join(f"{each.fix} {each.command}" for each in read(log).diagnoses)
    assert said in fix
    assert not unsaid or unsaid not in fix


RAISED = (
    "Traceback (most recent call last):\n  File 'a.py', line 1\nModuleNotFoundError: No module named 'zork'"
)
LINK = "LINK : fatal error LNK1181: cannot open input file 'aio.lib'"


def test_a_traceback_that_is_cut_off_has_the_exception_that_was_passed_over_before() -> None:
    warned = "CMake Warning at a.cmake:2 (message):\n    " + RAISED.replace("\n", "\n    ")
    cut = "-- Generating\nTraceback (most recent call last):"
    assert "zork" in read(f"{warned}\n\n{cut}").error_line
    assert "zork" not in read(f"{warned}\n\n{cut}\n  File 'b.py', line 1\nValueError: b").error_line


def test_a_trial_that_a_script_only_warns_of_counts_last() -> None:
    warned = f"{LINK}\n [WARNING]  async_io requires libaio"
    assert "zork" in read(f"{warned}\n{RAISED}").error_line
    assert "LNK1181" in read(f"{LINK}\n{RAISED}").error_line
    assert "LNK1181" in read(warned).error_line
    assert "LNK1181" in read(f"{warned}\nerror: command 'link.exe' failed with exit code 1181").error_line
