"""Streaming a compile log of 300 MB: wall against cat, and peak memory.

The tool's own start is in the wall; cat has next to none. A failed build is searched for
its error once it is over, so it is measured apart.
"""

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
from torchbuild_tasks.effects.search import stream_searched
scanner, see = FirstErrorScanner(), ProgressParser().feed_block
argv = ["sh", "-c", 'cat "$0"; exit ' + sys.argv[3], sys.argv[1]]
with open_log(Path(sys.argv[2]), "bench") as log:
    rc = stream_searched(argv, env=None, cwd=None, log=log, on_block=see, scanner=scanner)
raise SystemExit(rc != int(sys.argv[3]))
"""


def main(runs: int = 5) -> None:
    """Measure the same pipe, log and scanners that a build goes through."""
    with tempfile.TemporaryDirectory() as scratch:
        log, copies = Path(scratch) / "compile.log", Path(scratch) / "copies"
        copies.mkdir()
        with log.open("w", encoding="utf-8") as file:
            while file.tell() < SIZE:
                file.write("".join(LINE.format(n=n) for n in range(5000)))
        for rc, outcome, goal in ((0, "went well", "<= 1.2"), (1, "failed, searched", "none")):
            ours = Command(
                argv=(sys.executable, "-c", READER, str(log), str(copies), str(rc)),
                cwd=Path.cwd(),
                before=lambda: _empty(copies),
            )
            cat = Command(
                argv=("sh", "-c", 'cat "$0" | cat > "$1"', str(log), f"{copies}/copy"),
                cwd=Path.cwd(),
                before=lambda: _empty(copies),
            )
            costs = pairs(ours, cat, runs)
            title = f"streaming 300 MB of a build that {outcome}"
            show(f"{title}, wall", ours, cat, [a.wall / b.wall for a, b in costs], goal)
            show(f"{title}, CPU", ours, cat, [a.cpu / b.cpu for a, b in costs], "none")
            show(f"{title}, peak memory", ours, cat, [a.memory for a, _ in costs], "< 60", "MiB")


def _empty(folder: Path) -> None:
    """Both write to a new file; to cut an old one to nothing takes time too."""
    for path in folder.iterdir():
        path.unlink()
