from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.facts.fakes import link, machine, windows_machine, write
from tests.support.capabilities import needs_fifo, needs_posix_paths, needs_posix_permissions, needs_symlinks
from torchbuild_tasks.facts import names_posix, names_windows
from torchbuild_tasks.facts.probe import Probe


def test_which_takes_the_first_program_and_skips_what_cannot_be_started(tmp_path: Path) -> None:
    door = machine(
        tmp_path,
        files={"/a/tool": "not executable", "/b/tool/": ""},
        programs={"/c/tool": "", "/d/tool": ""},
        environ={"PATH": "/a:/b::/missing:/c/:/c:/d"},
    )
    assert door.which_all("tool") == ("/c/tool", "/d/tool")
    assert door.which("tool") == "/c/tool"
    assert door.which("other") is None
    assert door.path_folders == ("/a", "/b", "/missing", "/c", "/d")


def test_windows_has_a_path_of_its_own(tmp_path: Path) -> None:
    path = '"C:\\My Tools";;c:\\my tools\\;D:\\x;bin;'
    door = windows_machine(
        tmp_path,
        files={"C:\\My Tools\\tool": "", "C:\\My Tools\\tool.js": ""},
        programs={"D:\\x\\tool.cmd": "", "D:\\x\\tool.exe": "", "C:\\here\\bin\\tool.exe": ""},
        environ={"Path": path},
    )
    assert door.path_folders == ("C:\\My Tools", "D:\\x", "C:\\here\\bin")
    assert door.which_all("tool") == ("D:\\x\\tool.exe", "C:\\here\\bin\\tool.exe")
    assert door.which("tool.cmd") == "D:\\x\\tool.cmd"
    assert door.program_at("D:\\x\\tool") == "D:\\x\\tool.exe"
    assert (door.which("tool.js"), door.program_at("D:\\x\\none")) == (None, None)


def test_pathext_decides_what_a_name_without_an_ending_means(tmp_path: Path) -> None:
    programs = {"C:\\bin\\tool.bat": "", "C:\\bin\\tool.exe": ""}
    door = windows_machine(tmp_path, programs=programs, environ={"PATHEXT": ".JS;.BAT;.EXE"})
    assert door.which("tool") == "C:\\bin\\tool.bat"


def test_names_of_variables_have_no_case_on_windows(tmp_path: Path) -> None:
    assert windows_machine(tmp_path, environ={"VcToolsVersion": "14"}).variable("VCTOOLSVERSION") == "14"
    assert machine(tmp_path, environ={"Cc": "gcc"}).variable("CC") == ""


def test_without_path_nothing_is_found(tmp_path: Path) -> None:
    assert Probe(environ={}, root=tmp_path).which_all("sh") == ()


def test_what_cannot_be_read_is_none(tmp_path: Path) -> None:
    write(tmp_path, {"/folder/": "", "/text": "é"})
    (tmp_path / "bytes").write_bytes(b"a\xffb")
    door = Probe(environ={}, root=tmp_path, names=names_posix)
    assert [door.read(name) for name in ("/missing", "/folder", "/text/below")] == [None] * 3
    assert door.read("/text") == "é"
    assert door.read("/bytes") == "a�b"
    assert (door.size("/bytes"), door.size("/missing")) == (3, None)
    assert door.children("/text") == door.children("/missing") == ()
    assert door.writable("/missing") is None


@needs_fifo
def test_a_pipe_is_not_read(tmp_path: Path) -> None:
    if sys.platform != "win32":  # for mypy: the function does not exist there
        os.mkfifo(tmp_path / "pipe")
    assert Probe(environ={}, root=tmp_path).read("/pipe") is None


@needs_posix_permissions
def test_a_program_has_a_mode_and_a_folder_may_be_written(tmp_path: Path) -> None:
    write(tmp_path, {"/tool": "", "/text": ""})
    (tmp_path / "tool").chmod(0o755)
    door = Probe(environ={}, root=tmp_path)
    assert (door.is_program("/tool"), door.is_program("/text")) == (True, False)
    assert door.writable("/") is True


def test_windows_does_not_tell_what_may_be_written(tmp_path: Path) -> None:
    door = windows_machine(tmp_path, files={"C:\\x\\": ""})
    assert (door.writable("C:\\x"), door.writable("C:\\y")) == (None, None)


