"""The machine's history of step times on disk, and the log that Ninja writes while it works.

The history makes estimates better and nothing else: what cannot be read counts as not there, and what
cannot be written is said in a line.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from pathlib import Path
from typing import Final, TypeVar

from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.model.facts import HISTORY_SCHEMA, PEAKS, History, PastPeaks
from torchbuild_tasks.system.files import write_atomic
from torchbuild_tasks.values import from_json, to_json

HISTORY: Final = "history"
NINJA_LOG: Final = ".ninja_log"
_OLD: Final = ("jobs", "after")  # keys of 0.1: how many steps ran at once, and the chains of steps
T = TypeVar("T", History, PastPeaks)


def history_file(store: Path, source: Path, compiler: str) -> Path:
    """Where the history of one checkout with one compiler is kept, below the store."""
    mark = hashlib.sha256(f"{source}\n{compiler}".encode(errors="surrogateescape")).hexdigest()[:16]
    return store / HISTORY / f"{mark}.json"


def read_history(path: Path, source: Path, compiler: str) -> History:
    """The history in this file; an empty one when there is none, or none that can be read."""
    found = _read_value(History, path)
    return found or History(source=str(source), compiler=compiler)


def write_history(path: Path, history: History) -> str:
    """Write it; "" or why it could not be written, in a line."""
    return _write_value(path, history, "The step times are")


def read_peaks(store: Path) -> PastPeaks:
    """What builds on this machine took; nothing where that cannot be read."""
    return _read_value(PastPeaks, store / PEAKS) or PastPeaks()


def write_peaks(store: Path, peaks: PastPeaks) -> str:
    """Write it; "" or why it could not be written, in a line."""
    return _write_value(store / PEAKS, peaks, "The memory that was taken is")


def _read_value(kind: type[T], path: Path) -> T | None:
    with contextlib.suppress(OSError, ValueError, UsageError):
        data = json.loads(path.read_text("utf-8"))
        if isinstance(data, dict):
            data = {name: each for name, each in data.items() if name not in _OLD}
        found = from_json(kind, data)
        if found.schema == HISTORY_SCHEMA:
            return found
    return None


def _write_value(path: Path, value: History | PastPeaks, what: str) -> str:
    text = json.dumps(to_json(value), separators=(",", ":"))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, text.encode("utf-8", "backslashreplace"), error=UsageError)
    except OSError as problem:
        return f"{what} not remembered: {path.parent}: {problem.strerror or problem}"
    except UsageError as problem:
        return f"{what} not remembered: {problem.what}"
    return ""


class Follower:
    """Reads what Ninja appends to its log while it works.

    What the log held before is not told again, also when Ninja rewrites it: at its start it makes a
    long log short.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        before = _read(path, 0)
        *lines, self._rest = before.split(b"\n")
        self._old = frozenset(lines)
        self._at = len(before)

    @property
    def head(self) -> str:
        """The log's first line, which names its version; "" while there is no log."""
        with contextlib.suppress(OSError), self._path.open("rb") as file:
            return file.readline(80).decode(errors="replace").strip()
        return ""

    def new(self) -> str:
        """The whole lines that came since it was asked last."""
        size = _size(self._path)
        if size == self._at:
            return ""
        if size < self._at:  # rewritten, or a new log
            self._at, self._rest = 0, b""
        data = _read(self._path, self._at)
        self._at += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        new = [line for line in lines if line not in self._old]
        return "".join(f"{line.decode(errors='replace')}\n" for line in new)


def _size(path: Path) -> int:
    with contextlib.suppress(OSError):
        return path.stat().st_size
    return 0


def _read(path: Path, start: int) -> bytes:
    with contextlib.suppress(OSError), path.open("rb") as file:
        file.seek(start)
        return file.read()
    return b""
