"""The tokens as bytes in a named pipe, in a private folder that a later run sweeps if it is left.

Nobody can tell a pipe whose byte it is: when a job ends, the build and we reach for the same
one, and we get it about every second time.
"""

from __future__ import annotations

import array
import contextlib
import os
import select
import signal
import sys
import tempfile
from pathlib import Path
from typing import Final

from torchbuild_tasks.effects.jobserver.running_posix import start_of

if sys.platform != "win32":
    import fcntl
    import termios

_PREFIX: Final = "torchbuild-jobs-"
_FIFO, _HELD, _LOCK = "tokens", "held", "lock"


class Tokens:
    """An empty pool of tokens.

    Args:
        folder: where its folder is made, instead of the one for temporary files.

    Raises:
        OSError: no pipe can be made there.
    """

    def __init__(self, folder: Path | None = None) -> None:
        parent = folder or Path(tempfile.gettempdir())
        if " " in str(parent):  # would be two words of MAKEFLAGS
            parent = Path("/tmp")
        sweep(parent)
        self.folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
        self._lock = os.open(self.folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        self._pipe: int | None = None
        self._noted: tuple[tuple[int, float], ...] = ()
        try:
            if sys.platform != "win32":
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.mkfifo(self.folder / _FIFO, 0o600)
                # Held open at both ends, so that the bytes outlive every client.
                self._pipe = os.open(self.folder / _FIFO, os.O_RDWR | os.O_NONBLOCK)
        except OSError:
            self.close()
            raise

    @property
    def auth(self) -> str:
        """What `--jobserver-auth=` says."""
        return f"fifo:{self.folder / _FIFO}"

    def put(self, number: int) -> None:
        """Give out so many."""
        if self._pipe is not None and number > 0:
            os.write(self._pipe, b"+" * number)

    def take(self, timeout: float) -> bool:
        """Take one back, if one gets free in time."""
        if self._pipe is None or not select.select([self._pipe], [], [], timeout)[0]:
            return False
        with contextlib.suppress(BlockingIOError):  # somebody was quicker
            return os.read(self._pipe, 1) != b""
        return False

    def free(self) -> int:
        """How many lie there for anybody to take."""
        count = array.array("i", [0])
        if sys.platform != "win32" and self._pipe is not None:
            fcntl.ioctl(self._pipe, termios.FIONREAD, count)
        return count[0]

    def note_held(self, processes: tuple[tuple[int, float], ...]) -> None:
        """Write down who is held (pid and start), so that a later run can let them go on."""
        if processes == self._noted:
            return
        self._noted = processes
        text = "".join(f"{pid} {started:.0f}\n" for pid, started in processes)
        with contextlib.suppress(OSError):
            (self.folder / _HELD).write_text(text, "ascii")

    def close(self) -> None:
        """Remove all of it."""
        if self._pipe is not None:
            os.close(self._pipe)
            self._pipe = None
        _remove(self.folder)
        os.close(self._lock)


def sweep(parent: Path) -> None:
    """Remove the folders of runs that were killed, and let go on what they had held."""
    for folder in parent.glob(_PREFIX + "*"):
        with contextlib.suppress(OSError):
            about = folder.lstat()
            if about.st_uid == _uid() and folder.is_dir() and not folder.is_symlink():
                _sweep_one(folder)


def _sweep_one(folder: Path) -> None:
    """Nobody holds the lock of a run that is over, however it ended."""
    lock = os.open(folder / _LOCK, os.O_RDWR)
    try:
        if sys.platform != "win32":
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for line in _lines(folder / _HELD):
            pid, _, started = line.partition(" ")
            if start_of(int(pid)) == float(started):
                os.kill(int(pid), getattr(signal, "SIGCONT", 0))
        _remove(folder)
    finally:
        os.close(lock)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text("ascii").splitlines()
    except OSError:
        return []


def _remove(folder: Path) -> None:
    with contextlib.suppress(OSError):
        for name in (_FIFO, _HELD, _LOCK):
            (folder / name).unlink(missing_ok=True)
        folder.rmdir()


def _uid() -> int:
    if sys.platform == "win32":
        return 0
    return os.getuid()
