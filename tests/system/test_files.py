"""Whole files or none, and the folder that is ours."""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import BinaryIO

import pytest

from tests.support.capabilities import needs, needs_fifo
from tests.support.for_each import each_case
from torchbuild_tasks.errors import EnvFileError, UsageError
from torchbuild_tasks.system import files, left_running, windows_holders
from torchbuild_tasks.system.files import (
    MARKER,
    MARKER_TEXT,
    STATE_DIR,
    WRITING,
    InUse,
    Patience,
    replace,
    state_dir,
    temporary_name,
    unlink,
    write_atomic,
)
from torchbuild_tasks.system.git.cut_off import MARK, mark_change
from torchbuild_tasks.system.left_running import FILE


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty one; tmp_path itself has the test's home."""
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


@needs(sys.platform != "win32", "links without a right of their own")
@pytest.mark.parametrize("private", [False, True])
def test_a_link_that_a_clone_brought_is_not_written_through(folder: Path, private: bool) -> None:
    """In a container numbers of processes are small: a repository can have a link for each."""
    victim = folder / "bashrc"
    victim.write_text("mine", "ascii")
    temporary_name(folder / "env.sh", WRITING).symlink_to(victim)
    (folder / FILE).symlink_to(victim)
    (folder / MARK).symlink_to(victim)
    write_atomic(folder / "env.sh", b"new", error=EnvFileError, private=private)
    with left_running.note_started(folder):
        assert not (folder / FILE).is_symlink()
    with mark_change(folder, folder, folder):
        assert not (folder / MARK).is_symlink()
    assert victim.read_text("ascii") == "mine"
    assert (folder / "env.sh").read_bytes() == b"new"


def test_what_killed_runs_left_of_a_file_goes_with_its_next_write(folder: Path) -> None:
    dead = 99999999  # no system has such a number
    left = folder / f".env.sh.{dead}.{WRITING}"
    others = [folder / f".env.sh.{name}.{WRITING}" for name in (os.getppid(), "mine")]
    others += [folder / f".env.sh.{dead}.partial", folder / f".x.{dead}.{WRITING}"]
    for path in (left, *others):
        path.write_text("half", "utf-8")
    write_atomic(folder / "env.sh", b"new", error=EnvFileError)
    assert sorted(folder.iterdir()) == sorted((*others, folder / "env.sh"))


def test_what_a_killed_run_left_and_that_does_not_go_stops_no_write(folder: Path) -> None:
    """It may be another user's, or open on Windows; a folder has the same effect everywhere."""
    left = folder / f".env.sh.99999999.{WRITING}"
    left.mkdir()
    write_atomic(folder / "env.sh", b"new", error=EnvFileError)
    assert (folder / "env.sh").read_bytes() == b"new" and left.exists()


