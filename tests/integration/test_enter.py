"""`run`, `shell` and `python`: what a program gets that is started in the environment of a build."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.capabilities import needs_linux_compiler, needs_signals
from tests.support.driver import TORCHBUILD, Run, environment, torchbuild
from tests.support.sample import materialise

# The env files of Windows load Visual Studio, of which test_windows_line.py has a stand-in.
pytestmark = [pytest.mark.integration, needs_linux_compiler]
SAY = "import os, sys; print(os.environ.get('USE_NUMPY'), os.getcwd(), sys.executable); sys.exit(3)"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A checkout whose env file is written, with a manifest that names this Python."""
    tree = materialise(tmp_path / "pt")
    done = torchbuild("env", "--source", tree, "--cpu", "--set", "USE_NUMPY=0")
    assert done.code == 0, done.err
    manifest = {"result": "ok", "started": "1", "finished": "2"}
    choices = [{"name": "python", "value": sys.executable}, {"name": "mode", "value": "wheel"}]
    (tree / "build").mkdir()
    file = tree / "build/torchbuild-manifest.json"
    file.write_text(json.dumps({**manifest, "choices": choices}), "utf-8")
    done = torchbuild("trust", file)
    assert done.code == 0, done.err
    return tree


def test_a_command_gets_the_environment_and_gives_its_exit_code(tree: Path) -> None:
    """It runs in the current folder, with the build's `python` and the env file's variables."""
    done = torchbuild("run", "--source", tree, "--", "python", "-c", SAY)
    assert done.code == 3, done.err
    set_to, where, python = done.out.split()
    assert (set_to, os.path.realpath(where)) == ("0", os.path.realpath(Path.cwd()))
    assert Path(python).parent == Path(sys.executable).parent


def test_python_is_that_which_has_the_torch(tree: Path) -> None:
    done = torchbuild("python", "--source", tree, "--", "-c", SAY)
    assert done.code == 3, done.err
    assert done.out.split()[2] == sys.executable


def test_where_the_checkouts_own_torch_would_be_imported_it_says_so(tree: Path, tmp_path: Path) -> None:
    """A wheel is elsewhere, and Python looks first in the folder where it is started."""
    words = ("python", "--source", tree, "--", "-c", "")
    assert "takes the folder torch that is here" in torchbuild(*words, cwd=tree).err
    assert "takes the folder" not in torchbuild(*words, cwd=tmp_path).err


def test_a_manifest_that_came_with_the_checkout_names_no_python(tree: Path) -> None:
    """Git may track one; its Python would be started, and its folder stand first on PATH."""
    assert torchbuild("trust", "--revoke", tree / "build/torchbuild-manifest.json").code == 0
    assert torchbuild("python", "--source", tree, "--", "-c", SAY).code == 21
    done = torchbuild("run", "--source", tree, "--", "sh", "-c", "echo $PATH")
    assert Path(done.out.split(os.pathsep)[0]) != Path(sys.executable).parent


def test_with_json_stdout_holds_our_answer_alone(tree: Path) -> None:
    done = torchbuild("run", "--source", tree, "--json", "--", sys.executable, "-c", SAY)
    assert (done.json, done.code) == ({"exit_code": 3}, 3)
    assert " " in done.err


def test_it_reads_what_is_typed(tree: Path) -> None:
    argv = [*TORCHBUILD, "python", "--source", str(tree), "--", "-c", "print(input()[::-1])"]
    done = subprocess.run(argv, input="abc\n", capture_output=True, text=True, env=environment(), timeout=120)
    assert done.stdout.strip() == "cba", done.stderr


@needs_signals
def test_a_shell_is_entered_and_left(tree: Path) -> None:
    argv = [*TORCHBUILD, "shell", "--source", str(tree)]
    environ = environment({"SHELL": "/bin/sh"})
    text = "echo numpy=$USE_NUMPY\nexit 4\n"
    done = subprocess.run(argv, input=text, capture_output=True, text=True, env=environ, timeout=120)
    assert ("numpy=0" in done.stdout, done.returncode) == (True, 4), done.stderr


def test_what_cannot_start_is_reported(tree: Path) -> None:
    done = torchbuild("run", "--source", tree, "--", "no-such-program")
    assert done.code == 127
    assert "cannot start no-such-program: it is in no folder of PATH" in done.err


def test_an_env_file_that_torchbuild_did_not_write_is_not_run(tmp_path: Path) -> None:
    """It comes with a checkout, or was edited; what is advised makes it good."""
    tree = materialise(tmp_path / "pt")
    name = "env_set.bat" if os.name == "nt" else "env_set.sh"

    def run() -> Run:
        return torchbuild("run", "--source", tree, "--", sys.executable, "-c", "print(1)")

    assert (run().code, "torchbuild env" in run().err) == (21, True)
    (tree / name).write_text("echo taken\n", "utf-8")
    done = run()
    assert (done.code, "taken" in done.out, "Move it away" in done.err) == (18, False, True)
    (tree / name).rename(tmp_path / "theirs")
    assert torchbuild("env", "--source", tree, "--cpu").code == 0
    assert run().out.strip() == "1"


def test_without_a_command_it_says_how_one_is_written(tree: Path) -> None:
    done = torchbuild("run", "--source", tree)
    assert (done.code, "run -- COMMAND" in done.err) == (2, True)
