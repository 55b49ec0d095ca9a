"""Bad input gets a clear error with its exit code, never a traceback, and nothing is written."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.capabilities import needs_git, needs_posix_paths
from tests.support.driver import make_venv, torchbuild
from tests.support.sample import materialise
from torchbuild_tasks.system import lock

pytestmark = pytest.mark.integration


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return materialise(tmp_path / "minitorch")


def files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*")) if folder.is_dir() else []


@pytest.mark.one_system
@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["--jobs", "0"], 2, "--jobs cannot be 0"),
        (["--jobs", "many"], 2, "--jobs 'many' is not a whole number"),
        (["--preset", "minimum"], 2, "did you mean minimal?"),
        (["--build-type", "debug"], 2, "did you mean Debug?"),
        (["--set", "USE_CUDA"], 2, "is not KEY=VALUE"),
        (["--sett", "A=1"], 2, "did you mean --set?"),
        (["--python", "/no/such/python"], 3, "does not exist"),
        (["--config", "/no/such.toml"], 2, "/no/such.toml"),
        (["--cuda", "--cuda-toolkit", "/no/such/cuda"], 3, "cannot be used: it does not exist"),
        (["--set", "BLAS=a\nb", "--env-shell", "bat"], 3, "env_set.bat cannot set BLAS"),
        (["--set", "CMAKE_INSTALL_PREFIX=/usr"], 3, "CMAKE_INSTALL_PREFIX must not be set"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else None,
)
def test_flags(tree: Path, words: list[str], code: int, told: str) -> None:
    before = files(tree)
    done = torchbuild("build", "--source", tree, *words)
    assert done.code == code, done.err
    assert told in done.err
    assert "Traceback" not in done.err
    assert files(tree) == before


def test_the_env_file_of_a_running_build_stays_as_it_is(tree: Path) -> None:
    with lock.hold(tree, "build"):
        done = torchbuild("env", "--source", tree)
        assert (done.code, "in use by `build`" in done.err) == (8, True), done.err
        assert not (tree / "env_set.sh").exists()
        assert torchbuild("env", "--source", tree, "--dry-run").code != done.code


def test_what_a_running_build_makes_is_not_packed(tree: Path) -> None:
    with lock.hold(tree, "build"):
        done = torchbuild("package", "wheel", "--source", tree)
    assert (done.code, "in use by `build`" in done.err) == (8, True), done.err


@needs_posix_paths
def test_a_server_without_a_token_fetches_nothing() -> None:
    offline = {**os.environ, "PIP_NO_INDEX": "1"}
    done = torchbuild("cluster", "server", "http://scheduler:10600", environ=offline)
    assert (done.code, "No token" in done.err) == (2, True), done.err


def test_no_such_source(tmp_path: Path) -> None:
    done = torchbuild("build", "--source", tmp_path / "nothing")
    assert done.code == 3
    assert str(tmp_path / "nothing") in done.err
    assert "--source PATH" in done.err


def test_a_source_that_is_no_torch(tmp_path: Path) -> None:
    (tmp_path / "setup.py").touch()
    done = torchbuild("build", "--source", tmp_path)
    assert done.code == 3
    assert "version.txt" in done.err


def test_a_zip_download_has_no_submodules(tmp_path: Path) -> None:
    tree = materialise(tmp_path / "pytorch-main")
    shutil.rmtree(tree / "third_party/tinyfmt")
    (tree / "third_party/tinyfmt").mkdir()
    done = torchbuild("build", "--source", tree)
    assert done.code == 3
    assert "Copy the sample anew" in done.err  # no checkout of PyTorch has what it lacks


@needs_git
def test_an_empty_nested_submodule_is_named(tmp_path: Path) -> None:
    tree = materialise(tmp_path / "minitorch", git=True)
    inner = tree / "third_party/tinyfmt/third_party/tinyassert"
    shutil.rmtree(inner)
    inner.mkdir()
    done = torchbuild("build", "--source", tree)
    assert done.code == 3
    assert "third_party/tinyfmt/third_party/tinyassert" in done.err
    assert f"torchbuild source update --source {tree}" in done.err


def test_a_python_without_pip(tree: Path, tmp_path: Path) -> None:
    venv = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    done = torchbuild("build", "--source", tree, "--python", venv)
    assert done.code == 3
    assert "has no pip" in done.err


@pytest.mark.one_system
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("jobs = \n", "line 1"),
        ("# first\njobz = 2\n", "line 2: unknown key 'jobz'; did you mean jobs?"),
        ("\n\njobs = 'two'\n", "line 3: jobs = 'two' cannot be read"),
        ("preset = 'dev'\n[set]\nUSE_CUDA = [1]\n", "line 3: set.USE_CUDA"),
    ],
)
def test_a_broken_settings_file(tree: Path, text: str, told: str) -> None:
    (tree / "torchbuild.toml").write_text(text, "utf-8")
    done = torchbuild("plan", "--source", tree)
    assert done.code == 2
    assert str(tree / "torchbuild.toml") in done.err
    assert told in done.err


def test_an_environment_of_the_users_is_not_changed_without_a_yes(
    tree: Path, tmp_path: Path, able: dict[str, str]
) -> None:
    venv = tmp_path / "mine"
    make_venv(venv)
    before = files(venv)
    done = torchbuild("build", "--source", tree, "--python", venv, environ=able)
    assert done.code == 5
    assert "your own environment" in done.err
    assert "scikit-build-core" in done.err
    assert files(venv) == before


def test_a_hand_made_build_tree_is_not_removed(tree: Path, target: Path, able: dict[str, str]) -> None:
    (tree / "build").mkdir()
    cache = tree / "build/CMakeCache.txt"
    cache.write_text("CMAKE_HOME_DIRECTORY:INTERNAL=/somewhere/else\n", "utf-8")
    done = torchbuild("build", "--source", tree, "--python", target, "--clean", environ=able)
    assert done.code == 3
    remove = "rmdir /s /q" if sys.platform == "win32" else "rm -r"
    assert f"{remove} {tree / 'build'}, and leave --clean out" in done.err
    assert cache.exists()


@pytest.mark.parametrize("flags", [(), ("--closure",)])
@pytest.mark.parametrize("there", [True, False])
def test_a_verification_before_any_build_says_so(
    there: bool, flags: tuple[str, ...], tree: Path, tmp_path: Path
) -> None:
    done = torchbuild("verify", *flags, "--source", tree if there else tmp_path / "nowhere")
    assert done.code == 21
    assert "Nothing was built here yet" in done.err and "torchbuild build" in done.err
    assert done.out == ""
