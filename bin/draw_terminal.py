"""Draw docs/img/build.svg: what a terminal shows of a build of the sample.

python bin/draw_terminal.py     builds a copy of samples/minitorch, so it needs a C++ compiler; POSIX only
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs/img/build.svg"
COLUMNS = 100
LINES = 34  # of the build's output that are shown


def main() -> None:
    """Build a copy of the sample under a terminal, and draw what was printed."""
    with tempfile.TemporaryDirectory() as folder:
        checkout = Path(folder) / "pytorch"
        shutil.copytree(ROOT / "samples/minitorch", checkout, ignore=shutil.ignore_patterns(".*", "build"))
        # The path is replaced by a shorter one.
        columns = COLUMNS + len(str(checkout)) - len("~/pytorch")
        shown = run_in_terminal(("build",), checkout, columns)
        text = shown.replace(str(checkout), "~/pytorch")
        for python in (sys.executable, f"{sys.base_prefix}/bin/python3"):
            text = text.replace(python, "python3")
    PICTURE.write_text(draw(f"$ torchbuild build\n{text}"), "utf-8")


def run_in_terminal(words: tuple[str, ...], checkout: Path, columns: int) -> str:
    """Return what a verb prints on a terminal, with colours and without the live line.

    Raises:
        CalledProcessError: it ended with another exit code than 0.
    """
    screen, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    # CI: plain lines instead of a live one, which a picture cannot show.
    environ = {**os.environ, "CI": "1", "FORCE_COLOR": "1", "PYTHONPATH": str(ROOT), "TERM": "xterm-256color"}
    environ.pop("COLUMNS", None)
    command = [sys.executable, "-m", "torchbuild_tasks", *words]
    with subprocess.Popen(command, cwd=checkout, env=environ, stdout=terminal, stderr=terminal) as process:
        os.close(terminal)
        printed = b""
        while True:
            try:
                block = os.read(screen, 65536)
            except OSError:  # EIO: the other side has ended
                break
            if not block:
                break
            printed += block
    os.close(screen)
    if process.returncode:
        sys.stderr.write(printed.decode("utf-8", "replace"))
        raise subprocess.CalledProcessError(process.returncode, command)
    return printed.decode("utf-8").replace("\r\n", "\n")


def draw(text: str) -> str:
    """Return the last lines of a text as an SVG."""
    lines = text.splitlines()
    if len(lines) > LINES:
        lines = [lines[0], "   …", *lines[len(lines) - LINES + 2 :]]
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        shown = Text.from_ansi("\n".join(lines))
        console = Console(
            record=True, width=COLUMNS, file=nowhere, force_terminal=True, color_system="standard"
        )
        console.print(shown, no_wrap=True, overflow="ellipsis")
        picture = console.export_svg(title="torchbuild build")
    # Fonts from another server would be asked for by whoever looks at the page.
    return re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.DOTALL)


if __name__ == "__main__":
    main()
