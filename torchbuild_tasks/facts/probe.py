"""The one door to the machine: every other module of this room looks through it.

Nothing here raises because of what the machine does. A file that cannot be read and a
program that does not start, hangs or floods its output are None, an empty answer or
False: unknown, never a guess. Nothing here changes the machine.
"""

from __future__ import annotations

import contextlib
import os
import posixpath
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final, NamedTuple, TypeAlias

# What one stream of a probed program may say: a version is a line, a report some kilobytes.
LIMIT: Final = 4 * 1024 * 1024

_Process: TypeAlias = "subprocess.Popen[bytes]"  # noqa: TID251 - this is the door of the room that looks


class Output(NamedTuple):
    """What a program that came to its end said; `rc` is negative when a signal ended it."""

    rc: int
    stdout: str
    stderr: str = ""


class Uname(NamedTuple):
    """The operating system (`linux`, `win32` ...), its kernel's release, and the processor."""

    system: str
    release: str | None = None
    machine: str | None = None


@dataclass(frozen=True, kw_only=True)
class Probe:
    """The machine as seen from a process with the environment `environ`.

    Paths are absolute and as the machine names them. `root` is where the file system is
    found: "/" for the real one, a folder with a `proc`, `sys` ... of its own in a test.
    """

    environ: Mapping[str, str]
    root: Path = field(default_factory=lambda: Path("/"))

    # ------------------------------------------------------------ programs

    def run(self, argv: Sequence[str], *, timeout: float = 10.0) -> Output | None:
        """Run a program to its end in the C locale, with nothing to read from.

        Args:
            argv: the program's path and its arguments; no shell.
            timeout: seconds until its whole process group is killed.

        Returns:
            None when it cannot start, hangs, or says more than `LIMIT` bytes.
        """
        try:
            process = subprocess.Popen(  # noqa: TID251 - as above
                list(argv),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**self.environ, "LC_ALL": "C"},
                start_new_session=True,
            )
        except (OSError, ValueError):
            return None
        said = _finish(process, timeout)
        return None if said is None else Output(process.returncode, *said)

    @property
    def path_folders(self) -> tuple[str, ...]:
        """The folders of PATH in order, each once; empty entries (the current folder) are left out."""
        entries = self.environ.get("PATH", "").split(os.pathsep)
        return tuple(dict.fromkeys(self.absolute(entry) for entry in entries if entry))

    def which_all(self, name: str) -> tuple[str, ...]:
        """Every program called `name` on PATH, in the order of PATH."""
        paths = (posixpath.join(folder, name) for folder in self.path_folders)
        return tuple(path for path in paths if self.is_program(path))

    def which(self, name: str) -> str | None:
        """The program that a shell would start for `name`."""
        return next(iter(self.which_all(name)), None)

    # ------------------------------------------------------------ files

    def at(self, path: str) -> Path:
        """Where `path` is found under `root`."""
        return self.root / path.lstrip("/")

    def read_bytes(self, path: str) -> bytes | None:
        """The content of a regular file; None for anything that is not one or cannot be read."""
        try:
            return self.at(path).read_bytes() if self.at(path).is_file() else None
        except (OSError, ValueError):
            return None

    def read(self, path: str) -> str | None:
        """The same as text; bytes that are not UTF-8 become replacement characters."""
        data = self.read_bytes(path)
        return None if data is None else data.decode("utf-8", "replace")

    def exists(self, path: str) -> bool:
        """Whether there is anything; a link into nothing is nothing."""
        return _or(self.at(path).exists, False)

    def is_file(self, path: str) -> bool:
        """Whether it is a regular file, or a link to one."""
        return _or(self.at(path).is_file, False)

    def is_dir(self, path: str) -> bool:
        """Whether it is a folder, or a link to one."""
        return _or(self.at(path).is_dir, False)

    def is_program(self, path: str) -> bool:
        """Whether it is a file that this user may start."""
        return self.is_file(path) and os.access(self.at(path), os.X_OK)

    def writable(self, path: str) -> bool | None:
        """Whether this user may write there; None when there is nothing."""
        return os.access(self.at(path), os.W_OK) if self.exists(path) else None

    def children(self, path: str) -> tuple[str, ...]:
        """The names in a folder, sorted; empty when it cannot be listed."""
        try:
            return tuple(sorted(child.name for child in self.at(path).iterdir()))
        except (OSError, ValueError):
            return ()

    def absolute(self, path: str) -> str:
        """A path as the user typed it, made absolute: `~` is HOME, links are kept."""
        if path == "~" or path.startswith("~/"):
            path = self.environ.get("HOME", "~") + path[1:]
        with contextlib.suppress(OSError):  # the current folder was removed
            path = str(Path(path).absolute())
        return os.path.normpath(path)

    def realpath(self, path: str) -> str:
        """The path without links; unchanged where they run in a circle."""
        try:
            real, root = self.at(path).resolve(), self.root.resolve()
        except (OSError, RuntimeError, ValueError):
            return path
        if root != Path("/") and real.is_relative_to(root):
            return "/" + real.relative_to(root).as_posix().removeprefix(".")
        return str(real)

    def disk_usage(self, path: str) -> tuple[int, int] | None:
        """Total bytes of the file system that holds `path`, and those free to this user."""
        try:
            usage = os.statvfs(self.at(path))
        except (AttributeError, OSError, ValueError):
            return None
        return usage.f_blocks * usage.f_frsize, usage.f_bavail * usage.f_frsize

    # ------------------------------------------------------------ machine

    def cores(self) -> int | None:
        """Logical cores of the machine, whoever may use them."""
        return os.cpu_count()

    def affinity(self) -> int | None:
        """Cores that the scheduler lets this process run on (taskset, cpusets)."""
        try:
            return len(os.sched_getaffinity(0))
        except (AttributeError, OSError):
            return None

    def uname(self) -> Uname:
        """What the kernel says of itself."""
        if not hasattr(os, "uname"):
            return Uname(system=sys.platform)
        said = os.uname()
        return Uname(system=sys.platform, release=said.release, machine=said.machine)

    def glibc(self) -> str | None:
        """The C library under this process as confstr(3) names it; None where it is not glibc."""
        try:
            return os.confstr("CS_GNU_LIBC_VERSION")
        except (AttributeError, OSError, ValueError):
            return None


