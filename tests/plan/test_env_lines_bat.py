"""cmd's lines, as text; tests/integration/test_env_cmd.py runs them."""

from __future__ import annotations

import pytest

from torchbuild_tasks.model import EnvOp
from torchbuild_tasks.plan import env_lines

PATHS = r"C:\Program Files (x86)\100% & ^ a!b\vcvarsall.bat"
LOAD = EnvOp(op="load", name="TORCHBUILD_VCVARS", value=PATHS, arguments=("x64", "-vcvars_ver=14.38"))
PREPEND = EnvOp(op="prepend", name="PATH", value=r"C:\Program Files (x86)\py")
SET = EnvOp(op="set", name="X", value="é")


def position(lines: list[str], part: str) -> int:
    """The one line that holds this."""
    (at,) = [at for at, line in enumerate(lines) if part in line]
    return at


def test_what_is_remembered_is_the_file_with_its_arguments() -> None:
    assert env_lines.call_text(LOAD) == PATHS + " x64 -vcvars_ver=14.38"
    assert env_lines.call_text(EnvOp(op="load", name="X", value="C:\\v.bat")) == "C:\\v.bat"


def test_the_call_stands_between_pushd_and_popd_and_says_nothing_on_stdout() -> None:
    lines = list(env_lines.bat_lines(LOAD))
    call = position(lines, "call ")
    assert lines[call].endswith('call "%%TORCHBUILD__FILE%%" x64 -vcvars_ver=14.38 1>&2')
    assert position(lines, "pushd") < call < position(lines, "%ERRORLEVEL%") < position(lines, "popd")


def test_a_loaded_file_is_remembered_only_after_it_went_well() -> None:
    lines = list(env_lines.bat_lines(LOAD))
    remembered = position(lines, 'set "TORCHBUILD_VCVARS=%TORCHBUILD__CALL%"')
    assert position(lines, 'set "TORCHBUILD_VCVARS="') < position(lines, "call ")
    stops = [at for at, line in enumerate(lines) if "exit /b" in line]
    assert len(stops) == 2
    assert max(stops) < remembered


def test_the_paths_of_a_call_never_stand_bare() -> None:
    """Outside of quotes its parentheses would end a block, and its & begin a command."""
    for line in env_lines.bat_lines(LOAD):
        for sign in ("(x86)", "%TORCHBUILD__FILE%"):
            before = line.partition(sign)[0]
            assert sign not in line or before.count('"') % 2 == 1, line


def test_labels_are_not_used() -> None:
    for op in (LOAD, PREPEND, SET):
        assert not [line for line in env_lines.bat_lines(op) if line.startswith(":") or "goto" in line]


@pytest.mark.parametrize("op", [LOAD, PREPEND, SET, EnvOp(op="unset", name="X")])
def test_no_line_is_longer_than_calculated(op: EnvOp) -> None:
    assert (
        max(len(line.encode()) for line in env_lines.bat_lines(op)) <= env_lines.line_bytes(op)
        or op.op == "unset"
    )


def test_there_is_room_for_a_list() -> None:
    assert 7_900 < env_lines.list_room(PREPEND) < env_lines.LINE_BYTES


def test_the_code_page_changes_only_for_values_that_need_it() -> None:
    assert (env_lines.begin((LOAD, PREPEND)), env_lines.end((LOAD, PREPEND))) == ((), ())
    begin, end = list(env_lines.begin((LOAD, SET))), list(env_lines.end((LOAD, SET)))
    assert position(begin, "chcp.com 65001") < position(begin, "exit /b 1")
    assert end[1] in (line.strip() for line in begin)


def test_every_way_out_puts_the_code_page_back() -> None:
    for op in (LOAD, PREPEND):
        lines = [line.strip() for line in env_lines.bat_lines(op)]
        ends = [at for at, line in enumerate(lines) if line.startswith("exit /b")]
        assert ends
        for at in ends:
            block = lines[max(i for i in range(at) if lines[i].endswith("(")) : at]
            assert [line for line in block if "chcp.com %TORCHBUILD__PAGE%" in line]
