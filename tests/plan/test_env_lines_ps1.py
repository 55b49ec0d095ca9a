"""PowerShell's lines, as text and by its grammar: tests/integration/test_env_ps1.py runs them where it is."""

from __future__ import annotations

import re

from hypothesis import assume, given
from hypothesis import strategies as st

from tests.support.powershell import strings
from torchbuild_tasks.model import EnvOp
from torchbuild_tasks.plan import env_lines
from torchbuild_tasks.plan.env_files import refusal

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


def test_the_command_that_loads_is_powershell() -> None:
    assert strings(text(LOAD))  # or it raises


@given(st.lists(st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1), min_size=1, max_size=6))
def test_powershell_reads_every_value_as_it_is(values: list[str]) -> None:
    sets = [EnvOp(op="set", name=f"N{number}", value=value) for number, value in enumerate(values)]
    assert strings("\n".join(map(text, sets))) == values


@given(st.text(st.sampled_from("a'\r\n\t\x01\x1b\x7f$`{}@("), min_size=1))
def test_control_characters_stand_outside_of_the_quotes(value: str) -> None:
    op = EnvOp(op="set", name="X", value=value)
    assume(not refusal("ps1", op))
    assert "".join(strings(text(op))) == "".join(sign for sign in value if sign.isprintable())


def test_a_path_that_looks_like_a_template_stays() -> None:
    op = EnvOp(op="load", name="X", value="C:\\@{name}\\v.bat")
    assert "'\"C:\\@{name}\\v.bat\"'" in text(op)
