"""Ctrl-C, SIGTERM and SIGKILL against real process trees and a real Ninja."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil  # type: ignore[import-untyped, unused-ignore]
import pytest

pytestmark = pytest.mark.integration

# Our tool, as small as it can be: says its exit code, and that the record could be written.
DRIVER = """
import sys, time
from torchbuild_tasks.effects.process import stream
from torchbuild_tasks.effects.signals import interruptible
from torchbuild_tasks.errors import Interrupted
from pathlib import Path
folder = Path(sys.argv[1])
try:
    with interruptible(), (folder / "log").open("wb") as log:
        try:
            rc = stream(sys.argv[2:], env=None, cwd=folder, log=log, on_block=lambda block: None)
        except Interrupted:
            time.sleep(0.3)
            (folder / "record").write_text("interrupted")
            raise
    sys.exit(rc)
except Interrupted as error:
    sys.exit(error.exit_code)
"""
# sh -> python -> one that ignores everything, and one that does in a session of its own
TREE = """
import pathlib, signal, subprocess, sys, time
stubborn = '''import os, signal, sys, time
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
open(sys.argv[1], "w").write(str(os.getpid()))
time.sleep(100)
'''
for name, own in (("one", False), ("two", True)):
    subprocess.Popen([sys.executable, "-c", stubborn, name], start_new_session=own)
time.sleep(100)
"""


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Start the driver on a command; everything is killed in the end, whatever the test found."""
    (tmp_path / "work").mkdir()
    started = list[subprocess.Popen[bytes]]()

    def begin(*argv: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", DRIVER, str(tmp_path / "work"), *argv]
        started.append(subprocess.Popen(command, cwd=Path(__file__).parents[2]))
        return started[-1]

    yield begin
    for process in started:
        process.kill()
        process.wait()


def wait_for(what: Callable[[], object], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def descendants(pid: int) -> list[psutil.Process]:
    return list(psutil.Process(pid).children(recursive=True))


def alive(processes: list[psutil.Process]) -> list[psutil.Process]:
    def runs(process: psutil.Process) -> bool:
        try:
            return bool(process.status() != psutil.STATUS_ZOMBIE)
        except psutil.NoSuchProcess:
            return False

    return [process for process in processes if runs(process)]


@pytest.mark.parametrize(
    "signals", [["SIGINT"], ["SIGTERM"], ["SIGHUP"], ["SIGINT"] * 5, ["SIGINT", "SIGTERM"]]
)
def test_a_whole_tree_ends_within_five_seconds(
    tmp_path: Path, start: Callable[..., subprocess.Popen[bytes]], signals: list[str]
) -> None:
    work = tmp_path / "work"
    (work / "tree.py").write_text(TREE)
    driver = start("sh", "-c", f"{sys.executable} tree.py; echo on; sleep 100")
    wait_for(lambda: (work / "one").exists() and (work / "two").exists() and (work / "two").read_text())
    tree = descendants(driver.pid)
    assert len(tree) >= 4
    began = time.monotonic()
    for name in signals:
        driver.send_signal(getattr(signal, name))
        time.sleep(0.05)
    assert driver.wait(10) == 130
    assert time.monotonic() - began < 5 + 0.3  # and the record
    assert not alive(tree)
    assert (work / "record").read_text() == "interrupted"


NINJA = """
rule slow
  command = sh -c 'for i in 1 2 3 4 5 6; do echo part $$i >> $out; sleep 0.05; done; echo $out >> runs'
  description = Building $out
build a1: slow
build a2: slow
build a3: slow
build a4: slow
build a5: slow
build a6: slow
build a7: slow
build a8: slow
"""


@pytest.fixture
def ninja_tree(tmp_path: Path) -> Path:
    if shutil.which("ninja") is None:
        pytest.skip("no ninja on PATH")
    work = tmp_path / "work"
    work.mkdir(exist_ok=True)
    (work / "build.ninja").write_text(NINJA)
    return work


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_ninja_leaves_no_part_and_goes_on(
    start: Callable[..., subprocess.Popen[bytes]], ninja_tree: Path, number: int
) -> None:
    outputs = [ninja_tree / f"a{index}" for index in range(1, 9)]
    driver = start("ninja", "-j2")
    wait_for(lambda: outputs[2].exists())
    driver.send_signal(number)
    assert driver.wait(10) == 130
    whole = [path.name for path in outputs if path.exists()]
    assert 2 <= len(whole) < 8
    assert all((ninja_tree / name).read_text().count("part") == 6 for name in whole)
    driver = start("ninja", "-j2")
    assert driver.wait(30) == 0
    assert all(path.read_text().count("part") == 6 for path in outputs)
    assert sorted((ninja_tree / "runs").read_text().split()) == sorted(path.name for path in outputs)


def test_a_killed_driver_does_not_leave_ninja_running_on(
    start: Callable[..., subprocess.Popen[bytes]], ninja_tree: Path
) -> None:
    """Nobody can catch SIGKILL: Ninja ends at its next line, when nobody reads it any more."""
    driver = start("ninja", "-j1")
    wait_for((ninja_tree / "a2").exists)
    tree = descendants(driver.pid)
    os.kill(driver.pid, signal.SIGKILL)
    wait_for(lambda: not alive(tree), 5)
    time.sleep(0.6)
    assert len((ninja_tree / "runs").read_text().split()) < 5
