"""Ctrl-C, SIGTERM and SIGKILL against real process trees and a real Ninja."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil  # type: ignore[import-untyped, unused-ignore]
import pytest

from tests.support.capabilities import skip_without
from tests.support.waiting import until

pytestmark = pytest.mark.integration

# Our tool, as small as it can be: says its exit code, and that the record could be written.
# No process can send another one Ctrl-C on Windows without a console; so it sends that itself.
DRIVER = """
import _thread, signal, sys, threading, time
from torchbuild_tasks.system.process import stream
from torchbuild_tasks.system.signals import interruptible
from torchbuild_tasks.errors import Interrupted
from pathlib import Path
folder = Path(sys.argv[1])

def keys():
    for name in sys.stdin:
        _thread.interrupt_main(getattr(signal, name.strip()))

if sys.platform == "win32":
    threading.Thread(target=keys, daemon=True).start()
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
# python -> python -> one that ignores everything, and one that does in a session of its own
TREE = """
import os, pathlib, signal, subprocess, sys, time
if len(sys.argv) == 1:
    subprocess.Popen([sys.executable, __file__, "again"])
    time.sleep(100)
apart = {"creationflags": 0x208} if os.name == "nt" else {"start_new_session": True}
stubborn = '''import os, signal, sys, time
for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK"):
    if hasattr(signal, name):
        signal.signal(getattr(signal, name), signal.SIG_IGN)
open(sys.argv[1], "w").write(str(os.getpid()))
time.sleep(100)
'''
for name, own in (("one", {}), ("two", apart)):
    subprocess.Popen([sys.executable, "-c", stubborn, name], **own)
time.sleep(100)
"""


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Start the driver on a command; everything is killed in the end, whatever the test found."""
    (tmp_path / "work").mkdir()
    started = list[subprocess.Popen[bytes]]()

    def begin(*argv: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", DRIVER, str(tmp_path / "work"), *argv]
        started.append(subprocess.Popen(command, cwd=Path(__file__).parents[2], stdin=subprocess.PIPE))
        return started[-1]

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def send(driver: subprocess.Popen[bytes], name: str) -> None:
    """A signal, or what the console would do."""
    if sys.platform != "win32":
        driver.send_signal(getattr(signal, name))
        return
    assert driver.stdin is not None
    driver.stdin.write(f"{name}\n".encode())
    driver.stdin.flush()


def descendants(pid: int) -> list[psutil.Process]:
    """By what every process says of its parent: Process.children does not work on every system.

    A process that is older than its parent is a stranger whose parent's pid was used again.
    """
    everybody = list(psutil.process_iter(["ppid", "create_time"]))
    found, todo = list[psutil.Process](), [psutil.Process(pid)]
    while todo:
        parent = todo.pop()
        born, pid = parent.create_time(), parent.pid
        todo += [p for p in everybody if p.info["ppid"] == pid != p.pid and p.info["create_time"] >= born]
        found += [parent]
    return found[1:]


def alive(processes: list[psutil.Process]) -> list[psutil.Process]:
    def runs(process: psutil.Process) -> bool:
        try:
            return bool(process.status() != psutil.STATUS_ZOMBIE)
        except psutil.NoSuchProcess:
            return False

    return [process for process in processes if runs(process)]


SEQUENCES = [
    *(["SIGINT"], ["SIGTERM"], ["SIGBREAK"]),
    *(
        pytest.param(each, marks=pytest.mark.slow)
        for each in (["SIGHUP"], ["SIGINT"] * 5, ["SIGINT", "SIGTERM"])
    ),
]


@pytest.mark.parametrize("signals", SEQUENCES, ids="+".join)
def test_a_process_tree_ends_within_five_seconds(
    tmp_path: Path, start: Callable[..., subprocess.Popen[bytes]], signals: list[str]
) -> None:
    if not all(hasattr(signal, name) for name in signals):
        pytest.skip(f"needs {signals[0]}")
    work = tmp_path / "work"
    (work / "tree.py").write_text(TREE)
    driver = start(sys.executable, "tree.py")
    until(lambda: (work / "one").exists() and (work / "two").exists() and (work / "two").read_text())
    tree = descendants(driver.pid)
    assert len(tree) >= 4
    began = time.monotonic()
    for name in signals:
        send(driver, name)
        time.sleep(0.05)
    assert driver.wait(10) == 130
    assert time.monotonic() - began < 5 + 0.3 + 0.5  # and the record, and until Windows notices
    assert not alive(tree)
    assert (work / "record").read_text() == "interrupted"


# Writes its output in six parts, and its name into `runs` when it is done. Not in Python
# where there is sh: Python ends with other codes when a signal comes while it starts.
SLOW_SH = ': > "$1"; for i in 1 2 3 4 5 6; do echo part >> "$1"; sleep 0.05; done; echo "$1" >> runs'
SLOW_PY = """
import sys, time
with open(sys.argv[1], "w") as out:
    for part in range(6):
        out.write("part\\n")
        out.flush()
        time.sleep(0.05)
