"""Diagnosing a log of 300 MB: wall against cat and against grep for one of many words, and peak memory.

The log is a build's that failed at its end; a second one ends well.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from benchmarks.measure import Command, pairs, show
from benchmarks.streaming import LINE, SIZE
from torchbuild_tasks.features.diagnosis.places import SIGNS

END = """[9999/9999] Building CXX object x.cpp.o
FAILED: x.cpp.o
c++ -c x.cpp -o x.cpp.o
c++: fatal error: Killed signal terminated program cc1plus
ninja: build stopped: subcommand failed.
"""
OURS = "from torchbuild_tasks.fronts.console import main; import sys; sys.argv[0] = 'torchbuild'; main()"


def main(runs: int = 3) -> None:
    """Measure the verb as it is called, start and facts included."""
    with tempfile.TemporaryDirectory() as scratch:
        words, folder = Path(scratch) / "words", Path.cwd()
        words.write_text("\n".join(SIGNS), "utf-8")
        for title, end in (("that failed", END), ("that ended well", "")):
            log = Path(scratch) / "compile.log"
            with log.open("w", encoding="utf-8") as file:
                while file.tell() < SIZE:
                    file.write("".join(LINE.format(n=n) for n in range(5000)))
                file.write(end)
            ours = Command(argv=(sys.executable, "-c", OURS, "diagnose", str(log), "--json"), cwd=folder)
            cat = Command(argv=("sh", "-c", 'cat "$0" | cat > /dev/null', str(log)), cwd=folder)
            find = 'LC_ALL=C grep -c -F -f "$1" "$0" || true'
            grep = Command(argv=("sh", "-c", find, str(log), str(words)), cwd=folder)
            for other, name in ((cat, "cat"), (grep, "grep for the same words")):
                costs = pairs(ours, other, runs)
                values = [a.wall / b.wall for a, b in costs]
                show(f"diagnose a log of 300 MB {title}, wall against {name}", ours, other, values, "none")
                memory = [a.memory for a, _ in costs]
                show("    peak memory", ours, other, memory, "flat", "MiB")
