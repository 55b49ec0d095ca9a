"""A server that is connected to and says nothing is noticed, and what waits for it goes on."""

from __future__ import annotations

import http.server
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.capabilities import needs
from torchbuild_tasks.features.cluster.hanging import HangWatch, is_silent
from torchbuild_tasks.system.connections import list_peers

pytestmark = [
    pytest.mark.integration,
    needs(sys.platform == "linux", "Linux, which lends a program's socket"),
]
# As sccache's own server: it has a socket for its clients, and connections to others.
SERVER = """
import socket, sys
ours = socket.socket(socket.AF_UNIX)
ours.bind(sys.argv[1])
ours.listen()
with socket.create_connection(("127.0.0.1", int(sys.argv[2]))) as connection:
    print("connected", flush=True)
    sys.exit(3 if connection.recv(1) == b"" else 4)
"""


class Scheduler(http.server.BaseHTTPRequestHandler):
    """A scheduler with one server, at the class's `port`; `asked` records the requests."""

    port = 0
    asked: list[str] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        known = self.path == f"/api/v1/scheduler/server_certificate/127.0.0.1:{self.port}"
        self.send_response(200 if known else 500)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def silent() -> Iterator[int]:
    """The port of a server that takes connections and answers none."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def scheduler() -> Iterator[str]:
    Scheduler.asked = []
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Scheduler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def waiting(folder: Path, port: int) -> subprocess.Popen[str]:
    argv = [sys.executable, "-c", SERVER, str(folder / "socket"), str(port)]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline() == "connected\n"
    assert list_peers(process.pid) == (("127.0.0.1", port),)
    return process


def test_what_waits_for_a_server_that_hangs_goes_on(tmp_path: Path, silent: int, scheduler: str) -> None:
    Scheduler.port = silent
    said: list[str] = []
    given_up: list[str] = []
    environ = {"SCCACHE_SERVER_UDS": str(tmp_path / "socket")}
    process = waiting(tmp_path, silent)
    with HangWatch(scheduler, environ, said.append, given_up.append, 0.05, 0.2):
        assert process.wait(30) == 3
    text = (
        f"Warning: the server 127.0.0.1:{silent} does not answer within 0.2 s; what waits for it is compiled"
    )
    assert said == [f"{text} here."] and given_up == []


def test_where_connections_cannot_be_broken_nothing_more_is_sent(
    tmp_path: Path, silent: int, scheduler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torchbuild_tasks.features.cluster.hanging.break_connections", lambda *words: 0)
    Scheduler.port = silent
    said: list[str] = []
    given_up = threading.Event()
    environ = {"SCCACHE_SERVER_UDS": str(tmp_path / "socket")}
    process = waiting(tmp_path, silent)
    with HangWatch(scheduler, environ, said.append, lambda reason: given_up.set(), 0.05, 0.2):
        assert given_up.wait(30)
    process.kill()
    process.wait()
    assert said == []


def test_what_the_scheduler_does_not_know_is_left_alone(tmp_path: Path, silent: int, scheduler: str) -> None:
    """The connection may be to a shared cache; the scheduler is queried once and nothing is ended."""
    Scheduler.port = 0
    said: list[str] = []
    environ = {"SCCACHE_SERVER_UDS": str(tmp_path / "socket")}
    process = waiting(tmp_path, silent)
    watch = HangWatch(scheduler, environ, said.append, said.append, 0.05, 0.2)
    with watch, pytest.raises(subprocess.TimeoutExpired):
        process.wait(1)
    process.kill()
    process.wait()
    assert said == [] and len(Scheduler.asked) == 1


def test_one_that_answers_or_is_gone_does_not_hang(silent: int, scheduler: str) -> None:
    assert is_silent("127.0.0.1", silent, 0.2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        gone = server.getsockname()[1]
    assert not is_silent("127.0.0.1", gone, 5)
    assert not is_silent("127.0.0.1", int(scheduler.rpartition(":")[2]), 5)  # it does not speak TLS
