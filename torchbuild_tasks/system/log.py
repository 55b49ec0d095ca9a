"""Write logs unbuffered, rotate the last few, and read their beginning and end."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Final, Self

from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.system.files import replace, translate_errors
from torchbuild_tasks.text.visible import visible

MOST_LOGS: Final = 5
HEAD: Final = 64 << 10  # bytes
TAIL: Final = 1 << 20
LONGEST: Final = 16 << 10  # characters of a line; longer ones are cut


class Log:
    """An open log; a `Sink` for `process.stream`.

    `previous_time` is when the log before this one was last written, in nanoseconds;
    None when there was none. `problem` says why writing stopped, if it did: a full disk
    must not end hours of compiling, whatever it does to the compiler.
    """

    def __init__(self, path: Path, previous_time: int | None) -> None:
        self.path = path
        self.previous_time = previous_time
        self.problem: str | None = None
        # Unbuffered: after a kill the time of the last write separates the build's files from later ones.
        # Readable for this user only: a build prints its settings. An existing file keeps its mode.
        path.unlink(missing_ok=True)
        path.touch(0o600)
        self._file = path.open("wb", buffering=0)

    def write(self, data: bytes, /) -> None:
        """Write data; after the first failure, which is in `problem`, drop it."""
        if self.problem is not None:
            return
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            self.problem = error.strerror or str(error)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def open_log(folder: Path, name: str, argv: Sequence[str] = ()) -> Log:
    """Open a new `<folder>/<name>.log`; older ones become `<name>.1.log` and so on.

    Its first line has the time and the command.

    Raises:
        UsageError: the folder or the file cannot be written.
    """
    path = folder / f"{name}.log"
    with translate_errors(UsageError, path):
        folder.mkdir(parents=True, exist_ok=True)
        previous = last_write(folder, name)
        _rotate(folder, name)
        log = Log(path, previous)
    now = datetime.now().astimezone().isoformat(timespec="milliseconds")
    log.write(f"# {now} {visible(' '.join(argv))}".rstrip().encode(errors="replace") + b"\n")
    return log


def _rotate(folder: Path, name: str) -> None:
    names = [f"{name}.log", *(f"{name}.{number}.log" for number in range(1, MOST_LOGS))]
    for older, newer in reversed(list(zip(names[1:], names, strict=False))):
        if (folder / newer).exists():
            replace(folder / newer, folder / older)


# ---------------- reading by later runs


def last_write(folder: Path, name: str) -> int | None:
    """Return when the newest log was last written, in nanoseconds; None without a log."""
    with contextlib.suppress(OSError):
        return (folder / f"{name}.log").stat().st_mtime_ns
    return None


def name_newest(folder: Path) -> str:
    """Return a name by which `last_write_of` finds the newest log again; "" without one."""
    with contextlib.suppress(OSError, ValueError):
        return _identity(max(folder.glob("*/*.log"), key=lambda path: path.stat().st_mtime_ns))
    return ""


def last_write_of(folder: Path, name: str) -> int | None:
    """Return when that log was last written, in nanoseconds; None if it is gone."""
    with contextlib.suppress(OSError):
        named = (path for path in folder.glob("*/*.log") if _identity(path) == name)
        return next((path.stat().st_mtime_ns for path in named), None)
    return None


def _identity(path: Path) -> str:
    """Return the file's id and its first line, which stay the same when it is rotated."""
    with path.open("rb") as file:
        return f"{path.stat().st_ino} {file.readline(200).decode(errors='replace')}"


def log_ends(path: Path) -> tuple[str, str]:
    """Return the first and the last lines; the last are empty if the first are all.

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
    # A cut line could hold half of a secret, which redaction would not recognise.
    first = head[: head.rfind(b"\n") + 1]
    rest = tail if start == HEAD else tail[tail.find(b"\n") + 1 :]
    return _text(first), _text(head[len(first) :] + rest if start == HEAD else rest)


def _text(data: bytes) -> str:
    """Decode UTF-8, or UTF-16 as PowerShell writes it; cut lines after `LONGEST` characters."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        text = data.decode("utf-16", "replace")
    else:
        text = data.replace(b"\0", b"").decode("utf-8", "replace")
    return "".join(line[:LONGEST].rstrip("\n") + "\n" for line in text.splitlines())
