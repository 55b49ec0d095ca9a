"""Schedulers that answer, refuse, send garbage or nothing, over real sockets."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest

from tests.support.caches import free_port
from tests.support.for_each import each_case
from torchbuild_tasks.features.cluster.ask import WRONG_TOKEN, ask
from torchbuild_tasks.model import Cluster

pytestmark = pytest.mark.integration

STATUS = b'{"num_servers":2,"num_cpus":64,"in_progress":3}'


def http(status: str, body: bytes = b"") -> bytes:
    return b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status.encode(), len(body), body)


@contextlib.contextmanager
def scheduler(*replies: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """Answer each connection with the next reply and record the requests; then send nothing."""
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with contextlib.suppress(OSError):
                for reply in replies:
                    connection, _ = listener.accept()
                    with connection:
                        heard.append(connection.recv(4096))
                        connection.sendall(reply)

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", heard


def test_what_it_has() -> None:
    with scheduler(http("200 OK", STATUS)) as (url, heard):
        assert ask(url) == Cluster(url=url, servers=2, cpus=64, busy=3)
    assert heard[0].startswith(b"GET /api/v1/scheduler/status")
    assert b"Accept: application/json" in heard[0]


@each_case(("status", "problem"), [("400 Bad Request", ""), ("401 Unauthorized", WRONG_TOKEN)])
def test_the_token_is_tried_without_a_job(status: str, problem: str) -> None:
    with scheduler(http("200 OK", STATUS), http(status)) as (url, heard):
        assert ask(url, "t0ken").problem == problem
    assert heard[1].startswith(b"POST /api/v1/scheduler/alloc_job")
    assert b"Authorization: Bearer t0ken" in heard[1] and heard[1].endswith(b"\r\n\r\n")


@each_case(
    "reply",
    [
        http("404 Not Found"),
        http("200 OK", b"<html>"),
        http("200 OK", b"[]"),
        http("200 OK", b'{"num_servers":"x","num_cpus":1,"in_progress":0}'),
        http("200 OK", b"[" * 100000),
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"",
    ],
)
def test_what_is_no_scheduler(reply: bytes) -> None:
    with scheduler(reply) as (url, _):
        assert ask(url, seconds=1).problem


def test_no_server_listens() -> None:
    assert ask(f"http://127.0.0.1:{free_port()}").problem


def test_one_that_says_nothing_is_not_waited_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        assert ask(url, seconds=0.3).problem == "it does not answer within 0.3 s"
