from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.for_each import each_case
from torchbuild_tasks.facts import names_posix, names_windows
from torchbuild_tasks.facts.names import Names

PATHS = {
    names_posix: ("/", "/usr", "/usr/lib/x y", "/usr/lib/x y/z.1"),
    names_windows: ("C:\\", "D:\\usr", "C:\\Program Files (x86)\\x y", "C:\\a\\b\\z.1"),
}
CASES = [(names, path) for names, paths in PATHS.items() for path in paths]


@pytest.mark.parametrize(("names", "path"), CASES, ids=lambda value: getattr(value, "__name__", value))
def test_a_path_is_its_parent_and_its_base(names: Names, path: str, tmp_path: Path) -> None:
    assert names.is_absolute(path)
    assert names.is_path(path)
    assert names.normal(path) == path
    assert names.join(names.parent(path), names.base(path)) == path
    assert names.path_of(tmp_path, names.file_of(tmp_path, path)) == path
    assert names.key(path) == names.key(names.join(path, "x/..")) or names is names_posix


@each_case("names", [names_posix, names_windows], ids=["posix", "windows"])
def test_the_top_is_its_own_parent(names: Names) -> None:
    path = PATHS[names][-1]  # type: ignore[index]
    for _ in range(5):
        path = names.parent(path)
    assert path == PATHS[names][0]  # type: ignore[index]


@each_case(
    ("names", "path", "stem"),
    [
        (names_posix, "/usr/bin/g++-12.1", "g++-12.1"),
        (names_posix, "cl.exe", "cl.exe"),
        (names_windows, "C:\\x\\CL.EXE", "cl"),
        (names_windows, "clang++", "clang++"),
        (names_windows, "C:/x/python3.12.exe", "python3.12"),
        (names_windows, "python3.12", "python3.12"),
    ],
)
def test_a_program_goes_by_its_stem(names: Names, path: str, stem: str) -> None:
    assert names.stem(path) == stem


@each_case(
    ("value", "words"),
    [
        ("cl", ["cl"]),
        ('"C:\\Program Files\\x\\cl.exe" /nologo', ["C:\\Program Files\\x\\cl.exe", "/nologo"]),
        ('C:\\x\\sccache.exe  "C:\\My Dir"\\cl.exe', ["C:\\x\\sccache.exe", "C:\\My Dir\\cl.exe"]),
        ('cl "open quote', ["cl", "open quote"]),
        ("", []),
        ("   ", []),
    ],
)
def test_a_backslash_quotes_nothing_on_windows(value: str, words: list[str]) -> None:
    assert names_windows.split_words(value) == tuple(words)


def test_relative_and_absolute() -> None:
    assert not names_posix.is_absolute("C:\\x")
    assert not any(map(names_windows.is_absolute, ["x", "\\x", "C:x", ""]))
    assert names_windows.is_absolute("\\\\server\\share\\x")
    assert not names_windows.is_path("cl")
    assert names_windows.is_path("C:cl")


def test_drives() -> None:
    assert names_posix.drive("/x") == ""
    assert names_windows.drive("s:\\x\\y") == "s:\\"
    assert names_windows.drive("\\\\server\\share\\x") == ""
    assert names_windows.drive("x") == ""


def test_an_extended_path_is_the_path_in_it() -> None:
    for path, plain in (
        ("\\\\?\\C:\\x\\..\\y", "C:\\y"),
        ("//?/c:/x", "c:\\x"),
        ("\\\\.\\C:\\x", "C:\\x"),
        ("\\\\?\\UNC\\server\\share\\x", "\\\\server\\share\\x"),
        ("\\\\server\\share\\x", "\\\\server\\share\\x"),
    ):
        assert names_windows.normal(path) == plain
        assert names_windows.key(path) == plain.lower()


def test_joining_takes_both_separators_on_windows() -> None:
    assert names_windows.join("C:\\src", "torch/__init__.py") == "C:\\src\\torch\\__init__.py"
    assert names_windows.join("C:\\src", "a", "b") == "C:\\src\\a\\b"
    assert names_posix.join("/src", "a", "b") == "/src/a/b"


def test_without_pathext_a_program_is_what_can_be_started() -> None:
    assert names_windows.program_files("x", {}) == ("x.com", "x.exe", "x.bat", "x.cmd")
    assert names_windows.program_files("x.Exe", {}) == ("x.Exe",)
    assert names_windows.program_files("python3.12", {"pathext": ".EXE;.PY"}) == ("python3.12.exe",)