with open("runs", "a") as runs:
    runs.write(sys.argv[1] + "\\n")
"""
SLOW = f'"{Path(sys.executable).as_posix()}" slow.py' if sys.platform == "win32" else "sh slow.sh"
NAMES = [f"a{index}" for index in range(1, 9)]
NINJA = f"""
rule slow
  command = {SLOW} $out
  description = Building $out
""" + "".join(f"build {name}: slow\n" for name in NAMES)
CMAKE = f"""
cmake_minimum_required(VERSION 3.15)
project(slow LANGUAGES NONE)
foreach(name {" ".join(NAMES)})
  add_custom_command(OUTPUT ${{name}} COMMAND {SLOW} ${{name}}
                     WORKING_DIRECTORY ${{CMAKE_BINARY_DIR}})
  list(APPEND all ${{name}})
endforeach()
add_custom_target(slow ALL DEPENDS ${{all}})
"""
BUILDS = {"ninja": ["ninja", "-j2"], "cmake": ["cmake", "--build", ".", "--", "-j2"]}


@pytest.fixture
def ninja_tree(tmp_path: Path) -> Path:
    if shutil.which("ninja") is None:
        skip_without("ninja")
    work = tmp_path / "work"
    work.mkdir(exist_ok=True)
    (work / "slow.py").write_text(SLOW_PY)
    (work / "slow.sh").write_text(SLOW_SH)
    (work / "build.ninja").write_text(NINJA)
    return work


def make_with_cmake(work: Path) -> None:
    if shutil.which("cmake") is None:
        skip_without("cmake")
    (work / "CMakeLists.txt").write_text(CMAKE)
    subprocess.run(["cmake", "-G", "Ninja", "."], cwd=work, check=True, stdout=subprocess.DEVNULL)


@pytest.mark.parametrize("number", ["SIGINT", pytest.param("SIGTERM", marks=pytest.mark.slow)])
@pytest.mark.parametrize("tool", ["ninja", "cmake"])
def test_an_interrupted_build_goes_on_where_it_stopped(
    start: Callable[..., subprocess.Popen[bytes]], ninja_tree: Path, tool: str, number: str
) -> None:
    if tool == "cmake":
        make_with_cmake(ninja_tree)
    outputs = [ninja_tree / name for name in NAMES]
    driver = start(*BUILDS[tool])
    until(lambda: sum(path.exists() for path in outputs) > 2)
    tree = descendants(driver.pid)
    send(driver, number)
    assert driver.wait(10) == 130
    assert not alive(tree)
    present = [path for path in outputs if path.exists()]
    assert 2 <= len(present) < 8
    # Ninja removes parts when it can be asked, on Windows through a console; CMake's commands
    # run in a shell of their own, which may be gone before the command is.
    if sys.platform != "win32" and tool == "ninja":
        assert all(path.read_text().count("part") == 6 for path in present)
    driver = start(*BUILDS[tool])
    assert driver.wait(60) == 0
    assert all(path.read_text().count("part") == 6 for path in outputs)
    runs = (ninja_tree / "runs").read_text().split()
    assert set(runs) == set(NAMES)
    assert len(runs) <= len(NAMES) + 2  # two were under way, and may have been done just then


def test_a_killed_driver_does_not_leave_ninja_running_on(
    start: Callable[..., subprocess.Popen[bytes]], ninja_tree: Path
) -> None:
    """SIGKILL cannot be handled: Ninja ends at its next line of output, without a reader, or with its job."""
    driver = start("ninja", "-j1")
    until((ninja_tree / "a2").exists)
    tree = descendants(driver.pid)
    driver.kill()
    until(lambda: not alive(tree), seconds=5)
    time.sleep(0.6)
    assert len((ninja_tree / "runs").read_text().split()) < 5
