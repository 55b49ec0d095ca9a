"""The only access to the machine for the modules of this room.

Nothing here raises because of what the machine does. A file that cannot be read and a
program that does not start, hangs or floods its output are None, an empty answer or
False: unknown, never a guess. Nothing here changes the machine.

The meaning of names (`C:\\x`, PATH, PATHEXT) is in `names`; questions to the operating system
itself are in `system_posix` and `system_windows`, of which one is chosen here once.
"""

from __future__ import annotations

import contextlib
import math
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import msgspec

from torchbuild_tasks.facts.answers import Answers
from torchbuild_tasks.facts.names import Names, native_names
from torchbuild_tasks.system import trust
from torchbuild_tasks.system.process import capture
from torchbuild_tasks.system.reading import read_bytes, read_value
from torchbuild_tasks.values import as_table, parse_json, replace

if sys.platform == "win32":
    from torchbuild_tasks.facts import system_windows as system
else:
    from torchbuild_tasks.facts import system_posix as system

if TYPE_CHECKING:
    from torchbuild_tasks.system.windows_memory import MemoryStatus


T = TypeVar("T")
R = TypeVar("R")
# Bytes that a program may print to one stream: a version is a line, a report some kilobytes.
LIMIT: Final = 4 * 1024 * 1024
_CLOCK: Final = 5.0  # seconds by which two clocks may differ
_BUSY: Final = 6.0  # the most by which a timeout is multiplied on a busy machine


def crowding() -> float:
    """Return the runnable processes for each core, from 1 to `_BUSY`: programs answer so much later."""
    with contextlib.suppress(OSError, AttributeError):  # Windows has no load average
        return min(max(os.getloadavg()[0] / (os.cpu_count() or 1), 1.0), _BUSY)
    return 1.0


def in_plain_english(environ: Mapping[str, str]) -> dict[str, str]:
    """Return an environment with messages of the C locale, and the characters of its own.

    With LC_ALL=C, Python 3.11 and 3.12 fail at their start in a venv with an editable install below a folder
    such as `Müller`: `site` reads .pth files in the encoding of the locale, also in UTF-8 mode.
    """
    named = (environ.get(name) for name in ("LC_ALL", "LC_CTYPE", "LANG"))
    characters = next(filter(None, named), "")
    others = {
        name: value for name, value in environ.items() if not name.startswith("LC_") and name != "LANGUAGE"
    }
    return {**others, "LANG": "C", **({"LC_CTYPE": characters} if characters else {})}


class Output(NamedTuple):
    """The end of a program and what it printed; `rc` is negative when a signal ended it (POSIX)."""

    rc: int
    stdout: str
    stderr: str = ""

    @property
    def reason(self) -> str:
        """Return the line that says why it failed: of a traceback the last, of all else the first."""
        lines = (self.stderr.strip() or self.stdout.strip() or "without a word").splitlines()
        return lines[-1 if lines[0].startswith("Traceback") else 0].strip()[:200]


class Uname(NamedTuple):
    """The operating system (`linux`, `win32` ...), its kernel's release, and the processor."""

    system: str
    release: str | None = None
    machine: str | None = None


