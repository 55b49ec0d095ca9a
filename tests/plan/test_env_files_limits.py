"""Values that a shell's env file carries or refuses, with the messages."""

from __future__ import annotations

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.for_each import each_case
from torchbuild_tasks.model import EnvOp
from torchbuild_tasks.plan.env_files import LINUX_BYTES, WINDOWS_CHARACTERS, refusal, repeat_refusal
from torchbuild_tasks.plan.env_lines import LINE_BYTES

SHELLS = ("sh", "bat", "ps1", "fish")
ORDINARY = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=60)
VCVARS = r"C:\Program Files (x86)\Microsoft Visual Studio\2022\BuildTools\VC\Auxiliary\Build\vcvarsall.bat"


def set_op(value: str, name: str = "NAME") -> EnvOp:
    return EnvOp(op="set", name=name, value=value)


def prepend_op(value: str, name: str = "PATH") -> EnvOp:
    return EnvOp(op="prepend", name=name, value=value)


def load_op(value: str = VCVARS, *arguments: str) -> EnvOp:
    return EnvOp(op="load", name="TORCHBUILD_VCVARS", value=value, arguments=arguments)


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("op", ["set", "prepend", "unset"])
@pytest.mark.parametrize("name", ["", "1X", "A-B", "A B", "A=B", "A\n", "É", "X;touch y", "A%B"])
def test_no_shell_takes_a_name_that_is_none(
    shell: str, op: Literal["set", "prepend", "unset"], name: str
) -> None:
    assert refusal(shell, EnvOp(op=op, name=name, value="v"))


@each_case(
    ("shell", "name"),
    [
        ("sh", "PWD"),
        ("sh", "UID"),
        ("sh", "OPTIND"),
        ("sh", "torchbuild__new"),
        ("fish", "status"),
        ("fish", "version"),
        ("bat", "ErrorLevel"),
        ("bat", "cd"),
        ("bat", "TORCHBUILD__REST"),
    ],
)
def test_a_name_that_the_shell_keeps_is_refused(shell: str, name: str) -> None:
    assert refusal(shell, set_op("v", name))


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("value", ["a\0b", "\ud800", "caf\udce9"])
def test_what_no_environment_holds_is_refused_everywhere(shell: str, value: str) -> None:
    assert refusal(shell, set_op(value))
    assert refusal(shell, prepend_op(value))


@pytest.mark.parametrize("shell", SHELLS)
def test_unset_looks_at_the_name_only(shell: str) -> None:
    assert refusal(shell, EnvOp(op="unset", name="NAME", value="\0")) is None


