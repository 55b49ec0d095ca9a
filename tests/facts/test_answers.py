"""An answer is kept while nothing on which it depends has changed, and no longer."""

from __future__ import annotations

import json
import os
import sys
import time
import venv
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
import pytest

from tests.support.capabilities import needs_posix_paths
from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.facts.answers import KEPT_FILE, Answers
from torchbuild_tasks.facts.probe import Output, Probe
from torchbuild_tasks.facts.python import REPORT, list_read
from torchbuild_tasks.system.files import write_json

pytestmark = needs_posix_paths

SAID = Output(0, "cmake version 3.31.6\n")
ENVIRON = {"PATH": "/bin", "SHLVL": "1"}


def program(path: Path, text: str = "\x7fELF") -> str:
    """A file that is no script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def keep(state: Path, path: str, *reads: str, asked: float = 10.0) -> Answers:
    """What the next run finds after one that has asked a program, so many seconds from now."""
    state.mkdir(exist_ok=True)
    answers = Answers(state)
    when = time.time() + asked
    answers.keep((path, "--version"), ENVIRON, SAID, asked=when, reads=reads)
    if answers.changed:
        write_json(answers.path, answers.changed, error=UsageError)
    return Answers(state)


def is_kept(answers: Answers, path: str, **environ: str) -> bool:
    return answers.find((path, "--version"), {**ENVIRON, **environ}) is not None


def test_an_answer_is_that_of_the_same_command_in_the_same_environment(tmp_path: Path) -> None:
    cmake = program(tmp_path / "bin/cmake")
    answers = keep(tmp_path, cmake)
    assert answers.find((cmake, "--version"), ENVIRON) == SAID
    assert answers.changed is None, "there is nothing new to write"
    assert is_kept(answers, cmake, SHLVL="2", PWD="/elsewhere", _="/bin/env", SSH_TTY="/dev/pts/1")
    assert not is_kept(answers, cmake, LD_LIBRARY_PATH="/opt/lib")
    assert answers.find((cmake, "--help"), ENVIRON) is None


CHANGES: Mapping[str, Callable[[Path], object]] = {
    "other content": lambda top: program(top / "bin/cmake", "\x7fELF of another release"),
    "another file of the same size and time": lambda top: _replace(top / "bin/cmake"),
    "a program beside it": lambda top: program(top / "bin/ninja"),
    "a library": lambda top: program(top / "lib/libuv.so.2"),
    "what it has read": lambda top: (top / "settings").write_text("y"),
    "what it has looked for": lambda top: (top / "absent").write_text(""),
    "gone": lambda top: (top / "bin/cmake").unlink(),
}


def _replace(path: Path) -> None:
    times = path.stat()
    path.with_name("new").write_bytes(path.read_bytes())
    os.utime(path.with_name("new"), ns=(times.st_atime_ns, times.st_mtime_ns))
    path.with_name("new").replace(path)


@pytest.mark.parametrize("change", CHANGES)
def test_an_answer_ends_with(change: str, tmp_path: Path) -> None:
    cmake = program(tmp_path / "bin/cmake")
    (tmp_path / "lib").mkdir()
    (tmp_path / "settings").write_text("x")
    answers = keep(tmp_path / "state", cmake, str(tmp_path / "settings"), str(tmp_path / "absent"))
    assert is_kept(answers, cmake)
    CHANGES[change](tmp_path)
    assert not is_kept(answers, cmake)


def test_an_answer_ends_where_its_link_leads_elsewhere(tmp_path: Path) -> None:
    first = program(tmp_path / "a/g++-12")
    second = program(tmp_path / "b/g++-13")
    named = tmp_path / "bin/g++"
    named.parent.mkdir()
    named.symlink_to(first)
    answers = keep(tmp_path, str(named))
    assert is_kept(answers, str(named))
    named.unlink()
    named.symlink_to(second)
    assert not is_kept(answers, str(named))


def test_no_answer_is_kept_that_something_else_decides(tmp_path: Path) -> None:
    shim = tmp_path / "shims/cmake"
    shim.parent.mkdir()
    shim.symlink_to(program(tmp_path / "bin/mise"))
    assert not is_kept(keep(tmp_path, str(shim)), str(shim)), "a link to what chooses among versions"
    for first in ("#!/usr/bin/env bash", "#!/bin/sh", f"#!{tmp_path}/bin/bash", "#!", "#!/elsewhere/python3"):
        script = program(tmp_path / "bin/ninja", f"{first}\nexec chosen\n")
        assert not is_kept(keep(tmp_path, script), script), first
    script = program(tmp_path / "bin/ninja", f"#!{tmp_path}/bin/python3.11 -sE\nimport ninja\n")
    assert is_kept(keep(tmp_path, script), script), "pip writes those anew with each release"


def test_what_was_written_just_before_may_have_been_written_just_after(tmp_path: Path) -> None:
    cmake = program(tmp_path / "bin/cmake")
    assert not is_kept(keep(tmp_path / "state", cmake, asked=0), cmake)


def test_a_damaged_file_of_answers_is_none(tmp_path: Path) -> None:
    cmake = program(tmp_path / "bin/cmake")
    keep(tmp_path, cmake)
    for text in ("", "[]", '{"answers": 1}', '{"answers": [{"argv": []}]}', '{"new": 1}'):
        (tmp_path / KEPT_FILE).write_text(text)
        assert not is_kept(Answers(tmp_path), cmake), text


class Counting(Probe, frozen=True, kw_only=True):
    """Counts the programs that it starts."""

    started: list[str] = msgspec.field(default_factory=list)

    def run(self, argv: object, *, timeout: float = 10.0) -> Output | None:
        assert isinstance(argv, tuple)
        self.started.append(argv[0])
        return super().run(argv, timeout=timeout)


@pytest.mark.integration
def test_a_program_is_started_once_and_one_that_fails_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torchbuild_tasks.facts.answers._SETTLED", -60.0)
    python = os.path.realpath(sys.executable)
    for words, times in ((("-c", "print(1)"), 1), (("-c", "raise SystemExit(1)"), 2)):
        answers = Answers(tmp_path)
        door = Counting(environ=dict(os.environ), answers=answers)
        first = door.ask((python, *words), timeout=60)
        if answers.changed:
            write_json(answers.path, answers.changed, error=UsageError)
        again = Counting(environ=door.environ, answers=Answers(tmp_path))
        assert again.ask((python, *words), timeout=60) == first
        assert len(door.started) + len(again.started) == times


@pytest.mark.integration
def test_the_answer_of_an_interpreter_ends_with_its_packages(tmp_path: Path) -> None:
    venv.create(tmp_path / "v", symlinks=True)
    (site,) = (tmp_path / "v").glob("lib/python*/site-packages")
    (site / "easy-install.pth").write_text(str(tmp_path))
    (tmp_path / "torch.egg-info").mkdir()
    (tmp_path / "torch.egg-info/PKG-INFO").write_text("Version: 2.0\n")
    argv = (str(tmp_path / "v/bin/python"), "-I", "-B", str(REPORT))
    said = Probe(environ=dict(os.environ)).run(argv, timeout=60)
    assert said is not None
    assert json.loads(said.stdout)["packages"]["torch"] == "2.0"
    reads = list_read(said)
    assert {str(site), str(site / "easy-install.pth"), str(tmp_path), str(REPORT)} < set(reads)
    assert {str(tmp_path / "torch.egg-info/PKG-INFO"), str(tmp_path / "v/pyvenv.cfg")} < set(reads)