class Probe(msgspec.Struct, frozen=True, kw_only=True):
    """The machine as seen from a process with the environment `environ`; by default from this one.

    Paths are absolute and as the machine names them. `root` is None for the real file
    system; in a test it is a folder that plays one: with a `proc`, `sys` ... of its own, or
    with a `C`, `D` ... for the drives of a Windows machine, which `names` makes of it.
    A program is ended after `patience` seconds; `cut` lists those that were. `answers` are those that `ask`
    takes instead of starting a program, if any.
    """

    environ: Mapping[str, str] = msgspec.field(default_factory=lambda: dict(os.environ))
    root: Path | None = None
    names: Names = msgspec.field(default_factory=native_names)
    patience: float = math.inf
    cut: list[str] = msgspec.field(default_factory=list)
    answers: Answers | None = None

    @property
    def windows(self) -> bool:
        return self.names.WINDOWS

    def variable(self, name: str) -> str:
        """Return the value of an environment variable; empty when it is not set."""
        return self.names.lookup(self.environ, name) or ""

    def with_settings(self, stronger: Mapping[str, str], weaker: Mapping[str, str]) -> Probe:
        """Return the machine as seen by a process with the variables of flags and settings added.

        Args:
            stronger, weaker: variables above the environment (`--set`) and below it (`[set]`, presets).
        """
        spell = str.upper if self.windows else str
        layers = (weaker, self.environ, stronger)
        merged = {spell(name): (name, value) for layer in layers for name, value in layer.items()}
        return replace(self, environ=dict(merged.values()))

    # ------------------------------------------------------------ programs

    def run(self, argv: Sequence[str], *, timeout: float = 10.0) -> Output | None:
        """Run a program to its end with empty stdin and messages of the C locale.

        Args:
            argv: the program's path and its arguments; no shell.
            timeout: seconds until it is killed with everything that it started; longer on a busy machine.

        Returns:
            None when it cannot start, hangs, or prints more than `LIMIT` bytes.
        """
        if argv[0] in self.cut:  # it would hang again
            return None
        env = in_plain_english(self.environ)
        captured = capture(argv, env=env, timeout=self.wait(timeout), limit=LIMIT, grace=0)
        if captured.timed_out or captured.flooded:
            self.cut.append(argv[0])
        elif captured.started:
            return Output(captured.rc, captured.text, captured.stderr.decode("utf-8", "replace"))
        return None

    def ask(
        self,
        argv: Sequence[str],
        *,
        timeout: float = 10.0,
        reads: Callable[[Output], Iterable[str]] = lambda output: (),
    ) -> Output | None:
        """Return what a program says of itself, as `run` does, or as it has said it before.

        Args:
            argv, timeout: as for `run`.
            reads: returns the files and folders that it has read besides itself, from its output.
        """
        if self.answers is None:
            return self.run(argv, timeout=timeout)
        if known := self.answers.find(argv, self.environ):
            return Output(*known)
        asked = time.time()
        output = self.run(argv, timeout=timeout)
        if output is not None and output.rc == 0:
            self.answers.keep(argv, self.environ, output, asked=asked, reads=reads(output))
        return output

    def wait(self, timeout: float) -> float:
        """Return the seconds that a program gets which has these on an idle machine."""
        return min(timeout * crowding(), self.patience)

    @property
    def path_folders(self) -> tuple[str, ...]:
        """Return the folders of PATH in order, each once; empty entries (the current folder) are left out."""
        folders: dict[str, str] = {}
        for entry in self.names.split_path(self.variable("PATH")):
            path = self.absolute(entry)
            folders.setdefault(self.names.key(path), path)
        return tuple(folders.values())

    def which_all(self, name: str) -> tuple[str, ...]:
        """Return every program called `name` on PATH, in the order of PATH."""
        paths = (self.program_at(self.join(folder, name)) for folder in self.path_folders)
        return tuple(path for path in paths if path)

    def which(self, name: str) -> str | None:
        """Return the program that a shell would start for `name`."""
        return next(iter(self.which_all(name)), None)

    def program_at(self, path: str) -> str | None:
        """Return the program that `path` means: on Windows C:\\x\\cmake is C:\\x\\cmake.exe."""
        files = self.names.program_files(path, self.environ)
        return next((file for file in files if self.is_program(file)), None)

    # ------------------------------------------------------------ paths

    def join(self, folder: str, *parts: str) -> str:
        """Return the path of `parts` below `folder`; / may separate parts on every system."""
        return self.names.join(folder, *parts)

    def absolute(self, path: str) -> str:
        """Return a path as the user typed it, made absolute: `~` is the user's folder, links are kept."""
        if path == "~" or (path[:1] == "~" and self.names.is_path(path[:2])):
            path = (self.names.home(self.environ) or "~") + path[1:]
        if not self.names.is_absolute(path) and (folder := self.current_folder()):
            path = self.names.join(folder, path)
        return self.names.normal(path)

    def realpath(self, path: str) -> str:
        """Return the path without links; unchanged if they form a loop.

        A drive letter that stands for a folder (subst) or a share is kept: it was created
        because the path behind it is too long, or because cmd.exe cannot work in a share.
        """
        real = self._resolve(path)
        drive = self.names.drive(path)
        behind = self._resolve(drive) if drive else drive
        if self.names.key(behind) != self.names.key(drive) and self.inside(real, behind):
            return self.names.normal(self.join(drive, real[len(behind) :].lstrip("\\")))
        return real

    def _resolve(self, path: str) -> str:
        try:
            real = self.at(path).resolve()
            root = self.root.resolve() if self.root else None
        except (OSError, RuntimeError, ValueError):
            return path
        return self.names.path_of(root, real) if root and real.is_relative_to(root) else str(real)

    def inside(self, path: str, folder: str) -> bool:
        """Say whether `path` is `folder` or something in it, by their names."""
        one = self.names.key(path)
        other = self.names.key(folder)
        return one == other or one.startswith(self.names.key(self.join(folder, "x"))[:-1])

    def current_folder(self) -> str | None:
        """Return the current folder; None when it was removed."""
        try:
            return os.getcwd()  # noqa: PTH109 - a text
        except OSError:
            return None

    # ------------------------------------------------------------ files

    def at(self, path: str) -> Path:
        """Return the file for `path`: itself, or below the folder that replaces the machine's root."""
        return self.names.file_of(self.root, path) if self.root else Path(path)

    def _name(self, path: str) -> str:
        """Return the name of that file; to make a `Path` takes longer than to ask whether it exists."""
        return str(self.at(path)) if self.root else path

    def read_bytes(self, path: str) -> bytes | None:
        """Return the content of a regular file; None if it is none, is too long or cannot be read."""
        try:
            return read_bytes(self.at(path))
        except (OSError, ValueError):
            return None

    def read(self, path: str) -> str | None:
        """Return a regular file as text; bytes that are not UTF-8 become replacement characters."""
        data = self.read_bytes(path)
        return None if data is None else data.decode("utf-8", "replace")

    def table(self, path: str) -> Mapping[str, Any]:
        """Return the JSON object in a file; empty if there is none, or it is damaged."""
        try:
            return as_table(parse_json(self.read(path) or ""))
        except ValueError:
            return {}

    def value(self, kind: type[T], path: str) -> T | None:
        """Return the value in a JSON file; None if there is none, or it is damaged."""
        return read_value(kind, self.at(path))

    def size(self, path: str) -> int | None:
        """Return bytes of a file; None when there is none."""
        try:
            return self.at(path).stat().st_size
        except (OSError, ValueError):
            return None

    def ahead(self, path: str) -> float | None:
        """Return the seconds by which a file's time is in the future; None if it is not."""
        try:
            seconds = self.at(path).stat().st_mtime - time.time()
        except (OSError, ValueError):
            return None
        return seconds if seconds > 0 else None

    def exists(self, path: str) -> bool:
        """Say whether a path exists; a dangling link does not."""
        return os.path.exists(self._name(path))  # noqa: PTH110 - false, too, for a name that no file system holds

    def link_target(self, path: str) -> str:
        """Return where a symbolic link leads, as it is written; "" for what is none."""
        try:
            return os.readlink(self._name(path))  # noqa: PTH115 - as above
        except (OSError, ValueError):
            return ""

    def is_file(self, path: str) -> bool:
        """Say whether it is a regular file, or a link to one."""
        return os.path.isfile(self._name(path))  # noqa: PTH113 - as above

    def is_dir(self, path: str) -> bool:
        """Say whether it is a folder, or a link to one."""
        return os.path.isdir(self._name(path))  # noqa: PTH112 - as above

    def is_program(self, path: str) -> bool:
        """Say whether it is a file that this user may start."""
        return self.is_file(path) and self.names.is_program(self.at(path))

    def writable(self, path: str) -> bool | None:
        """Say whether this user may write to a path; None if it does not exist.

        None on Windows, too: access(2) looks at the read-only mark, and not at rights.
        """
        return None if self.windows or not self.exists(path) else os.access(self.at(path), os.W_OK)

    def owner(self, path: str) -> int | None:
        """Return the user id of who owns a path; None if that is not known, as on Windows."""
        try:
            return None if self.windows else os.stat(self.at(path)).st_uid  # noqa: PTH116
        except (OSError, ValueError):
            return None

    def children(self, path: str) -> tuple[str, ...]:
        """Return the names in a folder, sorted; empty when it cannot be listed."""
        try:
            return tuple(sorted(os.listdir(self._name(path))))  # noqa: PTH208
        except (OSError, ValueError):
            return ()

    def disk_usage(self, path: str) -> tuple[int, int] | None:
        """Return the total bytes of the file system that holds `path`, and those free to this user."""
        try:
            return system.disk_usage(self.at(path))
        except (OSError, ValueError):
            return None

    def volume(self, path: str) -> str | None:
        """Return, on Windows, the drive or mount point that holds `path`."""
        return system.volume(self.at(path))

    def cache_folder(self) -> str:
        from platformdirs import user_cache_dir

        return user_cache_dir("torchbuild-tasks", appauthor=False)

    def state_folder(self) -> Path:
        """Return the folder of the entries about trusted files and our venvs."""
        named = self.variable(trust.VARIABLE)
        return self.at(self.absolute(named) if named else str(trust.state_folder({})))

    # ------------------------------------------------------------ machine

    def works(self, pid: int, host: str, since: float) -> bool:
        """Say whether a process that was running at a time (seconds since 1970) still runs.

        A process started later has reused its pid. Processes of another host count as running.
        """
        import socket

        import psutil

        if host != socket.gethostname():
            return True
        try:
            process = psutil.Process(pid)
            return process.status() != psutil.STATUS_ZOMBIE and process.create_time() < since + _CLOCK
        except psutil.AccessDenied:  # another user's, on Windows
            return True
        except psutil.Error:
            return False

    def cores(self) -> int | None:
        """Return the number of logical cores of the machine, also those that this process may not use."""
        return os.cpu_count()

    def open_files(self) -> tuple[int, int] | None:
        """Return the soft and hard limit of open files of this process."""
        return system.open_files()

    def administrator(self) -> bool | None:
        """Say whether this process may change the system."""
        return system.administrator()

    def file_system(self, path: str) -> str | None:
        """Return, on Windows, the kind of file system of a volume ("NTFS", "ReFS")."""
        return system.file_system(path)

    def affinity(self) -> int | None:
        """Return the number of cores that this process may run on; None if unknown."""
        return system.affinity()

    def uname(self) -> Uname:
        return Uname(sys.platform, *system.release_and_machine())

    def glibc(self) -> str | None:
        """Return the C library under this process; None where it is not glibc."""
        return system.glibc()

    def memory_status(self) -> MemoryStatus | None:
        """Return, on Windows, memory and commit."""
        return system.memory_status()

    def registry_value(self, key: str, name: str = "") -> str | int | None:
        """Return, on Windows, a text or number of a key (HKLM\\SOFTWARE\\x); no name: its default value."""
        return system.registry_value(key, name)

    def registry_keys(self, key: str) -> tuple[str, ...]:
        """Return, on Windows, the keys below a key."""
        return system.registry_keys(key)

    def file_version(self, path: str) -> str | None:
        """Return, on Windows, the version that a program carries as a resource ("19.44.35211.0")."""
        return system.file_version(self.at(path))


def multiarch_triplet(probe: Probe) -> str:
    """Return Debian's name of the library folder for this machine: x86_64-linux-gnu.

    https://wiki.debian.org/Multiarch/Tuples
    """
    return f"{probe.uname().machine or 'x86_64'}-linux-gnu"


def program_files(probe: Probe) -> str:
    """Return Windows' folder of programs: that of 64 bits, for a process of 32 bits, too."""
    return probe.variable("ProgramW6432") or probe.variable("ProgramFiles") or "C:\\Program Files"


WORKERS: Final = 16


def map_parallel(function: Callable[[T], R], items: Iterable[T]) -> tuple[R, ...]:
    """Return `function` of every item, in the order of the items, at most `WORKERS` at a time.

    For probing, which is waiting for other programs.
    """
    todo = list(items)
    if len(todo) < 2:
        return tuple(function(item) for item in todo)
    # Importing it takes as long as one tool's --version, and listing tasks does not need it.
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(max_workers=min(WORKERS, len(todo))) as pool:
        return tuple(pool.map(function, todo))
