"""A module that is not installed: a paragraph with the command that installs it, for every runner."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import torchbuild_tasks
from torchbuild_tasks.errors import RequirementsError
from torchbuild_tasks.fronts.dependencies import explain_missing
from torchbuild_tasks.fronts.output import error_object

ROOT = Path(torchbuild_tasks.__file__).parents[1]
RUNNERS = {
    "torchbuild": ("-m", "torchbuild_tasks", "plan", "--source"),
    "invoke": ("-m", "invoke", "plan", "--source"),
    "nox": ("-m", "nox", "-s", "plan", "--", "--source"),
}


@pytest.mark.integration
@pytest.mark.parametrize("module", ["tomli", "msgspec"])  # needed by the rows, and by what prints errors
@pytest.mark.parametrize("runner", RUNNERS)
def test_a_module_that_is_not_installed_is_named_with_what_installs_it(
    runner: str, module: str, tmp_path: Path
) -> None:
    (tmp_path / f"{module}.py").write_text(f"raise ModuleNotFoundError('gone', name={module!r})\n", "utf-8")
    argv = (sys.executable, *RUNNERS[runner], str(tmp_path))
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join((str(tmp_path), str(ROOT)))}
    ran = subprocess.run(
        argv, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=120, check=False
    )
    assert ran.returncode == RequirementsError.exit_code, ran.stderr
    assert "Traceback" not in ran.stderr
    assert f"needs the module {module}, which is not installed for {sys.executable}." in ran.stderr


def test_the_command_installs_the_checkout_again(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit), explain_missing():
        raise ModuleNotFoundError("No module named 'tomli.x'", name="tomli.x")
    line = capsys.readouterr().err.splitlines()[-1].partition(": ")[2]
    if os.name != "nt":
        assert shlex.split(line)[-4:] == ["pip", "install", "-e", str(ROOT)]
    assert str(ROOT) in line


def test_a_program_is_told_in_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["torchbuild", "plan", "--json"])
    with pytest.raises(SystemExit), explain_missing():
        raise ModuleNotFoundError("gone", name="tomli")
    told = json.loads(capsys.readouterr().out)
    as_others = error_object(RequirementsError("", next_step=""))
    assert told.keys() == as_others.keys()
    assert (told["error"], told["exit_code"]) == (as_others["error"], as_others["exit_code"])
    assert "tomli" in told["what"]


@pytest.mark.parametrize("name", ["torchbuild_tasks.no_such", "_ctypes", None])
def test_what_no_command_installs_stays_a_bug(name: str | None) -> None:
    with pytest.raises(ModuleNotFoundError), explain_missing():
        raise ModuleNotFoundError("gone", name=name)
