"""The memory of a build's processes, of real ones; and how much of it is in swap."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from tests.support.capabilities import POSIX, needs
from tests.support.for_each import each_case
from torchbuild_tasks.build.hints import Advice
from torchbuild_tasks.build.jobserver.serve import Processes
from torchbuild_tasks.build.monitor import Monitor, Sizes, program_name, swap_used

pytestmark = pytest.mark.integration
MIB = 1 << 20
# Works until its input ends, after it had 60 MiB and gave them back.
WORKER = "import sys; x = bytearray(60 << 20); del x; print(flush=True); sys.stdin.read()"


@pytest.fixture
def worker() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout and process.stdin
    with process:
        process.stdout.readline()
        yield process
        process.stdin.close()


def python_or_nothing(name: str) -> str:
    return "Python" if name.lower().startswith("python") else ""


def test_a_process_is_known_by_its_program(worker: subprocess.Popen[bytes]) -> None:
    sizes = Sizes(python_or_nothing)
    assert sizes.look() == ("Python",)
    sizes.look()
    (peak,) = sizes.peaks
    assert (peak.kind, peak.count) == ("Python", 1)
    assert MIB < peak.bytes < 200 * MIB


@needs(POSIX, "VmHWM in /proc")
def test_the_most_that_a_process_ever_had(worker: subprocess.Popen[bytes]) -> None:
    sizes = Sizes(python_or_nothing)
    sizes.look()
    assert sizes.peaks[0].bytes > 60 * MIB


@needs(POSIX, "CPU time that stands still while a process waits (in wine it does not)")
def test_one_that_does_nothing_does_not_work(
    worker: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes, now = Sizes(lambda name: ""), time.monotonic()
    assert sizes.look() == ("",)
    working: tuple[str, ...] = ("",)
    for later in range(10, 300, 10):  # what it did at its start may be counted a little late
        monkeypatch.setattr(time, "monotonic", lambda later=later: now + later)
        if not (working := sizes.look()):
            break
        time.sleep(0.02)  # until it has come to its read
    assert working == ()
    assert sizes.peaks == ()


@needs(POSIX, "states of processes in /proc")
@pytest.mark.parametrize(("state", "working"), [(b"R", ("",)), (b"D", ("",)), (b"S", ())])
def test_one_that_waits_for_a_core_or_the_disk_works(
    state: bytes, working: tuple[str, ...], worker: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    from torchbuild_tasks.build.jobserver import posix

    fields = posix._stat(worker.pid)
    assert fields is not None
    monkeypatch.setattr(posix, "_stat", lambda pid: [state, *fields[1:]])
    sizes, now = Sizes(lambda name: ""), time.monotonic()
    sizes.look()
    monkeypatch.setattr(time, "monotonic", lambda: now + 300)
    assert sizes.look() == working


class FakeReporter:
    """The reporter and the pace that a monitor asks; an hour is left."""

    spread = None

    def __init__(self) -> None:
        self.notes = list[str]()

    def note(self, text: str) -> None:
        self.notes.append(text)

    def left(self, *_: object) -> None:
        """Show nothing."""

    def seconds_left(self) -> float:
        return 3600.0


class Scripted:
    """A build in which one program works."""

    def look(self) -> tuple[str, ...]:
        return ("C++",)


@each_case(("times", "hints"), [((20, 40, 60, 80), 1), ((20, 40, 300, 320), 0)])
def test_a_build_that_was_stopped_meanwhile_did_not_wait_for_one_program(
    times: tuple[int, ...], hints: int
) -> None:
    told = FakeReporter()
    monitor = Monitor(cast(Any, told), cast(Any, Scripted()), Advice(jobs=2), cast(Any, told), str)
    began = time.monotonic()
    for later in times:
        monitor._look_at(began + later)
    assert len(told.notes) == hints


def is_kthreadd(comm: Path) -> bool:
    return comm.exists() and comm.read_text("ascii").strip() == "kthreadd"


@needs(is_kthreadd(Path("/proc/2/comm")), "threads of the kernel in /proc")
def test_what_has_no_memory_any_more_is_not_taken_for_small() -> None:
    """A process on its way out looks as the kernel's own threads do: it has no memory, and never had."""
    sizes = Sizes(lambda name: "any", Processes(lambda: (2,)))
    assert sizes.look() == () and sizes.peaks == ()


def test_a_process_that_is_gone_has_no_name() -> None:
    assert program_name(2**22 + 1) == ""


@needs(Path("/proc/meminfo").exists(), "/proc/meminfo")
def test_swap_is_what_the_kernel_says() -> None:
    info = dict(line.split(":") for line in Path("/proc/meminfo").read_text("ascii").splitlines())
    wanted = (int(info["SwapTotal"].split()[0]) - int(info["SwapFree"].split()[0])) * 1024
    assert abs(swap_used() - wanted) < 64 * MIB


def test_swap_can_be_read_anywhere() -> None:
    assert swap_used() >= 0
