"""Telling that a build is over: no shell, no wait, no failure."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from tests.support.capabilities import POSIX, needs
from tests.support.for_each import each_case
from torchbuild_tasks.build.notify import notify_command, notify_desktop

pytestmark = pytest.mark.integration
TELL = """
import os, sys
with open(sys.argv[1], "w") as file:
    file.write(os.environ["TORCHBUILD_RESULT"] + "|" + os.environ["TORCHBUILD_TEXT"])
"""


def command(*words: str) -> str:
    if sys.platform == "win32":
        import subprocess

        return subprocess.list2cmdline(words)
    return shlex.join(words)


def test_the_program_gets_the_result_and_the_text(tmp_path: Path) -> None:
    told = tmp_path / "told"
    assert notify_command(command(sys.executable, "-c", TELL, str(told)), "failed", "torch 1.13, 3 min") == ""
    assert told.read_text("utf-8") == "failed|torch 1.13, 3 min"


def test_nothing_of_it_goes_through_a_shell(tmp_path: Path) -> None:
    told = tmp_path / "told"
    words = command(sys.executable, "-c", TELL, str(told)) + " ; echo $(touch shell) > there"
    assert notify_command(words, "ok", "$(touch text)") == ""
    assert told.read_text("utf-8") == "ok|$(touch text)"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["told"]


@each_case("words", ["", "   ", "no-such-program-here --x"])
def test_a_command_that_cannot_run_is_a_line(words: str) -> None:
    problem = notify_command(words, "ok", "")
    assert problem.startswith("--notify") and "\n" not in problem


def test_a_program_that_fails_is_a_line() -> None:
    problem = notify_command(command(sys.executable, "-c", "import sys; sys.exit('no display')"), "ok", "")
    assert problem.endswith("no display")


@needs(POSIX, "POSIX quoting")
def test_a_quote_that_never_ends_is_a_line() -> None:
    assert "quotation" in notify_command("say 'it", "ok", "")


@needs(POSIX, "notify-send of a test's own")
def test_the_desktop_is_notified_where_there_is_one(tmp_path: Path) -> None:
    send, told = tmp_path / "notify-send", tmp_path / "told"
    send.write_text(f'#!/bin/sh\nprintf "%s|" "$@" > {told}\n', "utf-8")
    send.chmod(0o755)
    environ = {"PATH": str(tmp_path), "DISPLAY": ":0"}
    assert notify_desktop("torch is built", "<b>& -x", environ) == ""
    assert told.read_text("utf-8") == "--app-name=torchbuild|--|torch is built|<b>& -x|"
    assert notify_desktop("a", "b", {"PATH": str(tmp_path)}) != ""
    assert notify_desktop("a", "b", {"PATH": str(tmp_path / "empty"), "DISPLAY": ":0"}) != ""
