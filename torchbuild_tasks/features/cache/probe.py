"""Test whether shared caches respond, before and during a build.

One that dies while sccache uses it would hold up every miss for a minute.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable, Mapping
from typing import Final

from torchbuild_tasks.features.cache.address import REAPI, Remote
from torchbuild_tasks.system.periodic import Periodic

SECONDS: Final = 3.0
_REFUSED: Final = ("-NOAUTH", "-WRONGPASS", "-ERR invalid password", "-ERR AUTH")
_SETTINGS: Final = b"\0\0\0\4\0\0\0\0\0"  # an empty frame of type 4 (RFC 9113, 4.1 and 6.5)
EVERY: Final = 3.0  # seconds between two tests


def why_unreachable(remote: Remote, seconds: float = SECONDS) -> str:
    """Return "" if the shared cache responds within `seconds`, else why it cannot be used. Never raises."""
    try:
        if remote.web:
            return _web(remote, seconds)
        with _connect(remote, seconds) as connection:
            ask = {"redis": _redis, REAPI: _grpc}.get(remote.level, _probe_memcached)
            return ask(connection, remote)
    except TimeoutError:
        return f"it does not answer within {seconds:g} s"
    except OSError as error:
        return error.strerror or str(error)


class _Connection:
    """A socket with one deadline for all operations."""

    def __init__(self, plain: socket.socket, deadline: float) -> None:
        self._socket = plain
        self._deadline = deadline
        self._rest = b""

    def __enter__(self) -> _Connection:
        return self

    def __exit__(self, *ended: object) -> None:
        self._socket.close()

    def send(self, data: bytes) -> None:
        self._wait()
        self._socket.sendall(data)

    def line(self) -> str:
        while b"\r\n" not in self._rest:
            self._receive()
        line, _, self._rest = self._rest.partition(b"\r\n")
        return line.decode(errors="replace")

    def bytes(self, count: int) -> bytes:
        while len(self._rest) < count:
            self._receive()
        data, self._rest = self._rest[:count], self._rest[count:]
        return data

    def _receive(self) -> None:
        self._wait()
        data = self._socket.recv(4096)
        if not data or len(self._rest) > 1 << 16:
            raise OSError("it closed the connection")
        self._rest += data

    def _wait(self) -> None:
        remaining = self._deadline - time.monotonic()
        if remaining <= 0:
            raise TimeoutError
        self._socket.settimeout(remaining)


def _connect(remote: Remote, seconds: float) -> _Connection:
    deadline = time.monotonic() + seconds
    plain = socket.create_connection((remote.host, remote.port), timeout=seconds)
    try:
        if remote.tls:
            context = ssl.create_default_context(cafile=remote.ca or None)
            if remote.level == REAPI:
                context.set_alpn_protocols(["h2"])
            plain = context.wrap_socket(plain, server_hostname=remote.host)
    except BaseException:
        plain.close()
        raise
    return _Connection(plain, deadline)


def _redis(connection: _Connection, remote: Remote) -> str:
    """Send AUTH if there is a password, then PING, in Redis's protocol."""
    if remote.password:
        connection.send(_command("AUTH", *filter(None, (remote.user, remote.password))))
        if not (reply := connection.line()).startswith("+OK"):
            return f"it refused the password ({reply.lstrip('-').partition(' ')[0]})"
    connection.send(_command("PING"))
    reply = connection.line()
    if reply.startswith(_REFUSED):
        return "it wants a password"
    return "" if reply.startswith("+PONG") else f"it is not a Redis that works: {reply[:80]}"


def _command(*words: str) -> bytes:
    parts = (word.encode() for word in words)
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)


def _probe_memcached(connection: _Connection, remote: Remote) -> str:
    """Query the version; with a login the protocol is another, so only connect."""
    if remote.user:
        return ""
    connection.send(b"version\r\n")
    reply = connection.line()
    return "" if reply.startswith("VERSION") else f"it is not memcached: {reply[:80]}"


def _grpc(connection: _Connection, remote: Remote) -> str:
    """Start HTTP/2 (RFC 9113, 3.4): each side sends its settings; a server that hangs sends none."""
    connection.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _SETTINGS)
    return "" if connection.bytes(len(_SETTINGS))[3] == _SETTINGS[3] else "it does not speak HTTP/2"


def _web(remote: Remote, seconds: float) -> str:
    """Send a HEAD request; accept any response but a server error and, for WebDAV, a refused login."""
    import requests

    auth = (remote.user, remote.password) if remote.level == "webdav" and remote.user else None
    try:
        answer = requests.head(remote.web, auth=auth, timeout=seconds, allow_redirects=False)
    except requests.Timeout:
        return f"it does not answer within {seconds:g} s"
    except requests.RequestException as error:
        return f"it cannot be reached ({type(error).__name__})"
    if remote.level == "webdav" and answer.status_code in (401, 403):
        return f"it refused the login ({answer.status_code})"
    return f"it answers {answer.status_code}" if answer.status_code >= 500 else ""


class Watch(Periodic):
    """A thread that tests each shared cache every few seconds, and reports once if one fails.

    Args:
        probes: by name, a function that returns "" while the shared cache answers, else why not.
        on_lost: called once, in that thread, with the name and the reason.
        every: seconds between two looks.
    """

    def __init__(
        self,
        probes: Mapping[str, Callable[[], str]],
        on_lost: Callable[[str, str], None],
        every: float = EVERY,
    ) -> None:
        self._probes = probes
        self._on_lost = on_lost
        self._every = every
        super().__init__("shared cache", self._test, every if probes else None)

    def _test(self) -> float | None:
        for name, probe in self._probes.items():
            # Test again: a server may be busy for a moment.
            if (probe() and not self.is_over) and (reason := probe()) and not self.is_over:
                self._on_lost(name, reason)
                return None
        return self._every
