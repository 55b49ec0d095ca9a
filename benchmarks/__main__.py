"""`nox -s bench`, or `nox -s bench -- startup` for one of them; `--into docs/speed.md` for the page."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from benchmarks import (
    archs,
    caches,
    detection,
    diagnosis,
    distribution,
    download,
    eta,
    jobserver,
    linkers,
    loop,
    markdown,
    preflight,
    pythons,
    sample,
    startup,
    streaming,
    unpack,
)
from benchmarks.measure import FIGURES

ALL = {
    "startup": startup.main,
    "streaming": streaming.main,
    "sample": sample.main,
    "loop": loop.main,
    "pythons": pythons.main,
    "download": download.main,
    "unpack": unpack.main,
    "archs": archs.main,
    "preflight": preflight.main,
    "detection": detection.main,
    "diagnosis": diagnosis.main,
    "caches": caches.main,
    "distribution": distribution.main,
    "eta": eta.main,
    "jobserver": jobserver.main,
    "linkers": linkers.main,
}


def main(words: list[str]) -> int:
    """Run topics, all unless some are named; one that cannot be measured does not stop the others."""
    parser = argparse.ArgumentParser(prog="nox -s bench --", description=__doc__)
    parser.add_argument("topic", nargs="*", metavar="TOPIC", help=f"of {', '.join(ALL)} (default: all)")
    parser.add_argument("--rounds", type=int, metavar="N", help="of each topic (default: its own; not eta)")
    parser.add_argument("--markdown", action="store_true", help="print tables for docs/speed.md at the end")
    parser.add_argument(
        "--into", type=Path, metavar="FILE", help="write the tables into docs/speed.md itself"
    )
    asked = parser.parse_args(words)
    if unknown := [name for name in asked.topic if name not in ALL]:
        parser.error(f"there is no {unknown[0]}; there are: {', '.join(ALL)}")
    os.environ.pop("VIRTUAL_ENV", None)  # not the environment of what is measured
    print(f"{markdown.machine()}, load {markdown.load():.1f}", flush=True)
    tables, failed = {}, 0
    for name in asked.topic or ALL:
        FIGURES.clear()
        before = markdown.load()
        try:
            ALL[name](*filter(None, [asked.rounds]))
        except (SystemExit, OSError, subprocess.CalledProcessError) as error:
            print(f"{name}: not measured to its end: {error}", flush=True)
            failed += 1
        if FIGURES:
            loads = f"load {before:.1f} before, {markdown.load():.1f} after."
            tables[name] = markdown.table(FIGURES, f"{markdown.machine()}; {loads}")
    if asked.markdown:
        print("".join(f"\n## {name}\n\n{lines}\n" for name, lines in tables.items()), end="")
    if asked.into:
        text = asked.into.read_text("utf-8")
        for name, lines in tables.items():
            text = markdown.put(text, name, lines)
        asked.into.write_text(text, "utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