def _or(question: Callable[[], bool], otherwise: bool) -> bool:
    """Ask the file system; a name that it cannot hold (too long, a null byte) is `otherwise`."""
    try:
        return question()
    except (OSError, ValueError):
        return otherwise


def _finish(process: _Process, timeout: float) -> tuple[str, str] | None:
    """Read both streams to their end; None, and the whole process group killed, when late.

    Reading ends before waiting does, so a background process that keeps a stream open is
    still in a group whose number nobody else can have got.
    """
    deadline = time.monotonic() + timeout
    readers = [_Reader(stream) for stream in (process.stdout, process.stderr) if stream]
    for reader in readers:
        reader.join(max(0.0, deadline - time.monotonic()))
    in_time = not any(reader.is_alive() or reader.flooded for reader in readers)
    try:
        process.wait(max(0.0, deadline - time.monotonic()) if in_time else 0)
    except subprocess.TimeoutExpired:
        in_time = False
    if not in_time:
        _kill(process)
        return None
    stdout, stderr = (reader.said.decode("utf-8", "replace") for reader in readers)
    return stdout, stderr


class _Reader(threading.Thread):
    """Reads a stream to its end or to `LIMIT`, so that a flood cannot fill the memory."""

    def __init__(self, stream: IO[bytes]) -> None:
        super().__init__(daemon=True)
        self.stream = stream
        self.said = b""
        self.flooded = False
        self.start()

    def run(self) -> None:
        with self.stream:
            self.said = self.stream.read(LIMIT)
            self.flooded = len(self.said) == LIMIT


def _kill(process: _Process) -> None:
    with contextlib.suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL) if hasattr(os, "killpg") else process.kill()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(1.0)
