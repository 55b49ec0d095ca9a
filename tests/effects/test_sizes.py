"""The memory of a build's processes, of real ones; and how much of it is in swap."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.capabilities import needs
from torchbuild_tasks.effects.sizes import Sizes
from torchbuild_tasks.effects.swap import swap_used

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


def test_the_most_that_a_process_ever_had(worker: subprocess.Popen[bytes]) -> None:
    sizes = Sizes(lambda name: "Python" if name.lower().startswith("python") else "")
    assert sizes.look() == ("Python",)
    sizes.look()
    (peak,) = sizes.peaks
    assert (peak.kind, peak.count) == ("Python", 1)
    assert 60 * MIB < peak.bytes < 200 * MIB


def test_one_that_does_nothing_does_not_work(
    worker: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = Sizes(lambda name: "")
    assert sizes.look() == ("",)
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 10)
    assert sizes.look() == ()
    assert sizes.peaks == ()


@needs(Path("/proc/meminfo").exists(), "/proc/meminfo")
def test_swap_is_what_the_kernel_says() -> None:
    info = dict(line.split(":") for line in Path("/proc/meminfo").read_text("ascii").splitlines())
    wanted = (int(info["SwapTotal"].split()[0]) - int(info["SwapFree"].split()[0])) * 1024
    assert abs(swap_used() - wanted) < 64 * MIB


def test_swap_can_be_asked_for_anywhere() -> None:
    assert swap_used() >= 0
