"""The programs of compiler caches: a build's own sccache server, and what ccache reports.

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
STOP: Final = 20.0  # seconds; it waits 10 s for what is being compiled
ANSWER: Final = 10.0  # seconds that it has to tell its statistics
DRAIN: Final = 60.0  # seconds that a server has for the compiles it waits for, when another takes over
# Variables that name a shared cache, with those for their passwords; none of them goes to clients of ours.
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
    """The sockets of one checkout's servers (`name` tells apart what may run at the same time)."""

    def __init__(self, root: Path, name: str = "build") -> None:
        key = hashlib.sha256(f"{root}\0{name}".encode(errors="surrogateescape")).hexdigest()[:12]
        self._stem = _private_folder() / key
        self._number = 0

    @property
    def clients(self) -> dict[str, str]:
        """Return what leads a client to the server."""
        return {"SCCACHE_SERVER_UDS": f"{self._stem}.sock"}

    @property
    def server(self) -> dict[str, str]:
        """Return what the server listens on to which clients are led."""
        return {"SCCACHE_SERVER_UDS": str(self._socket(self._number))}

    def next(self) -> dict[str, str]:
        """Another address for another server; a dead socket there is removed."""
        with contextlib.suppress(OSError):
            self._socket(1 - self._number).unlink()
        return {"SCCACHE_SERVER_UDS": str(self._socket(1 - self._number))}

    def lead(self) -> None:
        """Lead clients to the server at that other address, from one moment to the next."""
        self._number = 1 - self._number
        link = Path(f"{self._stem}.sock")
        new = Path(f"{self._stem}.new")
        with contextlib.suppress(OSError):
            new.unlink()
        new.symlink_to(self._socket(self._number))
        new.replace(link)

    def leftovers(self) -> tuple[int, ...]:
        """Return the pids of servers that a killed build has left listening here."""
        pids = (_listener(self._socket(number)) for number in (0, 1))
        return tuple(pid for pid in pids if pid is not None)

    def pid(self, address: dict[str, str]) -> int | None:
        """Return the process that listens on an address; None when none does."""
        return _listener(Path(address["SCCACHE_SERVER_UDS"]))

    def clear(self) -> None:
        """Remove the link and the sockets."""
        for path in (Path(f"{self._stem}.sock"), self._socket(0), self._socket(1)):
            with contextlib.suppress(OSError):
                path.unlink()

    def _socket(self, number: int) -> Path:
        return Path(f"{self._stem}-{number}.sock")


