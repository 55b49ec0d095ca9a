"""Waiting for saves, with the real events of the system."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from torchbuild_tasks.build.watch import Saves
from torchbuild_tasks.errors import Interrupted, UsageError


def test_what_is_saved_between_two_waits_is_reported(tmp_path: Path) -> None:
    saves = Saves(tmp_path, lambda path: not path.startswith("build/"))
    (tmp_path / "build").mkdir()
    (tmp_path / "build/a.o").write_text("", "utf-8")
    (tmp_path / "a.cpp").write_text("", "utf-8")
    time.sleep(0.3)  # as long as a build may take
    (tmp_path / "new").mkdir()
    (tmp_path / "b.cpp").write_text("", "utf-8")
    found = set(saves.wait())
    while not {"a.cpp", "b.cpp"} <= found:
        found.update(saves.wait())
    assert found <= {"a.cpp", "b.cpp", "new", "build"}


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be watched"):
        Saves(tmp_path / "none", lambda path: True)


def test_once_it_is_said_that_ctrl_c_ends_the_wait_it_does(tmp_path: Path) -> None:
    saves = Saves(tmp_path, lambda path: True)
    with pytest.raises(Interrupted):
        saves.wait(lambda: signal.raise_signal(signal.SIGINT))
