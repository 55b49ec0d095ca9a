"""Loading an env file with cmd.exe: what comes back, what stays out, and what a broken file says."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from torchbuild_tasks.errors import EnvFileError
from torchbuild_tasks.system import shell as module
from torchbuild_tasks.system import shell_cmd
from torchbuild_tasks.system.shell import activate

ASCII = "".join(map(chr, range(32, 127)))


def env_file(folder: Path, *lines: str) -> Path:
    path = folder / "env_set.bat"
    path.write_bytes("\r\n".join(("@echo off", *lines, "")).encode())
    return path


# ---------------------------------------------------------------- what needs no cmd.exe


def test_our_own_variables_and_those_of_cmd_are_left_out() -> None:
    after = {"A": "1", "TORCHBUILD__FILE": "x", "TORCHBUILD__PYTHON": "y", "PROMPT": "$P$G"}
    assert shell_cmd.without_traces(after, {}) == {"A": "1"}
    assert shell_cmd.without_traces(after, {"PROMPT": ">"}) == {"A": "1", "PROMPT": "$P$G"}


def test_a_name_keeps_the_case_that_it_had() -> None:
    after = {"path": "new", "VCToolsInstallDir": "x"}
    assert shell_cmd.without_traces(after, {"PATH": "old"}) == {"PATH": "new", "VCToolsInstallDir": "x"}


def test_words_are_utf_8_or_what_consoles_have() -> None:
    assert shell_cmd.text("f\u00fcr".encode()) == "f\u00fcr"
    assert "\ufffd" not in shell_cmd.text(b"f\x81r")


def test_nothing_in_the_command_line_depends_on_the_file() -> None:
    """So no character of its path can mean anything; and python's code has none that could."""
    assert shell_cmd._LINE.count("%TORCHBUILD__FILE%") == 1
    assert not set('"%!^&|<>') & set(shell_cmd._DUMP)


# ---------------------------------------------------------------- with it

needs_cmd = pytest.mark.skipif(sys.platform != "win32", reason="needs cmd.exe")
integration = pytest.mark.integration


@needs_cmd
@integration
def test_what_the_file_does_is_what_comes_back(tmp_path: Path) -> None:
    path = env_file(tmp_path, "set NEW=a b", "set PATH=C:\\opt;%PATH%", "set GONE=", "set Mixed_Case=1")
    after = activate(path, environ={**os.environ, "GONE": "1"})
    path_value = "C:\\opt;" + os.environ["PATH"]
    assert after == {**os.environ, "NEW": "a b", "PATH": path_value, "Mixed_Case": "1"}


@needs_cmd
@integration
def test_an_empty_file_changes_nothing(tmp_path: Path) -> None:
    before = {**os.environ, "ASCII": ASCII, "EMPTY": "", "TEXT": "caf\u00e9 \U0001f525", "LINES": "a\r\n\tb"}
    assert activate(env_file(tmp_path), environ=before) == before


@needs_cmd
@integration
def test_values_with_every_awkward_character_come_back(tmp_path: Path) -> None:
    """As a careful writer has them: % doubled, everything between quotes."""
    before = dict(os.environ)
    lines = [f'set "X{number}=a{sign * (1 + (sign == "%"))}b"' for number, sign in enumerate(ASCII)]
    expected = {f"X{number}": f"a{sign}b" for number, sign in enumerate(ASCII)}
    assert activate(env_file(tmp_path, *lines), environ=before) == {**before, **expected}


@needs_cmd
@integration
def test_what_the_file_prints_is_not_taken_for_the_environment(tmp_path: Path) -> None:
    """vcvarsall.bat has a banner."""
    path = env_file(tmp_path, "echo ** banner **", "set", "set X=1", "echo done 1>&2")
    assert activate(path, environ=os.environ) == {**os.environ, "X": "1"}


@needs_cmd
@integration
def test_a_file_that_leaves_the_folder_and_its_own_block(tmp_path: Path) -> None:
    path = env_file(tmp_path, "cd /d C:\\", "set X=1", "setlocal", "set Y=1")
    after = activate(path, environ=os.environ)
    assert after == {**os.environ, "X": "1"}
    assert Path.cwd() != Path("C:\\")


