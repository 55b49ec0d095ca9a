"""What a program in a build's environment gets, decided from values alone."""

from __future__ import annotations

from pathlib import PurePath

import pytest

from torchbuild_tasks.features.enter.verb import shell_of, with_python


def test_the_builds_python_is_the_first_on_path() -> None:
    python = str(PurePath("/v/bin/python"))
    made = with_python({"Path": "/usr/bin", "PYTHONHOME": "/x", "VIRTUAL_ENV": "/old"}, python, "/v", ":")
    assert made == {"Path": f"{PurePath(python).parent}:/usr/bin", "VIRTUAL_ENV": "/v"}


def test_without_a_build_nothing_but_the_env_file_counts() -> None:
    assert with_python({"PATH": "/usr/bin"}, "", "", ":") == {"PATH": "/usr/bin"}


@pytest.mark.parametrize(
    ("environ", "parents", "windows", "argv"),
    [
        ({"SHELL": "/usr/bin/fish"}, (), False, ("/usr/bin/fish",)),
        ({}, (), False, ("/bin/sh",)),
        ({}, ("nox.exe", "pwsh.exe", "cmd.exe"), True, ("pwsh.exe", "-NoLogo")),
        ({"COMSPEC": r"C:\cmd.exe"}, ("cmd.exe", "powershell.exe"), True, (r"C:\cmd.exe",)),
    ],
)
def test_a_shell_is_that_which_one_comes_from(
    environ: dict[str, str], parents: tuple[str, ...], windows: bool, argv: tuple[str, ...]
) -> None:
    assert shell_of(environ, parents, windows=windows) == argv
