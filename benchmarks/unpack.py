"""Unpacking a 7z archive of 300 MB with py7zr, against an installed 7-Zip.

What stands in it is like what helpers hold: libraries of which half is noise, headers of
words. Ours includes the start of Python, judging every name, the mark and the rename.
"""

from __future__ import annotations

import functools
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.measure import Command, pairs, show

LIBRARIES = 50
HEADERS = 600
OURS = """
import sys
from pathlib import Path
from torchbuild_tasks.system.archive.unpack import unpack
archive, folder = sys.argv[1:]
unpack(Path(archive), "7z", Path(folder), tell=lambda *now: None, name="bench")
"""


def main(runs: int = 5) -> None:
    """Measure both on the same archive."""
    program = shutil.which("7zz") or shutil.which("7z")
    if program is None:
        print("unpack: no 7-Zip here to measure against")
        return
    with tempfile.TemporaryDirectory() as scratch:
        archive, out = Path(scratch) / "helper.7z", Path(scratch) / "out"
        size = _write(Path(scratch) / "tree")
        subprocess.run(
            [program, "a", str(archive), "."], cwd=Path(scratch) / "tree", check=True, capture_output=True
        )
        packed = archive.stat().st_size
        print(f"{LIBRARIES + HEADERS} files, {size >> 20} MiB, packed {packed >> 20} MiB", flush=True)
        command = functools.partial(Command, cwd=Path.cwd(), before=lambda: _remove(out))
        alone = command(argv=(program, "x", "-y", "-bd", f"-o{out}", str(archive)))
        ours = command(argv=(sys.executable, "-c", OURS, str(archive), str(out)))
        costs = pairs(ours, alone, runs)
        show("unpack with py7zr, wall", ours, alone, [a.wall / b.wall for a, b in costs], "none")
        show("unpack with py7zr, CPU", ours, alone, [a.cpu / b.cpu for a, b in costs], "none")
        show("unpack with py7zr, peak memory", ours, alone, [a.memory for a, _ in costs], "none", "MiB")
        show("7-Zip alone, peak memory", alone, ours, [b.memory for _, b in costs], "none", "MiB")


def _write(tree: Path) -> int:
    """The tree to pack; returns its bytes."""
    chance = random.Random(0)
    words = [bytes(chance.choices(range(97, 123), k=chance.randint(3, 9))) for _ in range(2000)]
    for number in range(LIBRARIES):
        noise = chance.randbytes(3 << 20)
        text = b" ".join(chance.choices(words, k=450_000))
        _put(tree / "lib" / f"lib{number}.lib", noise + text)
    for number in range(HEADERS):
        _put(tree / "include" / f"d{number % 20}" / f"h{number}.h", b"\n".join(chance.choices(words, k=2000)))
    return sum(path.stat().st_size for path in tree.rglob("*") if path.is_file())


def _put(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def _remove(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)
