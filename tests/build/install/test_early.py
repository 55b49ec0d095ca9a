"""Ninja is asked early about the user's own tree by his own program, and believed while nothing changed."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.capabilities import needs_ninja
from torchbuild_tasks.build.install import early
from torchbuild_tasks.build.install.early import ask_early, take_answer
from torchbuild_tasks.build.install.inner_loop import UP_TO_DATE
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.system import venv
from torchbuild_tasks.system.process import Captured

pytestmark = [pytest.mark.integration, needs_ninja]

NINJA = shutil.which("ninja") or ""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A checkout whose tree has nothing to build."""
    build = tmp_path / "checkout/build"
    build.mkdir(parents=True)
    (build / "build.ninja").write_text("rule touch\n  command = touch $out\nbuild all: phony\n", "utf-8")
    (build / "CMakeCache.txt").write_text(f"CMAKE_MAKE_PROGRAM:FILEPATH={NINJA}\n", "utf-8")
    return build.parent


def asked(
    root: Path, request: BuildRequest | None = None, meanwhile: Callable[[Path], object] = lambda build: None
) -> Captured | None:
    with ask_early(request or BuildRequest(source=str(root))):
        for each in early._asking:
            each.join()
        meanwhile(root / "build")
        return take_answer(("ninja", "-C", str(root / "build")), root / "build", os.environ)


def test_nothing_to_do(root: Path) -> None:
    said = asked(root)
    assert said is not None
    assert UP_TO_DATE in said.stdout


def test_what_is_to_be_done(root: Path) -> None:
    with (root / "build/build.ninja").open("a", encoding="utf-8") as file:
        file.write("build made: touch\n")
    said = asked(root)
    assert said is not None
    assert b"[1/1] touch made" in said.stdout
    assert not (root / "build/made").exists()


def append_to(name: str) -> Callable[[Path], object]:
    return lambda build: (build / name).write_bytes(b"# ninja log v7\n# changed\n")


@pytest.mark.parametrize("name", ["build.ninja", ".ninja_log", ".ninja_deps", "CMakeCache.txt"])
def test_no_answer_once_a_file_that_ninja_reads_has_changed(root: Path, name: str) -> None:
    assert asked(root, meanwhile=append_to(name)) is None


def test_an_answer_is_taken_once(root: Path) -> None:
    with ask_early(BuildRequest(source=str(root))):
        argv = ("ninja", "-C", str(root / "build"))
        assert take_answer(argv, root / "build", os.environ) is not None
        assert take_answer(argv, root / "build", os.environ) is None


@pytest.mark.parametrize(
    "request_",
    [
        BuildRequest(target="c10"),
        BuildRequest(clean=True),
        BuildRequest(watch=True),
        BuildRequest(dry_run=True),
        BuildRequest(mode="wheel"),
        BuildRequest(from_wheel="auto"),
    ],
    ids=lambda each: "",
)
def test_not_asked_for_a_build_that_asks_ninja_for_something_else(
    root: Path, request_: BuildRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root)
    assert asked(root, request_) is None
    assert asked(root, BuildRequest()) is not None


def test_not_asked_about_what_cannot_be_looked_at(root: Path) -> None:
    assert asked(root, BuildRequest(source="a\0b")) is None
    (root / "build/CMakeCache.txt").unlink()
    assert asked(root) is None


def test_not_asked_while_a_build_runs_there(root: Path) -> None:
    (root / ".torchbuild").mkdir()
    (root / ".torchbuild/lock.json").write_text("{}", "utf-8")
    assert asked(root) is None


@pytest.mark.skipif(sys.platform == "win32", reason="a script that stands in for Ninja")
def test_what_a_checkout_names_is_not_started(root: Path, tmp_path: Path) -> None:
    """It is asked before the user was asked whether the checkout is trusted."""
    theirs = stand_in(root, "ninja", f"touch {tmp_path / 'started'}")
    (root / "build/CMakeCache.txt").write_text(f"CMAKE_MAKE_PROGRAM:FILEPATH={theirs}\n", "utf-8")
    assert asked(root) is None
    assert not (tmp_path / "started").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="a script that stands in for Ninja")
def test_that_of_a_venv_of_ours_is_asked(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = stand_in(root, "ninja", f"echo {UP_TO_DATE.decode()}")
    (root / "build/CMakeCache.txt").write_text(f"CMAKE_MAKE_PROGRAM:FILEPATH={ours}\n", "utf-8")
    monkeypatch.setattr(venv, "is_ours", lambda python: python == str(ours))
    with ask_early(BuildRequest(source=str(root))):
        said = take_answer((str(ours), "-C", str(root / "build")), root / "build", os.environ)
    assert said is not None
    assert UP_TO_DATE in said.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="a script that stands in for Ninja")
def test_it_is_over_with_the_build(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = stand_in(tmp_path, "bin/ninja", f"touch {tmp_path / 'started'}; exec sleep 600")
    monkeypatch.setenv("PATH", str(ours.parent), prepend=os.pathsep)
    (root / "build/CMakeCache.txt").write_text(f"CMAKE_MAKE_PROGRAM:FILEPATH={ours}\n", "utf-8")
    with ask_early(BuildRequest(source=str(root))):
        while not (tmp_path / "started").exists():
            time.sleep(0.01)


def stand_in(folder: Path, name: str, script: str) -> Path:
    program = folder / name
    program.parent.mkdir(exist_ok=True)
    program.write_text(f"#!/bin/sh\n{script}\n", "utf-8")
    program.chmod(0o755)
    return program
