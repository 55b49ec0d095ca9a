from __future__ import annotations

from pathlib import Path

import pytest

from tests.facts.fakes import machine
from tests.support.for_each import each_case
from torchbuild_tasks.facts.probe import Output
from torchbuild_tasks.facts.tools import version_in, version_of


@each_case(
    ("said", "version"),
    [
        ("g++ (Debian 12.2.0-14+deb12u1) 12.2.0\nCopyright (C) 2022 Free", "12.2.0"),
        ("g++-4.8 (Ubuntu 4.8.5-4ubuntu8~16.04.1) 4.8.5", "4.8.5"),
        ("gcc (GCC) 11.4.1 20230605 (Red Hat 11.4.1-2)", "11.4.1"),
        ("x86_64-conda-linux-gnu-c++ (conda-forge gcc 12.4.0-0) 12.4.0", "12.4.0"),
        ("Ubuntu clang version 14.0.0-1ubuntu1.1\nTarget: x86_64", "14.0.0"),
        ("Intel(R) oneAPI DPC++/C++ Compiler 2024.0.2 (2024.0.2.20231213)", "2024.0.2"),
        ("cmake version 3.25.1\n\nCMake suite", "3.25.1"),
        ("1.11.1.git.kitware.jobserver-1\n", "1.11.1"),
        ("git version 2.39.5 (Apple Git-154)", "2.39.5"),
        ("GNU ld (GNU Binutils for Debian) 2.40", "2.40"),
        ("GNU ld version 2.30-113.el8", "2.30"),
        ("GNU gold (GNU Binutils for Debian 2.40) 1.16", "1.16"),
        ("GNU x (made (by hand) 9.9) 1.2", "1.2"),
        ("LLD 14.0.6 (compatible with GNU linkers)", "14.0.6"),
        ("mold 1.10.1 (compatible with GNU ld)", "1.10.1"),
        ("GNU bash, version 5.2.15(1)-release (x86_64-pc-linux-gnu)", "5.2.15"),
        ("warning: odd\nccache version 4.7.5", "4.7.5"),
        ("tool v1.4.0", "1.4.0"),
        ("no number here", None),
        ("12", None),
        ("", None),
        ("\n" * 9 + "1.2.3", None),
    ],
)
def test_finds_the_version_of_the_program_and_not_of_its_package(said: str, version: str | None) -> None:
    assert version_in(said) == version


def test_some_say_it_on_the_other_stream(tmp_path: Path) -> None:
    assert version_of(machine(tmp_path, programs={"/x": Output(0, "", "x 1.2")}), "/x") == "1.2"


@pytest.mark.parametrize("said", [None, Output(1, "x 1.2"), Output(-11, "x 1.2"), Output(0, "\0\0")])
def test_a_program_that_fails_has_no_version(tmp_path: Path, said: Output | None) -> None:
    assert version_of(machine(tmp_path, programs={"/x": said}), "/x") is None