@pytest.mark.parametrize("names", [names_posix, names_windows], ids=["posix", "windows"])
def test_names_that_no_file_system_holds_are_not_there(tmp_path: Path, names: object) -> None:
    door = Probe(environ={}, root=tmp_path, names=names)  # type: ignore[arg-type]
    for name in ("/a\0b", "/" + "x" * 5000):
        assert not door.exists(name)
        assert not door.is_program(name)
        assert door.read(name) is None
        assert door.children(name) == ()


@needs_symlinks
def test_realpath_stays_inside_the_root(tmp_path: Path) -> None:
    write(tmp_path, {"/usr/bin/g++-12": ""})
    link(tmp_path, "/usr/bin/g++", "g++-12")
    link(tmp_path, "/usr/bin/c++", "g++")
    link(tmp_path, "/round/a", "b")
    link(tmp_path, "/round/b", "a")
    door = Probe(environ={}, root=tmp_path)
    assert door.realpath("/usr/bin/c++") == "/usr/bin/g++-12"
    assert door.realpath("/round/a") == "/round/a"
    assert not door.exists("/round/a")


@needs_symlinks
def test_a_drive_that_stands_for_a_folder_is_kept_and_a_link_between_drives_is_followed(
    tmp_path: Path,
) -> None:
    door = windows_machine(tmp_path, files={"C:\\very\\long\\src\\x": "", "D:\\real\\": ""})
    link(tmp_path, "S", "C/very/long")  # subst S: C:\very\long
    link(tmp_path, "C/junction", "../D/real")
    assert door.realpath("S:\\src\\x") == "S:\\src\\x"
    assert door.realpath("S:\\") == "S:\\"
    assert door.realpath("S:\\none\\..\\src") == "S:\\src"
    assert door.realpath("C:\\junction\\y") == "D:\\real\\y"


def test_absolute_knows_home_and_the_current_folder(tmp_path: Path) -> None:
    door = machine(tmp_path, environ={"HOME": "/home/me"})
    assert door.absolute("~/src/../torch") == "/home/me/torch"
    assert door.absolute("~") == "/home/me"
    assert door.absolute("~other") == "/here/~other"
    assert door.absolute("sub/./x") == "/here/sub/x"
    assert door.absolute("/a//b/") == "/a/b"


def test_absolute_knows_the_drives_of_windows(tmp_path: Path) -> None:
    door = windows_machine(tmp_path)
    assert door.absolute("~\\src") == door.absolute("~/src") == "C:\\Users\\Ada Lovelace\\src"
    assert door.absolute("sub/./x") == "C:\\here\\sub\\x"
    assert door.absolute("\\top") == "C:\\top"
    assert door.absolute("D:/a//b\\") == "D:\\a\\b"
    assert door.absolute("\\\\server\\share\\x\\..\\y") == "\\\\server\\share\\y"


def test_inside_is_recognised_by_complete_names(tmp_path: Path) -> None:
    linux, windows = machine(tmp_path), windows_machine(tmp_path)
    assert linux.inside("/a/b", "/a")
    assert linux.inside("/a", "/")
    assert not linux.inside("/ab", "/a")
    assert windows.inside("c:\\A\\b", "C:\\a")
    assert windows.inside("C:\\a", "C:\\")
    assert not windows.inside("C:\\ab", "C:\\a")


@needs_posix_paths
def test_a_removed_current_folder_is_no_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert Probe(environ={}).absolute("x") == "x"


def test_the_real_machine_names_things_as_python_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    door = Probe(environ=os.environ)
    assert door.windows == (sys.platform == "win32")
    assert door.absolute("sub/./x") == str(tmp_path / "sub" / "x")
    assert door.realpath(str(tmp_path)) == os.path.realpath(tmp_path)
    assert not door.realpath(str(tmp_path)).startswith("\\\\?\\")
    write(tmp_path, {"/a/b.txt": "x"})
    assert door.read(door.join(str(tmp_path), "a/b.txt")) == "x"
    assert door.is_program(sys.executable)


def test_the_real_cache_is_called_after_us() -> None:
    folder = Path(Probe(environ={}).cache_folder())
    assert folder.is_absolute()
    assert "torchbuild-tasks" in folder.parts