def test_free_is_counted_on_the_disk_that_is_full(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another one may be mounted at the folder that is written to."""
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=7 if path == folder else 9))
    with pytest.raises(EnvFileError) as caught, files.translate_errors(EnvFileError, folder):
        raise OSError(errno.ENOSPC, "full")
    assert str(caught.value.next_step).startswith("7 bytes are free")


def test_write_atomic_replaces_the_file(folder: Path) -> None:
    path = folder / "env.sh"
    write_atomic(path, b"old and long", error=EnvFileError)
    write_atomic(path, b"new", error=EnvFileError)
    assert path.read_bytes() == b"new"
    assert list(folder.iterdir()) == [path]


@pytest.mark.parametrize(
    ("number", "says"),
    [(errno.ENOSPC, r"^\d+ bytes are free"), (errno.EROFS, "writable"), (errno.EIO, "again")],
)
def test_a_failed_write_changes_nothing_and_says_why(
    folder: Path, monkeypatch: pytest.MonkeyPatch, number: int, says: str
) -> None:
    path = folder / "env.sh"
    path.write_bytes(b"old")

    def fail(partial: Path, mode: int) -> BinaryIO:
        partial.write_bytes(b"n")
        raise OSError(number, "the reason")

    monkeypatch.setattr(files, "create", fail)
    with pytest.raises(EnvFileError, match=r"env\.sh cannot be written: the reason\.") as caught:
        write_atomic(path, b"new", error=EnvFileError)
    assert path.read_bytes() == b"old"
    assert list(folder.iterdir()) == [path]
    assert re.search(says, caught.value.next_step)


@needs_fifo
def test_a_device_or_pipe_is_not_replaced_by_a_file(folder: Path) -> None:
    """The pipe stands for /dev/null, which root would lose for all programs."""
    os.mkfifo(folder / "null")
    with pytest.raises(EnvFileError, match="null cannot be written: it is a device, a pipe or a socket"):
        write_atomic(folder / "null", b"x", error=EnvFileError)
    assert (folder / "null").is_fifo()
    assert list(folder.iterdir()) == [folder / "null"]


@needs(Path("/proc/self/exe").is_symlink(), "/proc")
def test_a_link_of_the_systems_is_not_replaced_by_a_file(folder: Path) -> None:
    """It stands for /dev/stdout, which root would lose."""
    (folder / "new").write_bytes(b"new")
    with pytest.raises(FileExistsError, match="a device, a pipe or a socket"):
        files.replace(folder / "new", Path("/proc/self/exe"))
    assert (folder / "new").exists()


@each_case("path", [Path(), Path("/")])
def test_a_folder_without_a_name_is_reported(path: Path) -> None:
    with pytest.raises(EnvFileError, match="it is a folder"):
        write_atomic(path, b"", error=EnvFileError)


def test_a_missing_folder_is_reported(folder: Path) -> None:
    with pytest.raises(EnvFileError, match="cannot be written") as caught:
        write_atomic(folder / "no" / "env.sh", b"", error=EnvFileError)
    assert isinstance(caught.value.__cause__, FileNotFoundError)


def test_the_state_folder_is_marked_and_unseen_by_git(folder: Path) -> None:
    state = state_dir(folder)
    assert state == folder / STATE_DIR
    assert (state / ".gitignore").read_text() == "*\n"
    assert (state / MARKER).read_text() == MARKER_TEXT
    assert "torchbuild_tasks" in MARKER_TEXT
    assert state_dir(folder) == state


def test_what_is_no_folder_of_ours_is_left_alone(folder: Path) -> None:
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    (folder / STATE_DIR).symlink_to(elsewhere)
    if not (folder / STATE_DIR).is_symlink():
        pytest.skip("needs symbolic links")
    with pytest.raises(UsageError, match="not as a folder"):
        state_dir(folder)
    assert not list(elsewhere.iterdir())


# ---------------------------------------------------------------- files that others hold


class Refusal(PermissionError):
    """As Windows refuses; elsewhere an OSError has no such code."""

    def __init__(self, code: int) -> None:
        super().__init__(errno.EACCES, "Access is denied", "x")
        self.winerror = code


class Held:
    """Refuses some times and then does it."""

    def __init__(self, times: int, code: int) -> None:
        self.times, self.code, self.calls = times, code, 0

    def __call__(self, *paths: Path) -> None:
        self.calls += 1
        if self.calls <= self.times:
            raise Refusal(self.code)


@pytest.fixture
def no_time(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Pauses take no time; they are listed."""
    pauses = list[float]()
    monkeypatch.setattr("time.sleep", pauses.append)
    return pauses


@pytest.mark.parametrize("code", [5, 32, 33])
def test_a_file_in_use_for_a_moment_is_waited_for(
    folder: Path, monkeypatch: pytest.MonkeyPatch, no_time: list[float], code: int
) -> None:
    held = Held(3, code)
    monkeypatch.setattr(Path, "replace", held)
    replace(folder / "a", folder / "b")
    assert held.calls == 4
    assert no_time == sorted(no_time)
    assert len(no_time) == 3


def test_two_seconds_are_for_all_files_together(
    folder: Path, monkeypatch: pytest.MonkeyPatch, no_time: list[float]
) -> None:
    held = Held(10_000, 32)
    monkeypatch.setattr(Path, "unlink", held)
    monkeypatch.setattr(windows_holders, "holders", lambda path: ())
    patience = Patience()
    for name in "abc":
        with pytest.raises(InUse, match="in use by another program"):
            patience.unlink(folder / name)
    assert 2.0 <= sum(no_time) < 2.4
    assert held.calls == len(no_time) + 3


def test_the_program_that_has_a_file_open_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch, no_time: list[float]
) -> None:
    monkeypatch.setattr(Path, "replace", Held(10_000, 5))
    monkeypatch.setattr(windows_holders, "holders", lambda path: ("ninja.exe (process 7)",))
    with pytest.raises(
        EnvFileError, match=r"cannot be written: in use by ninja\.exe \(process 7\)\."
    ) as caught:
        write_atomic(folder / "env.bat", b"", error=EnvFileError)
    assert "Close that program" in caught.value.next_step


