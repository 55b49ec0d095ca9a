"""Arguments of GNU ld, as clang and CMake give them, become those of lld-link."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.windows.lld import expanded, library, main, translated

LIBRARIES = {
    "C:/a/libstatic.a",
    "C:/b/libboth.dll.a",
    "C:/b/libboth.a",
    "C:/b/python311.lib",
    "C:/b/odd.name",
}


def link(words: str) -> list[str]:
    """Return the arguments for lld-link, without those that never change."""
    said = translated(words.split(), LIBRARIES.__contains__)
    return [word for word in said if word not in ("-lldmingw", "-nologo", "-machine:x64", "-opt:noicf")]


def test_a_program_as_clang_asks_for_it() -> None:
    words = link("-m i386pep --sysroot=C:/mingw -Bstatic -o x.exe crt2.o -LC:/a x.o --start-group -lstatic")
    assert words[:2] == ["-out:x.exe", "-entry:mainCRTStartup"]
    assert words[3:] == [
        "-subsystem:console",
        "-noimplib",
        "-libpath:C:/a",
        "crt2.o",
        "x.o",
        "C:/a/libstatic.a",
    ]


def test_a_library_as_cmake_asks_for_it() -> None:
    said = "-shared -o _C.pyd --out-implib _C.dll.a --major-image-version 0 --minor-image-version 0 x.o"
    words = link(said)
    assert "-dll" in words
    assert "-entry:DllMainCRTStartup" in words
    assert "-implib:_C.dll.a" in words
    assert words[-1] == "x.o"
    assert "0" not in words


@pytest.mark.parametrize("said", ["-e start --subsystem windows", "--entry=start --subsystem=windows"])
def test_both_forms_of_a_value(said: str) -> None:
    words = link(f"{said} x.o")
    assert "-entry:start" in words
    assert "-subsystem:windows" in words


def test_whole_archive_applies_to_one_archive_only() -> None:
    words = link("x.o --whole-archive all.a y.o --no-whole-archive some.a")
    assert words[-4:] == ["x.o", "-wholearchive:all.a", "y.o", "some.a"]


def test_static_and_dynamic_hold_for_what_follows() -> None:
    words = link("-L C:/a -L C:/b -lboth -Bstatic -lboth -Bdynamic -lboth -lpython311 -l:odd.name")
    assert words[-5:] == [
        "C:/b/libboth.dll.a",
        "C:/b/libboth.a",
        "C:/b/libboth.dll.a",
        "C:/b/python311.lib",
        "C:/b/odd.name",
    ]


def test_the_first_folder_wins() -> None:
    there = {"C:/a/libx.a", "C:/b/libx.dll.a"}
    assert library("x", ["C:/a", "C:/b"], False, there.__contains__) == "C:/a/libx.a"


def test_a_missing_library_is_named() -> None:
    with pytest.raises(SystemExit, match="cannot find -lnothing"):
        link("-LC:/a -lnothing")


def test_response_files_inside_each_other(tmp_path: Path) -> None:
    (tmp_path / "outer").write_text(f'"C:\\a b\\x.o" @{(tmp_path / "inner").as_posix()}\n', "utf-8")
    (tmp_path / "inner").write_text("-lstatic", "utf-8")
    words = list(expanded(["-o", "x.exe", f"@{tmp_path / 'outer'}"]))
    assert words == ["-o", "x.exe", "C:\\a b\\x.o", "-lstatic"]


def test_cmake_asks_who_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main("no such linker", ["--version"]) == 0
    assert "GNU ld" in capsys.readouterr().out
