"""The beginning and the end of a log of any length."""

from __future__ import annotations

from pathlib import Path
from typing import Final

HEAD: Final = 64 << 10  # bytes
TAIL: Final = 1 << 20
LONGEST: Final = 16 << 10  # characters of a line; what is longer is no line of a log that anybody reads


def log_ends(path: Path) -> tuple[str, str]:
    """The first and the last lines; the last are empty where the first are all there is.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        head = file.read(HEAD)
        size = file.seek(0, 2)
        if size <= HEAD:
            return _text(head), ""
        start = max(HEAD, size - TAIL)
        file.seek(start)
        tail = file.read(TAIL)
    # A line that is cut could hold half of something that is only known whole.
    first = head[: head.rfind(b"\n") + 1]
    rest = tail if start == HEAD else tail[tail.find(b"\n") + 1 :]
    return _text(first), _text(head[len(first) :] + rest if start == HEAD else rest)


def _text(data: bytes) -> str:
    """UTF-8, or UTF-16 as PowerShell writes it; every line at most `LONGEST` characters."""
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8"
    text = data.replace(b"\0", b"").decode("utf-8", "replace") if encoding == "utf-8" else ""
    text = text or data.decode(encoding, "replace")
    return "".join(line[:LONGEST].rstrip("\n") + "\n" for line in text.splitlines())
