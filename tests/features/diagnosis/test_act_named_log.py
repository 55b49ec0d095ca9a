"""Logs that somebody names: files, pipes, and what is neither."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

import pytest

from tests.support.capabilities import needs_fifo
from torchbuild_tasks.errors import NotBuilt, UsageError
from torchbuild_tasks.features.diagnosis.act import last_log, log_chunks
from torchbuild_tasks.model import Tree
from torchbuild_tasks.values import replace


def test_a_file_comes_whole(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(b"x" * 3_000_000)
    assert b"".join(log_chunks(str(tmp_path / "a.log"))) == b"x" * 3_000_000


def test_of_a_log_that_grows_what_is_there_at_first_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"x" * 1_000_000)
    read = 0
    for chunk in log_chunks(str(path)):
        read += len(chunk)
        with path.open("ab") as file:
            file.write(b"y" * 1_000_000)
    assert read == 1_000_000


def test_a_dash_is_what_comes_in_by_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"one\ntwo"), "utf-8"))
    assert b"".join(log_chunks("-")) == b"one\ntwo"


def test_nothing_that_comes_in_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.TextIOWrapper(io.BytesIO(), "utf-8")
    monkeypatch.setattr(terminal, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys, "stdin", terminal)
    with pytest.raises(UsageError, match="standard input is empty"):
        list(log_chunks("-"))


@pytest.mark.parametrize(
    ("name", "says"), [("", "is a folder"), ("missing.log", "cannot be read: No such file")]
)
def test_what_is_no_log_is_said(tmp_path: Path, name: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        list(log_chunks(str(tmp_path / name)))


@needs_fifo
def test_a_named_pipe_is_no_file_and_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="is a named pipe"):
        next(log_chunks(str(tmp_path / "pipe")))


@needs_fifo
def test_a_pipe_that_a_shell_has_opened_is_read() -> None:
    read, write = os.pipe()
    os.write(write, b"a line\n")
    os.close(write)
    assert b"".join(log_chunks(f"/dev/fd/{read}")) == b"a line\n"
    os.close(read)


def test_without_a_name_the_log_is_that_of_the_last_build(tmp_path: Path) -> None:
    tree = Tree(root=str(tmp_path))
    with pytest.raises(NotBuilt, match="there is no"):
        last_log(tree)
    log = tmp_path / ".torchbuild/logs/build.log"
    log.parent.mkdir(parents=True)
    log.write_text("x", "utf-8")
    assert last_log(tree) == str(log)
    with pytest.raises(UsageError, match="not a checkout"):
        last_log(replace(tree, problem="no version.txt"))
