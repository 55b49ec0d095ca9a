"""PowerShell's lines, as text: there is no PowerShell here to run them."""

from __future__ import annotations

import re

from torchbuild_tasks.model import EnvOp
from torchbuild_tasks.plan import env_lines

LOAD = EnvOp(
    op="load",
    name="TORCHBUILD_VCVARS",
    value=r"C:\Bob's (x86) & co\vcvarsall.bat",
    arguments=("x64", "-vcvars_ver=14.38"),
)


def text(op: EnvOp) -> str:
    return "\n".join(env_lines.ps1_lines(op))


def test_the_batch_file_comes_quoted_in_a_variable() -> None:
    assert "$env:TORCHBUILD__FILE = '\"C:\\Bob''s (x86) & co\\vcvarsall.bat\"'" in text(LOAD)


def test_the_command_holds_no_quotes() -> None:
    """PowerShell 5.1, 7.2 and 7.3 hand quotes on in three ways; without any all do the same."""
    (command,) = re.findall(r"/c '(.*)'\n", text(LOAD))
    assert command.startswith("call %TORCHBUILD__FILE% x64 -vcvars_ver=14.38 1>&2 && ")
    assert not set("\"'") & set(command)
    assert " " in command  # so that PowerShell puts quotes around it


def test_it_is_loaded_once_and_remembered_when_it_went_well() -> None:
    lines = list(env_lines.ps1_lines(LOAD))
    wanted = r"'C:\Bob''s (x86) & co\vcvarsall.bat x64 -vcvars_ver=14.38'"
    assert f"$env:TORCHBUILD_VCVARS -ceq {wanted})" in lines[0]
    assert "VSCMD_VER" in lines[0]
    assert "VCToolsVersion" in lines[0]
    stops = [at for at, line in enumerate(lines) if "throw" in line]
    assert lines.index(f"        $env:TORCHBUILD_VCVARS = {wanted}") > max(stops)


def test_braces_and_parentheses_are_closed() -> None:
    """Not a parser: strings are taken out, then what is opened must be closed in order."""
    bare = re.sub(r"'(?:[^']|'')*'|\"(?:[^\"`]|`.)*\"", "", re.sub(r"(?m)^\s*#.*$", "", text(LOAD)))
    open_ones: list[str] = []
    for sign in re.sub(r"[^(){}\[\]]", "", bare):
        if sign in "({[":
            open_ones.append(sign)
        else:
            assert open_ones.pop() + sign in ("()", "{}", "[]")
    assert open_ones == []
    assert bare.count("try {") == bare.count("finally {") == 1


def test_a_path_that_looks_like_a_template_stays() -> None:
    op = EnvOp(op="load", name="X", value="C:\\@{name}\\v.bat")
    assert "'\"C:\\@{name}\\v.bat\"'" in text(op)
