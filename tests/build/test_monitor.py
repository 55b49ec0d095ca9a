"""The memory of a build's processes, of real ones; and how much of it is in swap."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.capabilities import POSIX, needs
from torchbuild_tasks.build.jobserver.serve import Processes
from torchbuild_tasks.build.monitor import Sizes, program_name, swap_used

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
    assert working == ()
    assert sizes.peaks == ()


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


def test_swap_can_be_asked_for_anywhere() -> None:
    assert swap_used() >= 0