@pytest.mark.parametrize("shell", ["sh", "fish"])
def test_linux_limit_counts_bytes_with_the_name_and_the_nul(shell: str) -> None:
    fits = "é" * ((LINUX_BYTES - len("NAME=\0")) // 2)
    assert refusal(shell, set_op(fits)) is None
    reason = refusal(shell, set_op(fits + "é"))
    assert reason
    assert "131,072" in reason


def test_windows_limit_counts_utf16() -> None:
    fits = "\U0001f600" * ((WINDOWS_CHARACTERS - len("NAME=\0")) // 2)
    assert refusal("ps1", set_op(fits)) is None
    assert refusal("ps1", set_op(fits + "\U0001f600"))


def test_cmd_limit_counts_the_line_as_written() -> None:
    room = LINE_BYTES - len('set "NAME="')
    assert refusal("bat", set_op("x" * room)) is None
    assert refusal("bat", set_op("x" * (room + 1)))
    assert refusal("bat", set_op("%" * (room // 2))) is None
    assert refusal("bat", set_op("%" * (room // 2 + 1)))


@pytest.mark.parametrize(
    ("shell", "word"), [("bat", "unset"), ("ps1", "unset"), ("sh", None), ("fish", None)]
)
def test_empty_is_not_unset(shell: str, word: str | None) -> None:
    reason = refusal(shell, set_op(""))
    assert reason is None if word is None else word in (reason or "")


@pytest.mark.parametrize("value", ["a\nb", "a\rb", "\x1a", "\x1b[0m", "\x7f"])
def test_cmd_refuses_control_characters(value: str) -> None:
    assert "control character" in (refusal("bat", set_op(value)) or "")
    assert refusal("bat", set_op("a\tb")) is None


@pytest.mark.parametrize(
    ("value", "carried"),
    [
        ("/?", True),
        ("a ^ b", True),
        ('"a&b"', True),
        ('a" /? "b', False),
        ('a"^"b', False),
    ],
)
def test_cmd_refuses_what_it_answers_outside_of_quotes(value: str, carried: bool) -> None:
    assert (refusal("bat", set_op(value)) is None) is carried


@pytest.mark.parametrize("value", ["C:\\a!b", "C:\\a=b", "C:\\a^b", 'C:\\"x"', "C:\\a;b", ""])
def test_cmd_refuses_an_entry_that_it_cannot_look_for(value: str) -> None:
    assert refusal("bat", prepend_op(value))


@pytest.mark.parametrize("value", ["C:\\Program Files (x86)\\a&b", "C:\\100%\\x", "C:\\Jürgen"])
def test_cmd_takes_ordinary_folders(value: str) -> None:
    assert refusal("bat", prepend_op(value)) is None
    assert refusal("ps1", prepend_op(value)) is None


@pytest.mark.parametrize("shell", ["sh", "fish"])
def test_an_entry_holds_neither_nothing_nor_the_separator(shell: str) -> None:
    assert "current folder" in (refusal(shell, prepend_op("")) or "")
    assert "separates" in (refusal(shell, prepend_op("/a:/b")) or "")
    assert refusal(shell, prepend_op("/opt/a b;c")) is None


@pytest.mark.parametrize("value", ["", ":", "/a:", "/a::/b"])
def test_fish_refuses_empty_entries_in_the_lists_that_it_rewrites(value: str) -> None:
    assert "'.'" in (refusal("fish", set_op(value, "PATH")) or "")
    assert refusal("fish", set_op(value, "CMAKE_PREFIX_PATH")) is None
    assert refusal("sh", set_op(value, "PATH")) is None


@given(value=ORDINARY)
def test_ordinary_values_are_never_refused(value: str) -> None:
    for shell in ("sh", "fish"):
        assert refusal(shell, set_op(value)) is None
        assert refusal(shell, set_op(value, "CMAKE_PREFIX_PATH")) is None
    if value:
        assert refusal("ps1", set_op(value)) is None
        if '"' not in value:
            assert refusal("bat", set_op(value)) is None


# ---------------------------------------------------------------- batch files to load


def test_sh_and_fish_cannot_load_a_batch_file() -> None:
    for shell in ("sh", "fish"):
        assert "only cmd and PowerShell" in (refusal(shell, load_op()) or "")


@pytest.mark.parametrize("shell", ["bat", "ps1"])
def test_windows_shells_load_vcvarsall(shell: str) -> None:
    assert refusal(shell, load_op()) is None
    assert refusal(shell, load_op(VCVARS, "x64", "10.0.22621.0", "-vcvars_ver=14.38")) is None
    assert refusal(shell, load_op(r"\\server\share\a & b!\Jürgen's (x86)\vcvarsall.bat", "x64")) is None


@pytest.mark.parametrize("shell", ["bat", "ps1"])
@pytest.mark.parametrize(
    "path", ["", "vcvarsall.bat", r"..\vcvarsall.bat", "/opt/vcvarsall.bat", 'C:\\a"b\\x.bat', "C:\\a\nb.bat"]
)
def test_a_batch_file_has_a_full_path_that_windows_can_have(shell: str, path: str) -> None:
    assert "full Windows path" in (refusal(shell, load_op(path)) or "")


@pytest.mark.parametrize("shell", ["bat", "ps1"])
@pytest.mark.parametrize("argument", ["", "a b", "a&b", "%PATH%", '"x"', "^", "/?", "x;y", "x,y", "x\ny"])
def test_an_argument_that_cmd_might_change_is_refused(shell: str, argument: str) -> None:
    assert repr(argument) in (refusal(shell, load_op(VCVARS, "x64", argument)) or "")


@pytest.mark.parametrize("sign", ["%", "^"])
def test_what_call_reads_twice_is_refused_on_a_command_line_only(sign: str) -> None:
    op = load_op(f"C:\\a{sign}b\\vcvarsall.bat")
    assert refusal("bat", op) is None
    assert sign in (refusal("ps1", op) or "")


@pytest.mark.parametrize("shell", ["bat", "ps1"])
def test_a_call_that_fills_the_line_is_refused(shell: str) -> None:
    assert refusal(shell, load_op("C:\\" + "x" * 3_900)) is None
    assert "8,191" in (refusal(shell, load_op("C:\\" + "x" * 4_100)) or "")
    assert "8,191" in (refusal(shell, load_op(VCVARS, *["x" * 100] * 50)) or "")


@pytest.mark.parametrize("name", ["PATH", "Path", "INCLUDE", "lib", "LIBPATH", "EXTERNAL_INCLUDE"])
def test_a_list_that_the_compiler_extends_is_only_prepended_to(name: str) -> None:
    for op in (set_op("x", name), EnvOp(op="unset", name=name)):
        assert "take that away" in (repeat_refusal(op, (op, load_op())) or "")
        assert repeat_refusal(op, (op,)) is None
    assert repeat_refusal(prepend_op("C:\\x", name), (prepend_op("C:\\x", name), load_op())) is None
    assert repeat_refusal(set_op("x", "CMAKE_PREFIX_PATH"), (load_op(),)) is None
