"""Run a build's own sccache server, and query ccache.

The server is started before CMake, stopped with the build, and replaced when it must be. Its address is one
of the checkout, so that two builds never share a server.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import signal
import socket
import stat
import struct
import sys
import tempfile
import threading
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

import msgspec

from torchbuild_tasks.system import process
from torchbuild_tasks.system.process_tree import end_tree
from torchbuild_tasks.values import parse_json

_LONGEST: Final = 100  # bytes; a socket's path may have 107
STOP: Final = 20.0  # seconds; it waits 10 s for running compiles
ANSWER: Final = 10.0  # seconds for its statistics
DRAIN: Final = 60.0  # seconds for a replaced server to finish its compiles
# Variables of shared caches and their passwords; our clients get none of them.
REMOTE: Final = re.compile(
    r"SCCACHE_(REDIS|MEMCACHED|WEBDAV|GCS|AZURE|GHA|OSS|COS|S3|MULTILEVEL)(_|$)"
    r"|SCCACHE_(BUCKET|ENDPOINT|REGION)$"
)
_ADDRESS: Final = ("SCCACHE_SERVER_PORT", "SCCACHE_SERVER_UDS", "SCCACHE_NO_DAEMON", "SCCACHE_START_SERVER")
_STATS: Final = ("--show-stats", "--stats-format", "json")
_NONE: Final[Mapping[str, object]] = {"counts": {}}
_EMPTY: Final = json.dumps(
    {"stats": {"cache_hits": _NONE, "cache_misses": _NONE, "cache_errors": _NONE, "not_cached": {}}}
)
LOG: Final = "ccache-build.log"
_SECONDS: Final = 15.0
_UNITS: Final = {"": 1, "k": 1000, "K": 1000, "M": 1000**2, "G": 1000**3, "T": 1000**4}
_BINARY: Final = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40}


class SocketPlace:
    """The sockets of one checkout's servers; `name` distinguishes those that may run at the same time."""

    def __init__(self, root: Path, name: str = "build") -> None:
        key = hashlib.sha256(f"{root}\0{name}".encode(errors="surrogateescape")).hexdigest()[:12]
        self._stem = _private_folder() / key
        self._number = 0

    @property
    def clients(self) -> dict[str, str]:
        """Return the variable by which clients reach the server."""
        return {"SCCACHE_SERVER_UDS": f"{self._stem}.sock"}

    @property
    def server(self) -> dict[str, str]:
        """Return the address that clients are connected to."""
        return {"SCCACHE_SERVER_UDS": str(self._socket(self._number))}

    def next(self) -> dict[str, str]:
        """Return an address for another server; remove a dead socket there."""
        with contextlib.suppress(OSError):
            self._socket(1 - self._number).unlink()
        return {"SCCACHE_SERVER_UDS": str(self._socket(1 - self._number))}

    def lead(self) -> None:
        """Switch clients to the server at the other address atomically."""
        self._number = 1 - self._number
        link = Path(f"{self._stem}.sock")
        new = Path(f"{self._stem}.new")
        with contextlib.suppress(OSError):
            new.unlink()
        new.symlink_to(self._socket(self._number))
        new.replace(link)

    def leftovers(self) -> tuple[int, ...]:
        """Return the pids of servers that a killed build left running."""
        pids = (_listener(self._socket(number)) for number in (0, 1))
        return tuple(pid for pid in pids if pid is not None)

    def pid(self) -> int | None:
        """Return the pid of the server that clients are connected to; None without one."""
        return _listener(self._socket(self._number))

    def clear(self) -> None:
        """Remove the link and the sockets."""
        for path in (Path(f"{self._stem}.sock"), self._socket(0), self._socket(1)):
            with contextlib.suppress(OSError):
                path.unlink()

    def _socket(self, number: int) -> Path:
        return Path(f"{self._stem}-{number}.sock")


