"""What a program in a build's environment gets, decided from values alone."""

from __future__ import annotations

from pathlib import PurePath

import psutil
import pytest

from tests.support.for_each import each_case
from torchbuild_tasks.features.enter import verb
from torchbuild_tasks.features.enter.verb import shell_of, with_python
from torchbuild_tasks.system.attached import as_shells_say


def test_the_builds_python_is_the_first_on_path() -> None:
    python = str(PurePath("/v/bin/python"))
    made = with_python({"Path": "/usr/bin", "PYTHONHOME": "/x", "VIRTUAL_ENV": "/old"}, python, "/v", ":")
    assert made == {"Path": f"{PurePath(python).parent}:/usr/bin", "VIRTUAL_ENV": "/v"}


def test_without_a_build_nothing_but_the_env_file_counts() -> None:
    assert with_python({"PATH": "/usr/bin"}, "", "", ":") == {"PATH": "/usr/bin"}


@each_case(
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


def test_parents_are_named_as_far_as_they_can_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """psutil lets errors of the system through, and a service's name may not be read."""

    class Parent:
        def __init__(self, name: str) -> None:
            self._name = name

        def name(self) -> str:
            if not self._name:
                raise OSError(22, "Invalid parameter")
            return self._name

    class Process:
        def parents(self) -> list[Parent]:
            return [Parent("python.exe"), Parent("pwsh.exe"), Parent("")]

    monkeypatch.setattr(psutil, "Process", Process)
    assert verb._parents() == ("python.exe", "pwsh.exe")


@each_case(
    ("code", "windows", "said"),
    [(7, False, 7), (-11, False, 139), (7, True, 7), (0xC0000005, True, -1073741819), (0xFFFFFFFF, True, -1)],
)
def test_an_exit_code_is_that_of_the_systems_shell(code: int, windows: bool, said: int) -> None:
    assert as_shells_say(code, windows=windows) == said
