"""PowerShell itself: what env_set.ps1 sets comes back equal, and what it loads is loaded once.

tests/plan/test_env_lines_ps1.py has the text of the file. Here PowerShell 7 runs it on any system that has
it, and Windows its own 5.1 too; wine has neither.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.integration.test_env_cmd import BATCH, NAMES, QUICK, WIDE, generated
from tests.integration.test_env_cmd_load import load, runs, stand_in
from tests.support import cmd
from tests.support.capabilities import needs_cmd, needs_powershell
from torchbuild_tasks.model import EnvOp
from torchbuild_tasks.plan.env_files import refusal

pytestmark = pytest.mark.integration

SOURCE: Final = ". (Join-Path $PSScriptRoot 'env_set.ps1')"
_DUMP: Final = """\
import json, os, sys
with open(sys.argv[1], "w") as file:
    json.dump([dict(os.environ), os.getcwd()], file)
"""


@pytest.fixture(params=[pytest.param(name, marks=needs_powershell(name)) for name in ("pwsh", "powershell")])
def powershell(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def run(
    powershell: str, folder: Path, ops: Sequence[EnvOp], *script: str, environ: dict[str, str] | None = None
) -> cmd.Done:
    """Write the env file of these operations, run the lines, and see what programs then get."""
    cmd.write(folder, ops, shell="ps1")  # noqa: S604 - no process
    dump, seen, main = folder / "dump.py", folder / "seen.json", folder / "main.ps1"
    dump.write_text(_DUMP, encoding="utf-8")
    seen.unlink(missing_ok=True)
    python = sys.executable.replace("'", "''")
    last = f"& '{python}' -I -S (Join-Path $PSScriptRoot 'dump.py') (Join-Path $PSScriptRoot 'seen.json')"
    # 5.1 takes a file without a byte order mark for the code page's.
    main.write_text("\n".join((*script, last, "")), encoding="utf-8-sig")
    words = ("-NoProfile", "-NonInteractive", "-ExecutionPolicy", "Bypass", "-File", str(main))
    done = subprocess.run(
        [powershell, *words],
        env={**os.environ, **(environ or {})},
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=300,
        check=False,
    )
    left, at = json.loads(seen.read_text("utf-8")) if seen.exists() else ({}, "")
    out, err = (text.decode(errors="replace").replace("\r\n", "\n") for text in (done.stdout, done.stderr))
    return cmd.Done(done.returncode, out, err, left, at)


def sourced(
    powershell: str,
    folder: Path,
    ops: Sequence[EnvOp],
    *,
    times: int = 1,
    environ: dict[str, str] | None = None,
) -> cmd.Done:
    """What is left once the file was sourced, `times` times."""
    done = run(powershell, folder, ops, *[SOURCE] * times, environ=environ)
    assert done.rc == 0, (done.out + done.err)[-2_000:]
    return done


def test_every_value_comes_back_equal(powershell: str, tmp_path: Path) -> None:
    """Values of every kind, also those with line breaks and control characters, which cmd refuses."""
    carried = 0
    pieces = st.one_of(WIDE, st.sampled_from("\r\n\t\x01\x07\x1b\x7f\u2018\u2019\u201a\u201b$`{}@("))
    values = st.lists(pieces, min_size=1, max_size=8).map("".join)
    names = NAMES.filter(lambda name: name != "PATH")
    batches = st.dictionaries(names, values, min_size=BATCH, max_size=BATCH)

    @generated(QUICK // BATCH)
    @given(batches)
    def check(drawn: dict[str, str]) -> None:
        nonlocal carried
        ops = [EnvOp(op="set", name=name, value=value) for name, value in drawn.items()]
        takes = [op for op in ops if not refusal("ps1", op)]
        environ = sourced(powershell, tmp_path, takes).environ
        left = {op.name: environ.get(op.name) for op in takes}
        assert left == {op.name: op.value for op in takes}
        carried += len(takes)

    check()
    assert carried >= QUICK * 0.9


def test_a_list_grows_once_however_often_it_is_sourced(powershell: str, tmp_path: Path) -> None:
    ops = [
        EnvOp(op="prepend", name="SOME_PATH", value="first it's"),
        EnvOp(op="prepend", name="SOME_PATH", value="second"),
        EnvOp(op="prepend", name="EMPTY_PATH", value="only"),
        EnvOp(op="unset", name="GONE"),
        EnvOp(op="unset", name="NEVER_THERE"),
    ]
    environ = {"SOME_PATH": os.pathsep.join(("old", "second", "")), "GONE": "1"}
    once = sourced(powershell, tmp_path, ops, environ=environ).environ
    assert once["SOME_PATH"].split(os.pathsep) == ["second", "first it's", "old"]
    assert once["EMPTY_PATH"] == "only"
    assert "GONE" not in once
    twice = sourced(powershell, tmp_path, ops, times=2, environ=environ).environ
    names = {op.name for op in ops}
    assert {name: twice.get(name) for name in names} == {name: once.get(name) for name in names}


# ---------------------------------------------------------------- batch files, which Windows alone has

LISTS: Final = ("PATH", "INCLUDE", "LIB", "LIBPATH")


@needs_cmd
def test_what_a_batch_file_sets_is_kept_and_it_runs_once(powershell: str, tmp_path: Path) -> None:
    vcvars = stand_in(tmp_path / "Files (x86) & co's !" / "VC")
    ops = [
        *(EnvOp(op="prepend", name=name, value=r"C:\ours") for name in LISTS),
        EnvOp(op="set", name="WORDS", value="Grüße, 世界\r\nand a second line"),
        load(vcvars, "x64", "-vcvars_ver=14.38"),
    ]
    once, twice = (sourced(powershell, tmp_path, ops, times=times) for times in (1, 2))
    environ = {name.upper(): value for name, value in once.environ.items()}
    assert environ["PATH"].startswith(r"C:\VC\14.38\bin;C:\ours;")
    assert environ["LIB"].startswith(r"C:\VC\14.38\lib;C:\ours")
    assert environ["WORDS"] == "Grüße, 世界\r\nand a second line"
    kept = ("VSCMD_VER", "VSCMD_ARG_TGT_ARCH", "VCTOOLSVERSION", "TORCHBUILD_VCVARS")
    assert [environ[name] for name in kept] == [
        "17.14.7",
        "x64",
        "14.38.33130",
        f"{vcvars} x64 -vcvars_ver=14.38",
    ]
    assert cmd.helpers(once) == []
    assert Path(once.folder) == tmp_path
    assert runs(vcvars) == ["x64 -vcvars_ver=14.38"] * 2  # once in each PowerShell
    for name in LISTS:
        again = {key.upper(): value for key, value in twice.environ.items()}[name]
        assert sorted(again.split(";")) == sorted(environ[name].split(";"))


@needs_cmd
def test_a_batch_file_that_fails_ends_it_and_leaves_no_marker(powershell: str, tmp_path: Path) -> None:
    vcvars = stand_in(tmp_path / "vs")
    caught = "try { " + SOURCE + " } catch { $env:CAUGHT = $_.ToString() }"
    done = run(powershell, tmp_path, [load(vcvars, "x64", "-vcvars_ver=14.99")], caught)
    environ = {name.upper(): value for name, value in done.environ.items()}
    assert environ["CAUGHT"].endswith("failed with exit code 1")
    assert "Toolset directory for version '14.99' was not found" in done.out + done.err
    assert not [name for name in environ if name.startswith("TORCHBUILD_")]