@needs_cmd
@integration
def test_exclamation_marks_mean_nothing(tmp_path: Path) -> None:
    path = env_file(tmp_path, 'set "X=a!PATH!b"')
    assert activate(path, environ=os.environ)["X"] == "a!PATH!b"


@needs_cmd
@integration
def test_no_code_page_makes_a_difference(tmp_path: Path) -> None:
    before = {**os.environ, "TEXT": "\u00e9\u4e2d"}
    for page in ("437", "65001"):
        path = env_file(tmp_path, f"chcp {page} >nul 2>&1", "set X=%TEXT%", "ver >nul")
        assert activate(path, environ=before)["X"] == "\u00e9\u4e2d"


@needs_cmd
@integration
def test_variables_that_change_python_do_not_change_the_dump(tmp_path: Path) -> None:
    lines = [f"set {name}=nothing" for name in ("PYTHONHOME", "PYTHONPATH", "PYTHONIOENCODING", "PYTHONUTF8")]
    after = activate(env_file(tmp_path, *lines, "set PATH="), environ=os.environ)
    assert after["PYTHONHOME"] == "nothing"
    assert not after.get("PATH")


@needs_cmd
@integration
@pytest.mark.parametrize(
    "name", ["a b (x86)", "a&b", "a^b", "100%", "%PATH%", "a!b!", "a;b,c=d", "it's `", "@a", "\u00e9\u4e2d"]
)
def test_every_path_is_found_relative_to_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    folder = tmp_path / name
    folder.mkdir()
    env_file(folder, "set X=1")
    monkeypatch.chdir(folder)
    assert activate(Path("env_set.bat"), environ=os.environ) == {**os.environ, "X": "1"}


@needs_cmd
@integration
@pytest.mark.parametrize(
    ("lines", "status", "said"),
    [
        (["echo broken 1>&2", "exit /b 7"], "7", "broken"),
        (["echo to stdout", "exit 9"], "9", "to stdout"),
        (["cmd /c exit 3"], "3", ""),
        (["cmd /c exit -5"], "4294967291", ""),
        (["nosuchcommand_"], "[1-9]", "nosuchcommand_"),
        (None, "[1-9]", "env_set.bat"),
    ],
)
def test_a_file_that_fails_is_an_error_with_its_words(
    tmp_path: Path, lines: list[str] | None, status: str, said: str
) -> None:
    path = tmp_path / "env_set.bat" if lines is None else env_file(tmp_path, *lines)
    with pytest.raises(EnvFileError, match=rf"env_set\.bat did not load .*exit status {status}") as caught:
        activate(path, environ=os.environ)
    assert said in "\n".join(caught.value.looked)
    assert f'call "{path}"' in caught.value.next_step


@needs_cmd
@integration
def test_a_file_that_ends_the_shell_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(EnvFileError, match="before its environment could be read"):
        activate(env_file(tmp_path, "set X=1", "exit 0"), environ=os.environ)


@needs_cmd
@integration
def test_a_file_that_waits_is_ended_with_all_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_SECONDS", 2)
    waits = "import pathlib, time; time.sleep(6); pathlib.Path('late').touch()"
    path = env_file(tmp_path, f'cd /d "{tmp_path}"', f'"{sys.executable}" -c "{waits}"')
    begin = time.monotonic()
    with pytest.raises(EnvFileError, match="within 2 seconds"):
        activate(path, environ=os.environ)
    assert time.monotonic() - begin < 20
    time.sleep(max(0, 7 - (time.monotonic() - begin)))
    assert not (tmp_path / "late").exists()


def test_the_command_to_type_keeps_a_path_that_call_would_change() -> None:
    for folder, typed in (
        ("C:/my pt", 'call "{}"'),
        ("C:/100%", 'cd /d "{}" && call env_set.bat'),
        ("C:/a^b", 'cd /d "{}" && call env_set.bat'),
    ):
        path = Path(folder, "env_set.bat")
        assert shell_cmd.by_hand(path) == typed.format(path if typed.startswith("call") else path.parent)
