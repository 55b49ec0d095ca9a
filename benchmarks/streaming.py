"""Streaming a compile log of 300 MB: wall against cat, and peak memory.

The start of Python and its imports are in the wall, and cat has none, so the same start
before cat is measured against too. A failed build is searched for its error once it is
over: measured apart.
"""

from __future__ import annotations

import functools
import sys
import tempfile
from pathlib import Path

from benchmarks.measure import Command, pairs, show

SIZE = 300 << 20
LINE = (
    "[{n}/9999] Building CXX object caffe2/CMakeFiles/torch_cpu.dir/__/aten/src/ATen/native/Linear.cpp.o\n"
    "/src/aten/src/ATen/native/Linear.cpp:12:34: warning: unused variable 'x' [-Wunused-variable]\n"
)
IMPORTS = """
import sys
from pathlib import Path
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.catalog.failures import FailureBook
from torchbuild_tasks.features.diagnosis.scan import LogScanner
from torchbuild_tasks.ninja.progress import ProgressParser
from torchbuild_tasks.system.log import open_log
from torchbuild_tasks.features.diagnosis.act import Search, stream_searched
"""
READER = f"""{IMPORTS}
see = ProgressParser().feed_block
make = lambda: LogScanner(FailureBook(load_catalog().failure))
argv = ["sh", "-c", 'cat "$0"; exit ' + sys.argv[3], sys.argv[1]]
with open_log(Path(sys.argv[2]), "bench") as log:
    rc, _ = stream_searched(argv, env=None, cwd=None, on_block=see, search=Search(log, make))
raise SystemExit(rc != int(sys.argv[3]))
"""
CAT = 'cat "$0" | cat > "$1/copy"'


def main(runs: int = 5) -> None:
    """Measure the same pipe, log and scanners that a build goes through."""
    with tempfile.TemporaryDirectory() as scratch:
        log, copies = Path(scratch) / "compile.log", Path(scratch) / "copies"
        copies.mkdir()
        with log.open("w", encoding="utf-8") as file:
            while file.tell() < SIZE:
                file.write("".join(LINE.format(n=n) for n in range(5000)))

        command = functools.partial(Command, cwd=Path.cwd(), before=lambda: _empty(copies))
        good, bad = (
            command(argv=(sys.executable, "-c", READER, str(log), str(copies), str(rc))) for rc in (0, 1)
        )
        cat = command(argv=("sh", "-c", CAT, str(log), str(copies)))
        started = f'"$2" -c "$3" && {CAT}'
        late = command(argv=("sh", "-c", started, str(log), str(copies), sys.executable, IMPORTS))
        for title, ours, other, goal in (
            ("streaming 300 MB", good, cat, "<= 1.2"),
            ("streaming 300 MB, both with Python's start", good, late, "<= 1.2"),
            ("streaming 300 MB of a failed build and searching it", bad, cat, "none"),
        ):
            costs = pairs(ours, other, runs)
            show(f"{title}, wall", ours, other, [a.wall / b.wall for a, b in costs], goal)
            show(f"{title}, peak memory", ours, other, [a.memory for a, _ in costs], "< 60", "MiB")


def _empty(folder: Path) -> None:
    """Both write a new file: to cut an old one to nothing takes time too."""
    for path in folder.iterdir():
        path.unlink()