class PortPlace:
    """One loopback port; a replacing server listens on the same one."""

    def __init__(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = str(probe.getsockname()[1])

    @property
    def clients(self) -> dict[str, str]:
        """Return the variable by which clients reach the server."""
        return {"SCCACHE_SERVER_PORT": self._port}

    server = clients

    def next(self) -> dict[str, str]:
        """Return the same address, which another server can use after the old one has ended."""
        return self.clients

    def lead(self) -> None:
        """Do nothing: the address is the same."""

    def leftovers(self) -> tuple[int, ...]:
        """Return none: the port was free when it was chosen."""
        return ()

    def pid(self) -> int | None:
        """Return None: Windows reports it only to administrators."""
        return None

    def clear(self) -> None:
        """Do nothing: a port leaves no files."""


Place = SocketPlace | PortPlace


def own_place(root: Path, name: str = "build") -> Place:
    """Return the place of the server of one checkout."""
    return PortPlace() if sys.platform == "win32" else SocketPlace(root, name)


def server_of(environ: Mapping[str, str]) -> int | None:
    """Return the pid of the server that clients in this environment use; None if unknown."""
    address = environ.get("SCCACHE_SERVER_UDS")
    return _listener(Path(address)) if address else None


def _private_folder() -> Path:
    """Return a folder of this user with a short path; refuse another user's folder of that name."""
    for base in filter(None, (os.environ.get("XDG_RUNTIME_DIR"), "/tmp")):
        folder = Path(base) / f"torchbuild-{_user()}"
        if len(os.fsencode(folder)) + len("/0123456789ab-0.sock") > _LONGEST:
            continue
        with contextlib.suppress(OSError):
            folder.mkdir(mode=0o700, exist_ok=True)
            status = folder.lstat()
            if stat.S_ISDIR(status.st_mode) and status.st_uid == _user() and not status.st_mode & 0o077:
                return folder
    return Path(tempfile.mkdtemp(prefix="torchbuild-"))


def _user() -> int:
    if sys.platform == "win32":
        return -1
    return os.getuid()


def _listener(path: Path) -> int | None:
    """Return the pid that listens on a socket, from SO_PEERCRED."""
    if sys.platform == "win32":
        return None
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as client:
        client.settimeout(2.0)
        client.connect(str(path))
        pid, _, _ = struct.unpack("3i", client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        return int(pid)
    return None


# ---- the server


def disk_only(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without shared caches and servers."""
    return {k: v for k, v in environ.items() if not REMOTE.match(k) and k not in _ADDRESS}


class _Old(msgspec.Struct, frozen=True):
    """A server that finishes its work after another has replaced it."""

    pid: int
    address: Mapping[str, str]
    before: str
    timer: threading.Timer


class Server:
    """The server of one build. `answers` has the statistics of each of its servers, before and after."""

    def __init__(self, program: str, place: Place, environ: Mapping[str, str]) -> None:
        self.answers: list[tuple[str, str]] = []
        self._program = program
        self._place = place
        self._environ = {k: v for k, v in environ.items() if k not in _ADDRESS}
        self._levels: Mapping[str, str] = {}
        self._old: list[_Old] = []
        self._changing = threading.Lock()  # several threads may request another server
        self._before = ""
        self._running = False

    @property
    def clients(self) -> dict[str, str]:
        """Return the variables by which compilers reach the server."""
        return self._place.clients

    def start(self, levels: Mapping[str, str] | None = None) -> str:
        """Start the server.

        Args:
            levels: variables of a shared cache; None leaves those of the environment.

        Returns:
            "" when it runs, else why it does not, in sccache's words without a secret.
        """
        for pid in self._place.leftovers():
            end_tree(pid, 1.0)
        self._levels = levels or {}
        problem = self._run_next()
        if problem and "Address in use" not in problem:
            return problem
        self._lead()
        return ""

    def start_alone(self, conf: str = os.devnull) -> str:
        """Start the server without shared caches, ignoring the environment and sccache's own file.

        `conf` is a file of ours that is read instead of that one.
        """
        self._environ = {**disk_only(self._environ), "SCCACHE_CONF": conf}
        return self.start({})

    def replace(self, levels: Mapping[str, str]) -> str:
        """Replace the server while compilers run; clients that wait for it compile locally."""
        with self._changing:
            pid = self._place.pid()
            self._keep()
            if pid is None:
                self._ask_to_stop()
                return self._start_again(levels)
            self._environ, self._levels = disk_only(self._environ), levels
            if problem := self._run_next():
                return problem
            self._lead()
            end_tree(pid, 0.5)
        return ""

    def hand_over(self, without: Collection[str]) -> str:
        """Switch clients to a new server without these variables, and let the old one finish its work.

        Nobody is sent off to compile alone, as with `replace`: where many wait for other machines, that
        would be more compilers at once than this machine has memory for. Whoever still waits after
        `DRAIN` seconds goes on alone. One that was only stopped is told to go on: clients whose first words
        a killed server has not read fail.
        """
        with self._changing:
            address = self._place.server
            pid = self._place.pid()
            self._environ = {k: v for k, v in self._environ.items() if k not in without}
            if problem := self._run_next():
                return problem
            if pid is not None:
                with contextlib.suppress(OSError):  # Windows reports no pid
                    os.kill(pid, getattr(signal, "SIGCONT", 0))
                old = _Old(pid, address, self._before, threading.Timer(DRAIN, end_tree, (pid, 0.5)))
                old.timer.daemon = True
                old.timer.start()
                self._old.append(old)
            self._lead()
        return ""

    def _run_next(self) -> str:
        """Start a server; not by `capture`, because on Windows the server would keep our pipe open."""
        environ = {**self._environ, "SCCACHE_IDLE_TIMEOUT": "0", **self._place.next(), **self._levels}
        output: list[bytes] = []
        rc = process.stream((self._program, "--start-server"), env=environ, cwd=None, on_block=output.append)
        return hidden(_reason(rc, b"".join(output)), environ) if rc else ""

    def _lead(self) -> None:
        self._place.lead()
        self._running = True
        self.count_anew()

    def count_anew(self) -> None:
        """Exclude the server's work up to now from `answers`."""
        self._before = self.statistics()

    def _start_again(self, levels: Mapping[str, str]) -> str:
        """Start a server on the same port once it is free; one started there by a client is equivalent."""
        self._environ = disk_only(self._environ)
        deadline = time.monotonic() + STOP
        while problem := self.start(levels):
            if time.monotonic() > deadline:
                return problem
            time.sleep(0.5)
        return ""

    def statistics(self) -> str:
        """Return its statistics as JSON; "" if it does not respond."""
        return self._statistics(self._place.server)

    def why_stuck(self) -> str:
        """Return why the server hangs; "" if it responds, or has ended, which its clients notice."""
        return "" if self.statistics() else f"it has not answered for {ANSWER:g} s"

    def _statistics(self, address: Mapping[str, str]) -> str:
        environ = {**disk_only(self._environ), **address}
        return process.capture((self._program, *_STATS), env=environ, timeout=ANSWER).answer

    def stop(self, *, at_once: bool = False) -> None:
        """Stop the server; `at_once` also ends its compiles, for which no client waits."""
        if not self._running:
            return
        self._running = False
        for old in self._old:
            if old.timer.finished.is_set():
                continue  # it timed out, and its pid may be reused
            old.timer.cancel()
            if after := self._statistics(old.address):
                self.answers.append((old.before or _EMPTY, after))
            end_tree(old.pid, 0.5)
        self._keep()
        pid = self._place.pid()
        if not at_once or pid is None:
            self._ask_to_stop()
        if pid is not None and (at_once or self._place.pid() == pid):
            end_tree(pid, 0.5)
        self._place.clear()

    def _ask_to_stop(self) -> None:
        environ = {**disk_only(self._environ), **self._place.server}
        process.capture((self._program, "--stop-server"), env=environ, timeout=STOP)

    def _keep(self) -> None:
        if after := self.statistics():
            self.answers.append((self._before or _EMPTY, after))


def sccache_home(program: str, environ: Mapping[str, str]) -> tuple[Path | None, int]:
    """Return the folder that sccache would use and its limit in bytes; None and 0 if unknown."""
    # An address without a server: sccache then reports its settings and starts none. It cannot be created or
    # removed, in case a server does start.
    nowhere = f"{os.devnull}/none"
    no_server = {"SCCACHE_SERVER_UDS": nowhere} if os.name == "posix" else {"SCCACHE_SERVER_PORT": "9"}
    captured = process.capture((program, *_STATS), env={**disk_only(environ), **no_server}, timeout=15.0)
    with contextlib.suppress(ValueError, TypeError, KeyError, AttributeError):
        output = parse_json(captured.stdout)
        where = re.fullmatch(r'Local disk: "(.*)"', output["cache_location"])
        folder = Path(where[1].replace("\\\\", "\\")) if where else None
        return folder, int(output["max_cache_size"] or 0)
    return None, 0


def hidden(text: str, secrets: Mapping[str, str]) -> str:
    """Return a text without the values of login variables."""
    for name, value in secrets.items():
        if value and re.search("PASSWORD|USERNAME|TOKEN|SECRET|KEY_ID", name):
            text = text.replace(value, "***")
    return text


def _reason(rc: int, output: bytes) -> str:
    """Return the innermost cause: the last line of sccache's error."""
    lines = [line.strip() for line in output.decode(errors="replace").splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith(("Run with SCCACHE_LOG", "sccache: Starting"))]
    return (lines[-1] if lines else f"it ended with exit code {rc}").removeprefix("sccache: error: ")


# ---- ccache


def ccache_home(program: str, environ: Mapping[str, str]) -> tuple[Path | None, int]:
    """Return the folder that ccache uses and its limit in bytes; 0 for no or an unknown limit."""
    folder = _setting(program, "cache_dir", environ)
    return (Path(folder) if folder else None), read_size(_setting(program, "max_size", environ))


def read_size(text: str) -> int:
    """Return the bytes of ccache's sizes: "5.0 GB", "5.0 GiB", "0"."""
    match = re.fullmatch(r"([0-9.]+)\s*([kKMGT]i?)?B?", text.strip())
    if match is None:
        return 0
    unit = match[2] or ""
    with contextlib.suppress(ValueError):
        return int(float(match[1]) * (_BINARY.get(unit) or _UNITS.get(unit, 1)))
    return 0


def statistics(program: str, environ: Mapping[str, str]) -> str:
    """Return the counters of its folder (--print-stats); "" if it fails."""
    return process.capture((program, "--print-stats"), env=environ, timeout=_SECONDS).answer


def clear(program: str, environ: Mapping[str, str]) -> str:
    """Empty its folder by its own command; return why that failed, or ""."""
    captured = process.capture((program, "--clear"), env=environ)
    return "" if captured.rc == 0 else captured.error_text


def _setting(program: str, name: str, environ: Mapping[str, str]) -> str:
    return process.capture((program, "--get-config", name), env=environ, timeout=_SECONDS).answer


# Functions that return a cache's folder and its limit in bytes.
HOMES: Final = {"ccache": ccache_home, "sccache": sccache_home}
