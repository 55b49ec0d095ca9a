"""Shared caches that answer, refuse, send garbage or nothing, over real sockets."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.caches import free_port
from tests.support.for_each import each_case
from torchbuild_tasks.features.cache.address import Remote
from torchbuild_tasks.features.cache.probe import why_unreachable

pytestmark = pytest.mark.integration


@contextlib.contextmanager
def server(*replies: bytes) -> Iterator[int]:
    """Accept one connection and answer each message with the next reply; after the last, send nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with contextlib.suppress(OSError):
                connection, _ = listener.accept()
                with connection:
                    for reply in replies:
                        connection.recv(4096)
                        connection.sendall(reply)
                    while connection.recv(4096):
                        pass

        threading.Thread(target=serve, daemon=True).start()
        yield listener.getsockname()[1]


def asked(port: int, kind: str = "redis", **changes: Any) -> str:
    remote = Remote(level=kind, shown="", host="127.0.0.1", port=port, **changes)
    return why_unreachable(remote, seconds=0.5)


@each_case(
    ("replies", "login", "reason"),
    [
        ((b"+PONG\r\n",), {}, ""),
        ((b"+OK\r\n", b"+PONG\r\n"), {"password": "p"}, ""),
        ((b"-NOAUTH Authentication required.\r\n",), {}, "wants a password"),
        ((b"-WRONGPASS invalid\r\n",), {"user": "u", "password": "p"}, "refused the password"),
        ((b"HTTP/1.1 400 Bad Request\r\n\r\n",), {}, "not a Redis"),
        ((b"+PON",), {}, "does not answer"),
        ((b"-LOADING Redis is loading\r\n",), {}, "not a Redis that works"),
    ],
)
def test_redis(replies: tuple[bytes, ...], login: dict[str, str], reason: str) -> None:
    with server(*replies) as port:
        said = asked(port, **login)
    assert reason in said
    assert bool(said) is bool(reason)


@each_case(
    ("reply", "login", "reason"),
    [
        (b"VERSION 1.6.18\r\n", {}, ""),
        (b"ERROR\r\n", {}, "not memcached"),
        (b"", {"user": "u"}, ""),
    ],
)
def test_memcached(reply: bytes, login: dict[str, str], reason: str) -> None:
    with server(reply) as port:
        said = asked(port, "memcached", **login)
    assert reason in said
    assert bool(said) is bool(reason)


@each_case(
    ("kind", "status", "reason"),
    [
        ("webdav", "200 OK", ""),
        ("webdav", "404 Not Found", ""),
        ("webdav", "401 Unauthorized", "refused the login"),
        ("webdav", "503 Service Unavailable", "503"),
        ("s3", "403 Forbidden", ""),
    ],
)
def test_the_web(kind: str, status: str, reason: str) -> None:
    with server(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode()) as port:
        said = asked(port, kind, web=f"http://127.0.0.1:{port}/", user="u", password="p")
    assert reason in said
    assert bool(said) is bool(reason)


@each_case("kind", ["redis", "memcached", "webdav", "s3"])
def test_no_server_and_silence(kind: str) -> None:
    closed = free_port()
    web = "http://127.0.0.1:{}/" if kind in ("webdav", "s3") else ""
    assert asked(closed, kind, web=web.format(closed))
    with server() as port:
        start = time.monotonic()
        assert "does not answer" in asked(port, kind, web=web.format(port))
        assert time.monotonic() - start < 30  # hang guard


@each_case(
    ("replies", "reason"),
    [
        ((b"\0\0\6\4\0\0\0\0\0\0\3\0\0\0d",), ""),
        ((b"HTTP/1.1 400 Bad Request\r\n\r\n",), "does not speak HTTP/2"),
        ((), "does not answer"),
    ],
)
def test_a_remote_execution_api_opens_with_its_settings(replies: tuple[bytes, ...], reason: str) -> None:
    with server(*replies) as port:
        said = asked(port, "reapi")
    assert reason in said
    assert bool(said) is bool(reason)
