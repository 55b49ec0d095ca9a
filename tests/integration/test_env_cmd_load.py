"""Batch files that an env file loads, in cmd itself, and cmd's half of PowerShell's file.

A stand-in takes the place of Visual Studio's vcvarsall.bat.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

import pytest

from tests.support import cmd
from tests.support.capabilities import needs_cmd
from tests.support.cmd import CALL
from torchbuild_tasks.model import EnvOp

pytestmark = [pytest.mark.integration, needs_cmd]

# It does what Visual Studio's does: takes name=value as two arguments, prints a banner, and its
# errors, on stdout, changes the folder, puts its own in front of the lists, and fails with 1.
STAND_IN: Final = r"""@echo off
>>"%~dp0runs.txt" echo %*
set "STAND_IN_ARCH="
set "STAND_IN_TOOLS=14.44"
:next
if "%1"=="" goto known
if /i "%1"=="x64" goto arch
if /i "%1"=="-vcvars_ver" goto tools
echo [ERROR:%~nx0] Invalid argument found : %1
exit /b 1
:arch
set "STAND_IN_ARCH=x64"
shift
goto next
:tools
set "STAND_IN_TOOLS=%2"
shift
shift
goto next
:known
cd /d "%~dp0"
echo **********************************************************************
echo ** Visual Studio 2022 Developer Command Prompt v17.14.7
echo **********************************************************************
if "%STAND_IN_TOOLS%"=="14.44" goto found
if "%STAND_IN_TOOLS%"=="14.38" goto found
echo [ERROR:%~nx0] Toolset directory for version '%STAND_IN_TOOLS%' was not found.
exit /b 1
:found
set "VSCMD_VER=17.14.7"
set "VSCMD_ARG_TGT_ARCH=%STAND_IN_ARCH%"
set "VCToolsVersion=%STAND_IN_TOOLS%.33130"
set "PATH=C:\VC\%STAND_IN_TOOLS%\bin;%PATH%"
set "INCLUDE=C:\VC\%STAND_IN_TOOLS%\include;%INCLUDE%"
set "LIB=C:\VC\%STAND_IN_TOOLS%\lib;%LIB%"
set "LIBPATH=C:\VC\%STAND_IN_TOOLS%\lib;%LIBPATH%"
set "STAND_IN_ARCH="
set "STAND_IN_TOOLS="
exit /b 0
"""
ODD_FOLDER: Final = "Program Files (x86) & co ^ it's ! so, = ; [1]"


def stand_in(folder: Path, text: str = STAND_IN) -> Path:
    folder.mkdir(parents=True)
    path = folder / "vcvarsall.bat"
    path.write_bytes(text.replace("\n", "\r\n").encode())
    return path


def load(path: Path, *arguments: str) -> EnvOp:
    return EnvOp(op="load", name="TORCHBUILD_VCVARS", value=str(path), arguments=arguments)


def runs(vcvars: Path) -> list[str]:
    """With which arguments the stand-in was run, each time."""
    lines = (vcvars.parent / "runs.txt").read_text("utf-8").splitlines()
    return [line.strip() for line in lines]


def test_what_a_batch_file_sets_is_kept_and_comes_last(tmp_path: Path) -> None:
    vcvars = stand_in(tmp_path / ODD_FOLDER / "VC")
    ops = [
        EnvOp(op="prepend", name="PATH", value=r"C:\py"),
        EnvOp(op="prepend", name="LIB", value=r"C:\mkl\lib"),
        load(vcvars, "x64", "-vcvars_ver=14.38"),
    ]
    cmd.write(tmp_path, ops)
    done = cmd.after(tmp_path)
    assert done.environ["PATH"].startswith(r"C:\VC\14.38\bin;C:\py;")
    assert done.environ["LIB"] == r"C:\VC\14.38\lib;C:\mkl\lib" + (
        ";" + os.environ["LIB"] if "LIB" in os.environ else ""
    )
    kept = ("VSCMD_VER", "VSCMD_ARG_TGT_ARCH", "VCTOOLSVERSION", "TORCHBUILD_VCVARS")
    assert [done.environ[name] for name in kept] == [
        "17.14.7",
        "x64",
        "14.38.33130",
        f"{vcvars} x64 -vcvars_ver=14.38",
    ]
    assert Path(done.folder) == tmp_path
    assert done.out == ""
    assert "Developer Command Prompt" in done.err
    assert cmd.helpers(done) == []


def test_loading_twice_runs_it_once_and_no_list_grows(tmp_path: Path) -> None:
    vcvars = stand_in(tmp_path / ODD_FOLDER)
    lists = ("PATH", "INCLUDE", "LIB", "LIBPATH")
    ops = [EnvOp(op="prepend", name=name, value=r"C:\ours") for name in lists]
    cmd.write(tmp_path, [*ops, EnvOp(op="set", name="X", value="1"), load(vcvars, "x64")])
    once, twice, thrice = (cmd.after(tmp_path, times=times).environ for times in (1, 2, 3))
    assert runs(vcvars) == ["x64"] * 3  # once in each shell
    for name in lists:
        assert sorted(once[name].split(";")) == sorted(twice[name].split(";"))
    assert {n: v for n, v in once.items() if n not in lists} == {
        n: v for n, v in twice.items() if n not in lists
    }
    assert twice == thrice


def test_other_arguments_run_it_again(tmp_path: Path) -> None:
    vcvars = stand_in(tmp_path / "vs")
    (tmp_path / "first").mkdir()
    cmd.write(tmp_path / "first", [load(vcvars, "x64")])
    cmd.write(tmp_path, [load(vcvars, "x64", "-vcvars_ver=14.38")])
    done = cmd.after(tmp_path, r'call "%~dp0first\env_set.bat"')
    assert runs(vcvars) == ["x64", "x64 -vcvars_ver=14.38"]
    assert done.environ["VCTOOLSVERSION"] == "14.38.33130"


@pytest.mark.parametrize("gone", ["VSCMD_VER", "VCToolsVersion", "TORCHBUILD_VCVARS"])
def test_a_shell_that_inherited_only_a_part_runs_it(tmp_path: Path, gone: str) -> None:
    vcvars = stand_in(tmp_path / "vs")
    cmd.write(tmp_path, [load(vcvars, "x64")])
    done = cmd.after(tmp_path, CALL, f'set "{gone}="')
    assert runs(vcvars) == ["x64", "x64"]
    assert done.environ["VSCMD_VER"] == "17.14.7"


def test_a_marker_with_quotes_starts_nothing(tmp_path: Path) -> None:
    vcvars = stand_in(tmp_path / "vs")
    cmd.write(tmp_path, [load(vcvars, "x64")])
    odd = {"TORCHBUILD_VCVARS": 'x"=="x" exit 9 & rem "', "VSCMD_VER": "1", "VCTOOLSVERSION": '"'}
    assert cmd.after(tmp_path, environ=odd).environ["TORCHBUILD_VCVARS"] == f"{vcvars} x64"


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        ("-vcvars_ver=14.99", "Toolset directory for version '14.99' was not found"),
        ("x99", "Invalid argument"),
    ],
)
def test_its_failure_ends_the_file_with_its_words(tmp_path: Path, argument: str, words: str) -> None:
    vcvars = stand_in(tmp_path / ODD_FOLDER)
    cmd.write(tmp_path, [load(vcvars, "x64", argument)])
    before = {"TORCHBUILD_VCVARS": "another"}
    done = cmd.run(tmp_path, 'call "%~dp0env_set.bat"', 'set "RC=%ERRORLEVEL%"', environ=before)
    assert (done.environ["RC"], done.out, Path(done.folder)) == ("1", "", tmp_path)
    assert words in done.err
    assert f'env_set.bat: "{vcvars}" failed with exit code 1' in done.err
    assert not [name for name in done.environ if name.startswith("TORCHBUILD_")]


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("@exit /b 7\n", "7", "failed with exit code 7"),
        ("@cmd /d /c exit 5\n", "5", "failed with exit code 5"),
        ("@exit /b 0\n", "1", "has set no VCToolsVersion"),
        ("@set VCToolsVersion=1\n", "0", ""),
    ],
)
@pytest.mark.parametrize("folder", ["vs", "100% %PATH% %%n %1"])
def test_its_exit_code_is_the_files(tmp_path: Path, folder: str, text: str, code: str, words: str) -> None:
    cmd.write(tmp_path, [load(stand_in(tmp_path / folder, text), "x64")])
    lines = ("cmd /d /c exit 3", 'call "%~dp0env_set.bat"', 'set "RC=%ERRORLEVEL%"')
    done = cmd.run(tmp_path, *lines, environ={"VCToolsVersion": None})
    assert done.environ["RC"] == code
    assert words in done.err
    assert bool(done.err) == bool(words)


def test_a_batch_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    cmd.write(tmp_path, [load(tmp_path / "none" / "vcvarsall.bat")])
    done = cmd.run(tmp_path, CALL)
    assert done.rc != 0
    assert r'none\vcvarsall.bat" failed with exit code' in done.err


def test_a_batch_file_in_a_folder_that_is_not_ascii(tmp_path: Path) -> None:
    if not cmd.reads_utf8(tmp_path):
        pytest.skip("no cmd that reads UTF-8 here")
    try:
        vcvars = stand_in(tmp_path / "Bücher 世界")
    except OSError:
        pytest.skip("no file names beyond ASCII here")
    cmd.write(tmp_path, [load(vcvars, "x64")])
    done = cmd.after(tmp_path, times=2)
    assert done.environ["VSCMD_VER"] == "17.14.7"
    assert runs(vcvars) == ["x64"]


# ---------------------------------------------------------------- what PowerShell asks of cmd


@pytest.mark.parametrize("argument", ["-vcvars_ver=14.38", "-vcvars_ver=14.99"])
def test_the_command_in_powershells_file(tmp_path: Path, argument: str) -> None:
    """cmd's half of it, handed on as PowerShell does: one argument in quotes."""
    vcvars, listed = stand_in(tmp_path / "Files (x86) & co's !"), tmp_path / "a list (x86) & co"
    listed.write_bytes(b"")
    path = cmd.write(tmp_path, [load(vcvars, "x64", argument)], shell="ps1")  # noqa: S604 - no process
    (command,) = re.findall(r"/c '(.*)'\r\n", path.read_bytes().decode("utf-8-sig"))
    words = "Grüße, 世界 \U0001f525"
    quoted = {"TORCHBUILD__FILE": f'"{vcvars}"', "TORCHBUILD__LIST": f'"{listed}"', "WORDS": words}
    done = cmd.start(command, tmp_path, quoted)
    assert done.stdout == b""
    if argument == "-vcvars_ver=14.99":
        assert (done.returncode, listed.read_bytes()) == (1, b"")
        return
    lines = listed.read_bytes().decode("utf-16-le").splitlines()
    assert {"VSCMD_VER=17.14.7", "VCToolsVersion=14.38.33130", f"WORDS={words}"} <= set(lines)