def test_denied_access_to_an_unused_file_is_not_called_in_use(
    folder: Path, monkeypatch: pytest.MonkeyPatch, no_time: list[float]
) -> None:
    monkeypatch.setattr(Path, "unlink", Held(10_000, 5))
    monkeypatch.setattr(windows_holders, "holders", lambda path: ())
    with pytest.raises(PermissionError, match="Access is denied") as caught:
        unlink(folder / "a")
    assert not isinstance(caught.value, InUse)


def test_other_errors_are_not_waited_for(folder: Path, no_time: list[float]) -> None:
    with pytest.raises(FileNotFoundError):
        unlink(folder / "a")
    unlink(folder / "a", missing_ok=True)
    with pytest.raises(FileNotFoundError):
        Patience().rmdir(folder / "a")
    assert no_time == []


def test_a_folder_in_the_way_of_a_file_is_not_waited_for(
    folder: Path, monkeypatch: pytest.MonkeyPatch, no_time: list[float]
) -> None:
    (folder / "a").touch()
    (folder / "b").mkdir()
    monkeypatch.setattr(Path, "replace", Held(10_000, 5))  # as Windows does then
    with pytest.raises(IsADirectoryError, match="it is a folder"):
        replace(folder / "a", folder / "b")
    assert no_time == []


def test_a_read_only_target_is_named_at_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch, no_time: list[float]
) -> None:
    monkeypatch.setattr(Path, "replace", Held(10_000, 5))
    monkeypatch.setattr(files, "_is_read_only", lambda path: path.name == "target")
    with pytest.raises(PermissionError, match="marked read-only"):
        replace(folder / "source", folder / "target")
    assert no_time == []


def test_read_only_files_and_folders_of_ours_go(folder: Path) -> None:
    (folder / "pack").write_bytes(b"x")
    (folder / "pack").chmod(stat.S_IREAD)
    unlink(folder / "pack")
    (folder / "sub").mkdir()
    (folder / "sub").chmod(stat.S_IREAD)
    Patience().rmdir(folder / "sub")
    assert list(folder.iterdir()) == []


HOLDER = "import sys; f = open(sys.argv[1]); print('open', flush=True); sys.stdin.read()"


@pytest.fixture
def held(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that has `folder/held` open until its input ends."""
    path = folder / "held"
    path.write_bytes(b"old")
    argv = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            path.rename(folder / "moved")
        except PermissionError:
            yield process
        else:
            pytest.skip("needs a system on which an open file cannot be replaced")
        finally:
            process.kill()


@pytest.mark.integration
def test_a_real_holder_is_waited_for(folder: Path, held: subprocess.Popen[bytes]) -> None:
    threading.Timer(0.5, held.communicate).start()
    write_atomic(folder / "held", b"new", error=EnvFileError)
    assert (folder / "held").read_bytes() == b"new"


@pytest.mark.integration
def test_a_real_program_that_keeps_a_file_open_is_named(folder: Path, held: subprocess.Popen[bytes]) -> None:
    who = f"process {held.pid}"
    if not windows_holders.holders(folder / "held"):
        pytest.skip("needs a Restart Manager")
    with pytest.raises(EnvFileError, match=who):
        write_atomic(folder / "held", b"new", error=EnvFileError)
    with pytest.raises(InUse, match=who):
        unlink(folder / "held")
    assert (folder / "held").read_bytes() == b"old"
    assert [path.name for path in folder.iterdir()] == ["held"]
    held.communicate()
    unlink(folder / "held")


def test_a_store_that_cannot_be_made_is_named_with_its_variable(folder: Path) -> None:
    files.make_store(folder / "new" / "deeper", error=EnvFileError)
    (folder / "file").touch()
    with pytest.raises(EnvFileError, match=r"downloads are kept, cannot be made") as caught:
        files.make_store(folder / "file" / "store", error=EnvFileError)
    assert "TORCHBUILD_CACHE=PATH" in str(caught.value.next_step)
