"""The tokens in a real named pipe, and what a killed run has left of one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.capabilities import needs_fifo
from torchbuild_tasks.build.jobserver.posix import Tokens

pytestmark = needs_fifo


def client(tokens: Tokens) -> int:
    return os.open(tokens.auth.removeprefix("fifo:"), os.O_RDWR | os.O_NONBLOCK)


def test_what_is_put_can_be_taken_by_anybody_once(scratch: Path) -> None:
    tokens = Tokens(scratch)
    tokens.give_out(3)
    ninja = client(tokens)
    assert os.read(ninja, 1) == b"+"
    assert tokens.free() == 2
    assert tokens.take(0.0) and tokens.take(0.0) and not tokens.take(0.0)
    os.write(ninja, b"+")
    assert tokens.take(5.0)
    os.close(ninja)
    tokens.close()


def test_nothing_is_left_behind_and_no_other_user_can_look_in(scratch: Path) -> None:
    tokens = Tokens(scratch)
    assert tokens.folder.parent == scratch and tokens.folder.stat().st_mode & 0o777 == 0o700
    tokens.note_held(((1, 2.0),))
    tokens.close()
    assert list(scratch.iterdir()) == []


def test_a_folder_whose_name_would_be_two_words_is_not_used(scratch: Path) -> None:
    folder = scratch / "two words"
    folder.mkdir()
    tokens = Tokens(folder)
    assert " " not in tokens.auth
    tokens.close()


def test_no_pipe_where_there_is_no_folder(scratch: Path) -> None:
    with pytest.raises(OSError):
        Tokens(scratch / "missing")


def test_what_a_killed_run_left_is_swept_and_a_living_one_is_not(scratch: Path) -> None:
    alive, dead = Tokens(scratch), Tokens(scratch)
    dead.note_held(((os.getpid(), -1.0), (1 << 30, 5.0)))  # pids that are others by now
    os.close(dead._lock)  # what the end of a process does
    foreign = scratch / "torchbuild-jobs-foreign"
    foreign.mkdir()
    (foreign / "mine").touch()
    third = Tokens(scratch)
    assert alive.folder.exists() and not dead.folder.exists() and (foreign / "mine").exists()
    alive.close()
    third.close()