class PortPlace:
    """One port of the loopback; a replaced server listens on the same one."""

    def __init__(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = str(probe.getsockname()[1])

    @property
    def clients(self) -> dict[str, str]:
        """Return what leads a client to the server."""
        return {"SCCACHE_SERVER_PORT": self._port}

    server = clients

    def next(self) -> dict[str, str]:
        """Return the same address, which another server can have once the old one has ended."""
        return self.clients

    def lead(self) -> None:
        """Clients are there already."""

    def leftovers(self) -> tuple[int, ...]:
        """Return none: the port was free when it was chosen."""
        return ()

    def pid(self, address: dict[str, str]) -> int | None:
        """Return None: Windows does not report it without rights."""
        return None

    def clear(self) -> None:
        """Do nothing: nothing is left of a port."""


Place = SocketPlace | PortPlace


def own_place(root: Path, name: str = "build") -> Place:
    """Return the address for the server of one checkout."""
    return PortPlace() if sys.platform == "win32" else SocketPlace(root, name)


def server_of(environ: Mapping[str, str]) -> int | None:
    """Return the pid of the server to which an environment leads clients; None where that is not known."""
    address = environ.get("SCCACHE_SERVER_UDS")
    return _listener(Path(address)) if address else None


def _private_folder() -> Path:
    """Return a folder of this user with a short path; a stranger's folder of that name is not entered."""
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
    """Return the process that listens on a socket, as the kernel names it to a client (SO_PEERCRED)."""
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
    """Return an environment that names no shared cache and no server."""
    return {k: v for k, v in environ.items() if not REMOTE.match(k) and k not in _ADDRESS}


class _Old(msgspec.Struct, frozen=True):
    """A server that ends its work while another has taken over."""

    pid: int
    address: Mapping[str, str]
    before: str
    timer: threading.Timer


class Server:
    """The server of one build. `answers` holds its statistics, before and after, of each server there was."""

    def __init__(self, program: str, place: Place, environ: Mapping[str, str]) -> None:
        self.answers: list[tuple[str, str]] = []
        self._program, self._place = program, place
        self._environ = {k: v for k, v in environ.items() if k not in _ADDRESS}
        self._levels: Mapping[str, str] = {}
        self._old: list[_Old] = []
        self._changing = threading.Lock()  # more than one thread may find a reason for another server
        self._before = ""
        self._running = False

    @property
    def clients(self) -> dict[str, str]:
        """Return what a compiler's environment needs to reach it."""
        return self._place.clients

    def start(self, levels: Mapping[str, str] | None = None) -> str:
        """Start it.

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
        """Start it without any shared cache, whatever the environment or sccache's own file say.

        `conf` is a file of ours that is read instead of that one.
        """
        self._environ = {**disk_only(self._environ), "SCCACHE_CONF": conf}
        return self.start({})

    def replace(self, levels: Mapping[str, str]) -> str:
        """Put another server in its place while compilers run; those that wait for it go on alone."""
        with self._changing:
            return self._replace(levels)

    def _replace(self, levels: Mapping[str, str]) -> str:
        pid = self._place.pid(dict(self._place.server))
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
        """Lead clients to another server that lacks these variables, and let the old one end its work.

        Nobody is sent off to compile alone, as with `replace`: where many wait for other machines, that
        would be more compilers at once than this machine has memory for. Whoever still waits after
        `DRAIN` seconds goes on alone. One that was only stopped is told to go on: clients whose first words
        a killed server has not read fail.
        """
        with self._changing:
            address = dict(self._place.server)
            pid = self._place.pid(address)
            self._environ = {k: v for k, v in self._environ.items() if k not in without}
            if problem := self._run_next():
                return problem
            if pid is not None:
                with contextlib.suppress(OSError):  # Windows tells no pid
                    os.kill(pid, getattr(signal, "SIGCONT", 0))
                old = _Old(pid, address, self._before, threading.Timer(DRAIN, end_tree, (pid, 0.5)))
                old.timer.daemon = True
                old.timer.start()
                self._old.append(old)
            self._lead()
        return ""

    def _run_next(self) -> str:
        """Start one; not by `capture`, for on Windows the server keeps our pipe as long as it lives."""
        environ = {**self._environ, "SCCACHE_IDLE_TIMEOUT": "0", **self._place.next(), **self._levels}
        output: list[bytes] = []
        rc = process.stream((self._program, "--start-server"), env=environ, cwd=None, on_block=output.append)
        return hidden(_reason(rc, b"".join(output)), environ) if rc else ""

    def _lead(self) -> None:
        self._place.lead()
        self._running = True
        self.count_anew()

    def count_anew(self) -> None:
        """Leave out of `answers` what the server has done up to now."""
        self._before = self.statistics()

    def _start_again(self, levels: Mapping[str, str]) -> str:
        """On the same port, as soon as it is free; a client may have started one there, which is as good."""
        self._environ = disk_only(self._environ)
        deadline = time.monotonic() + STOP
        while problem := self.start(levels):
            if time.monotonic() > deadline:
                return problem
            time.sleep(0.5)
        return ""

    def statistics(self) -> str:
        """Return its statistics as JSON; "" when it does not answer."""
        return self._statistics(self._place.server)

    def why_stuck(self) -> str:
        """Return "" when it answers, or is gone, which its clients notice; else why they wait for ever."""
        return "" if self.statistics() else f"it has not answered for {ANSWER:g} s"

    def _statistics(self, address: Mapping[str, str]) -> str:
        environ = {**disk_only(self._environ), **address}
        return process.capture((self._program, *_STATS), env=environ, timeout=ANSWER).answer

    def stop(self, *, at_once: bool = False) -> None:
        """End it; `at_once` also ends what it is compiling, which no client waits for any more."""
        if not self._running:
            return
        self._running = False
        for old in self._old:
            if old.timer.finished.is_set():
                continue  # its time was over, and its pid may be another's by now
            old.timer.cancel()
            if after := self._statistics(old.address):
                self.answers.append((old.before or _EMPTY, after))
            end_tree(old.pid, 0.5)
        self._keep()
        pid = self._place.pid(dict(self._place.server))
        if not at_once or pid is None:
            self._ask_to_stop()
        if pid is not None and (at_once or self._place.pid(dict(self._place.server)) == pid):
            end_tree(pid, 0.5)
        self._place.clear()

    def _ask_to_stop(self) -> None:
        environ = {**disk_only(self._environ), **self._place.server}
        process.capture((self._program, "--stop-server"), env=environ, timeout=STOP)

    def _keep(self) -> None:
        if after := self.statistics():
            self.answers.append((self._before or _EMPTY, after))


def sccache_home(program: str, environ: Mapping[str, str]) -> tuple[Path | None, int]:
    """Return the folder that sccache would use and its limit in bytes; None and 0 when not reported."""
    # An address without a server: it then reports its settings and starts nothing. None that can be made, or
    # removed: one that did start would put its socket there.
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
    """Return a text without the values of variables that hold a login."""
    for name, value in secrets.items():
        if value and re.search("PASSWORD|USERNAME|TOKEN|SECRET|KEY_ID", name):
            text = text.replace(value, "***")
    return text


def _reason(rc: int, output: bytes) -> str:
    """Return the innermost cause: the last line that sccache prints of an error."""
    lines = [line.strip() for line in output.decode(errors="replace").splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith(("Run with SCCACHE_LOG", "sccache: Starting"))]
    return (lines[-1] if lines else f"it ended with exit code {rc}").removeprefix("sccache: error: ")


# ---- ccache


def ccache_home(program: str, environ: Mapping[str, str]) -> tuple[Path | None, int]:
    """Return the folder that ccache uses and its limit in bytes; 0 for no limit, or one that is not known."""
    folder = _setting(program, "cache_dir", environ)
    return (Path(folder) if folder else None), read_size(_setting(program, "max_size", environ))


def read_size(text: str) -> int:
    """ccache's own spelling of a size: "5.0 GB", "5.0 GiB", "0"."""
    match = re.fullmatch(r"([0-9.]+)\s*([kKMGT]i?)?B?", text.strip())
    if match is None:
        return 0
    unit = match[2] or ""
    with contextlib.suppress(ValueError):
        return int(float(match[1]) * (_BINARY.get(unit) or _UNITS.get(unit, 1)))
    return 0


def statistics(program: str, environ: Mapping[str, str]) -> str:
    """Return the counters of its whole folder (--print-stats); "" when it does not report them."""
    return process.capture((program, "--print-stats"), env=environ, timeout=_SECONDS).answer


def clear(program: str, environ: Mapping[str, str]) -> str:
    """Empty its folder by its own command; returns why it failed."""
    captured = process.capture((program, "--clear"), env=environ)
    return "" if captured.rc == 0 else captured.error_text


def _setting(program: str, name: str, environ: Mapping[str, str]) -> str:
    return process.capture((program, "--get-config", name), env=environ, timeout=_SECONDS).answer


# How each cache that has a folder reports it, with its limit in bytes.
HOMES: Final = {"ccache": ccache_home, "sccache": sccache_home}
