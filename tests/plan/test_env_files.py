"""The text of the env files: golden for all shells, and rules that apply to each."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from torchbuild_tasks.catalog.templates import load_templates
from torchbuild_tasks.errors import EnvFileError
from torchbuild_tasks.model import EnvOp
from torchbuild_tasks.options import SHELLS
from torchbuild_tasks.plan.env_files import encode, file_name, refusals, render

GOLDEN = Path(__file__).parent / "golden"
# Every kind of operation, and values that every shell carries with some effort.
OPS = (
    EnvOp(op="unset", name="USE_NIGHTLY", because="with it the build is refused (2.14)"),
    EnvOp(op="prepend", name="PATH", value="/opt/py 3.12 (x86)/bin", because="the Python that gets torch"),
    EnvOp(op="prepend", name="CMAKE_PREFIX_PATH", value="/opt/it's 100% ours", because="helper magma"),
    EnvOp(op="set", name="CXX", value="/usr/bin/g++", because="GCC 12.2 is the newest that CUDA 12.4 takes"),
    EnvOp(op="set", name="CXXFLAGS", value='-O2 -DNAME="a b & c" -DCOST=$5!', because="--set"),
    EnvOp(op="set", name="GREETING", value="Grüße, 世界 \U0001f525 ‘quoted’", because="torchbuild.toml"),
    EnvOp(op="set", name="ODD", value="  ~ %PATH% `id` $(id) \\ ^ | < > * ? # ; -x\t", because="50% & /? ^"),
    EnvOp(op="set", name="MAX_JOBS", value="7", because="line one\nrm -rf /\r\nline\u2028three"),
    EnvOp(op="set", name="USE_CUDA", value="0"),
)
VCVARS = EnvOp(
    op="load",
    name="TORCHBUILD_VCVARS",
    value=r"C:\Program Files (x86)\Visual Studio\VC\Auxiliary\Build\vcvarsall.bat",
    because="the newest toolset that CUDA 12.1 takes",
    arguments=("x64", "-vcvars_ver=14.38"),
)
# The batch file last, in the shells that can run one.
GOLDEN_OPS = {shell: (*OPS, VCVARS) if shell in ("bat", "ps1") else OPS for shell in SHELLS}


def rendered(shell: str, *ops: EnvOp, template: str | None = None, checkout: str = "/src/pytorch") -> str:
    text = load_templates()[shell] if template is None else template
    return render(shell, text, ops, checkout=checkout, writer="torchbuild_tasks 0.1.0")


@pytest.mark.parametrize("shell", SHELLS)
def test_golden(shell: str) -> None:
    """TORCHBUILD_UPDATE_GOLDEN=1 writes the files again; read the difference before it is kept."""
    golden = GOLDEN / file_name(shell)
    data = encode(shell, rendered(shell, *GOLDEN_OPS[shell]))
    if os.environ.get("TORCHBUILD_UPDATE_GOLDEN") == "1":
        golden.write_bytes(data)
    assert data == golden.read_bytes()


@pytest.mark.parametrize("shell", SHELLS)
def test_the_head_says_who_wrote_it_for_what_and_how_to_change_it(shell: str) -> None:
    head = "\n".join(rendered(shell, *OPS).splitlines()[:9])
    for part in (
        "torchbuild_tasks 0.1.0",
        "/src/pytorch",
        "--set",
        "torchbuild.toml",
        "env_templates",
        "lost",
    ):
        assert part in head


def test_cmd_begins_with_echo_off() -> None:
    assert encode("bat", rendered("bat")).startswith(b"@echo off\r\n")


@pytest.mark.parametrize("shell", ["bat", "ps1"])
def test_windows_files_have_windows_line_ends(shell: str) -> None:
    data = encode(shell, rendered(shell, *OPS, VCVARS))
    assert data.count(b"\n") == data.count(b"\r\n") == data.count(b"\r") > 10


def test_powershell_gets_a_mark_and_the_others_do_not() -> None:
    starts = {shell: encode(shell, rendered(shell)).startswith(b"\xef\xbb\xbf") for shell in SHELLS}
    assert starts == {"sh": False, "bat": False, "ps1": True, "fish": False}


@pytest.mark.parametrize("shell", ["sh", "fish"])
def test_line_ends_inside_a_value_stay(shell: str) -> None:
    op = EnvOp(op="set", name="X", value="a\r\nb\rc\nd")
    assert b"a\r\nb\rc\nd" in encode(shell, rendered(shell, op))


def test_what_no_terminal_shows_is_a_blank_in_a_comment() -> None:
    op = EnvOp(op="set", name="X", value="1", because="one\ue000two\u0378three\u00a0four")
    assert "# X: one two three four" in rendered("sh", op)


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("text", ["x\ncalc", "x\r\ncalc", "x\x85calc", "x\u2028calc", "x\x0bcalc", "x\0calc"])
def test_neither_a_reason_nor_a_checkout_breaks_out_of_its_comment(shell: str, text: str) -> None:
    op = EnvOp(op="set", name="X", value="1", because=text)
    lines = rendered(shell, op, checkout=text).splitlines()
    assert [line.split()[0] for line in lines if "calc" in line] == ["rem" if shell == "bat" else "#"] * 2


@pytest.mark.parametrize("shell", SHELLS)
def test_a_reason_stands_above_its_line_in_readable_length(shell: str) -> None:
    lines = rendered(shell, EnvOp(op="set", name="X", value="1", because="because " * 5_000)).splitlines()
    at = next(i for i, line in enumerate(lines) if "because because" in line)
    assert len(lines[at]) < 500
    assert "X" in lines[at + 1]


def test_cmd_does_not_act_on_comments() -> None:
    op = EnvOp(op="set", name="X", value="1", because="%PATH% & %~z /? ^")
    assert "rem X: %%PATH%% & %%~z / ?\n" in rendered("bat", op)


@pytest.mark.parametrize("shell", SHELLS)
def test_a_fields_content_is_not_read_as_a_template(shell: str) -> None:
    op = EnvOp(op="set", name="X", value="@{writer} @{nothing} @@")
    assert "@{writer} @{nothing} @@" in rendered(shell, op)


def test_cmd_changes_the_code_page_only_for_values_that_need_it() -> None:
    plain = EnvOp(op="set", name="X", value="1", because="für Zähler")
    assert "chcp" not in rendered("bat", plain)
    text = rendered("bat", plain, EnvOp(op="set", name="Y", value="é"))
    assert text.index("chcp.com 65001") < text.index('set "X=1"') < text.index("Back to the code page")


def test_cmd_leaves_no_setlocal_open() -> None:
    lines = rendered("bat", *OPS).splitlines()
    assert lines.count("setlocal EnableDelayedExpansion") == 2
    assert sum("do endlocal &" in line for line in lines) == 2


@pytest.mark.parametrize("shell", SHELLS)
def test_a_refused_operation_is_a_finding_and_never_a_line(shell: str) -> None:
    bad = EnvOp(op="set", name="BAD", value="a\0b")
    (finding,) = refusals(shell, (OPS[0], bad))
    assert (finding.id, finding.status) == ("env-file", "error")
    for part in ("BAD", file_name(shell), "NUL"):
        assert part in finding.text
    assert "BAD" in finding.fix
    with pytest.raises(EnvFileError) as caught:
        rendered(shell, OPS[0], bad)
    assert caught.value.looked == (finding.text,)


def test_ordinary_operations_have_no_findings() -> None:
    assert [refusals(shell, GOLDEN_OPS[shell]) for shell in SHELLS] == [()] * 4


@pytest.mark.parametrize("shell", ["bat", "ps1"])
def test_a_list_that_the_compiler_extends_is_not_set_as_well(shell: str) -> None:
    (finding,) = refusals(shell, (EnvOp(op="set", name="LIB", value="C:\\mkl"), VCVARS))
    assert "cannot set LIB: the compiler's batch file adds to this list" in finding.text


@pytest.mark.parametrize("shell", ["sh", "fish"])
def test_a_batch_file_is_a_finding_where_no_cmd_is(shell: str) -> None:
    (finding,) = refusals(shell, (*OPS, VCVARS))
    assert "cannot load TORCHBUILD_VCVARS: it runs a batch file" in finding.text


def test_a_strange_name_is_shown_on_one_line() -> None:
    (finding,) = refusals("sh", (EnvOp(op="set", name="A\nB", value=""),))
    assert "\n" not in finding.text + finding.fix


def test_an_own_template_needs_nothing_but_the_operations() -> None:
    assert rendered("sh", OPS[-1], template="@{ops}\n") == "export USE_CUDA='0'\n"


def test_a_misspelt_name_in_a_template_raises() -> None:
    with pytest.raises(EnvFileError, match="@{opps}"):
        rendered("sh", template="@{opps}")


@pytest.mark.parametrize("shell", ["sh", "fish"])
def test_a_path_with_a_drive_is_sent_to_a_shell_of_windows(shell: str) -> None:
    (finding,) = refusals(shell, [EnvOp(op="prepend", name="PATH", value=r"C:\venv\Scripts")])
    assert finding.fix == "Take a shell of Windows: --env-shell bat, or ps1."
    (finding,) = refusals(shell, [EnvOp(op="prepend", name="PATH", value="/opt/a:b")])
    assert "Move what lies there" in finding.fix
