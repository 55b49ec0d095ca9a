"""Streaming a compile log of 300 MB: wall against cat, and peak memory."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from benchmarks.measure import Command, pairs, show

SIZE = 300 << 20
LINE = (
    "[{n}/9999] Building CXX object caffe2/CMakeFiles/torch_cpu.dir/__/aten/src/ATen/native/Linear.cpp.o\n"
    "/src/aten/src/ATen/native/Linear.cpp:12:34: warning: unused variable 'x' [-Wunused-variable]\n"
)
READER = """
import sys
from pathlib import Path
from torchbuild_tasks.core.first_error import FirstErrorScanner
from torchbuild_tasks.core.progress import ProgressParser
from torchbuild_tasks.effects.log import open_log
from torchbuild_tasks.effects.process import stream
scanner, parser = FirstErrorScanner(), ProgressParser()
def see(lines):
    scanner.feed_lines(lines)
    parser.feed_lines(lines)
with open_log(Path(sys.argv[2]), "bench") as log:
    raise SystemExit(stream(["cat", sys.argv[1]], env=None, cwd=None, log=log, on_lines=see))
"""


def main(runs: int = 5) -> None:
    """Measure the same pipe, log and scanners that a build goes through."""
    with tempfile.TemporaryDirectory() as scratch:
        log = Path(scratch) / "compile.log"
        with log.open("w", encoding="utf-8") as file:
            while file.tell() < SIZE:
                file.write("".join(LINE.format(n=n) for n in range(5000)))
        ours = Command(argv=(sys.executable, "-c", READER, str(log), scratch), cwd=Path(scratch))
        cat = Command(
            argv=("sh", "-c", 'cat "$0" | cat > "$1"', str(log), f"{scratch}/copy"), cwd=Path(scratch)
        )
        costs = pairs(ours, cat, runs)
        show("streaming 300 MB, wall", ours, cat, [a.wall / b.wall for a, b in costs], "<= 1.2")
        show("streaming 300 MB, peak memory", ours, cat, [a.memory for a, _ in costs], "< 60", "MiB")
