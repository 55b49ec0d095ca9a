"""Where a build's own sccache server listens: nobody else's server is met there, and no port is taken.

On Linux that is a Unix socket in a folder that only this user can enter, on Windows a free port
of the loopback. Clients are led by a link to the socket, so that a server can be replaced during a
build without a moment in which none is there.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
import stat
import struct
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_LONGEST: Final = 100  # bytes; a socket's path may have 107


class SocketPlace:
    """The sockets of one checkout's servers (`name` tells apart what may run at the same time)."""

    def __init__(self, root: Path, name: str = "build") -> None:
        key = hashlib.sha256(f"{root}\0{name}".encode(errors="surrogateescape")).hexdigest()[:12]
        self._stem = _private_folder() / key
        self._number = 0

    @property
    def clients(self) -> dict[str, str]:
        """What leads a client to the server."""
        return {"SCCACHE_SERVER_UDS": f"{self._stem}.sock"}

    @property
    def server(self) -> dict[str, str]:
        """What the server listens on to which clients are led."""
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
        """The pids of servers that a killed build has left listening here."""
        found = (_listener(self._socket(number)) for number in (0, 1))
        return tuple(pid for pid in found if pid is not None)

    def pid(self, address: dict[str, str]) -> int | None:
        """The process that listens on an address; None when nobody does."""
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
        """What leads a client to the server."""
        return {"SCCACHE_SERVER_PORT": self._port}

    server = clients

    def next(self) -> dict[str, str]:
        """The same address: the old server has to be gone before another can have it."""
        return self.clients

    def lead(self) -> None:
        """Clients are there already."""

    def leftovers(self) -> tuple[int, ...]:
        """A port that was free has none."""
        return ()

    def pid(self, address: dict[str, str]) -> int | None:
        """Not known: Windows does not tell it without rights."""
        return None

    def clear(self) -> None:
        """Nothing is left of a port."""


Place = SocketPlace | PortPlace


def own_place(root: Path, name: str = "build") -> Place:
    """The place for the server of one checkout."""
    return PortPlace() if sys.platform == "win32" else SocketPlace(root, name)


def server_of(environ: Mapping[str, str]) -> int | None:
    """The process of the server to which an environment leads clients; None where that is not known."""
    address = environ.get("SCCACHE_SERVER_UDS")
    return _listener(Path(address)) if address else None


def _private_folder() -> Path:
    """A folder of this user with a short path; a stranger's folder of that name is not entered."""
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
    """Who listens on a socket, as the kernel tells whoever connects (SO_PEERCRED)."""
    if sys.platform == "win32":
        return None
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as client:
        client.settimeout(2.0)
        client.connect(str(path))
        pid, _, _ = struct.unpack("3i", client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        return int(pid)
    return None
