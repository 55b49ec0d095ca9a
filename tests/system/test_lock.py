"""One run per checkout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from torchbuild_tasks.errors import TreeBusy, UsageError
from torchbuild_tasks.system.lock import hold

HOLDER = """import sys, time
from pathlib import Path
from torchbuild_tasks.system.lock import hold
with hold(Path(sys.argv[1]), "build"):
    print("held", flush=True)
    time.sleep(60)
"""


def test_the_lock_is_free_again_afterwards(tmp_path: Path) -> None:
    for what in ("build", "clean"):
        with hold(tmp_path, what):
            note = json.loads((tmp_path / ".torchbuild/lock.json").read_text())
            assert (note["pid"], note["command"]) == (os.getpid(), what)
            assert {"host", "user", "started"} < note.keys()
        assert not (tmp_path / ".torchbuild/lock.json").exists()


def test_the_second_run_names_the_first(tmp_path: Path) -> None:
    with hold(tmp_path, "build"):
        with pytest.raises(TreeBusy, match=rf"`build` of .*process {os.getpid()}, since 20") as caught:
            hold(tmp_path, "clean").__enter__()
        assert "Wait" in caught.value.next_step
        (tmp_path / ".torchbuild/lock.json").write_text("{")
        with pytest.raises(TreeBusy, match="another process"):
            hold(tmp_path, "clean").__enter__()


def test_another_checkout_is_another_lock(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
    with hold(tmp_path / "a", "build"), hold(tmp_path / "b", "build"):
        pass


def test_a_checkout_that_is_not_there_is_reported(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        hold(tmp_path / "nowhere", "build").__enter__()


@pytest.mark.integration
def test_the_lock_goes_with_a_holder_that_is_killed(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(TreeBusy, match=f"process {holder.pid}"):
            hold(tmp_path, "clean").__enter__()
        holder.kill()
    assert (tmp_path / ".torchbuild/lock.json").exists()  # a stale note
    with hold(tmp_path, "clean"):
        pass


def test_a_note_that_cannot_be_written_delays_no_run(tmp_path: Path) -> None:
    """A disk that a build has filled is emptied by `clean`, which writes its note there, too."""
    (tmp_path / ".torchbuild/lock.json/x").mkdir(parents=True)
    with hold(tmp_path, "clean"), pytest.raises(TreeBusy, match="another process"), hold(tmp_path, "build"):
        pass


def test_what_killed_runs_left_of_files_goes(tmp_path: Path) -> None:
    left = tmp_path / ".env_set.sh.99999999.torchbuild-partial"  # no system has such a number
    left.write_text("half", "utf-8")
    with hold(tmp_path, "build"):
        assert not left.exists()
