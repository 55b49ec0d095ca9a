"""Servers that never come to an end, on real sockets, with limits so short that no test depends on speed."""

from __future__ import annotations

import contextlib
import gc
import http.server
import shutil
import socket
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from torchbuild_tasks.errors import DownloadFailed
from torchbuild_tasks.system.net.client import Net
from torchbuild_tasks.system.net.download import fetch, fetch_all
from torchbuild_tasks.system.net.transfer import Origin, Remote
from torchbuild_tasks.values import replace

pytestmark = pytest.mark.integration
BRIEF = Net(answer=30.0, patience=0.4, least=1000.0, attempts=2, back_off=0.0, largest=1 << 20)
Act = Callable[[socket.socket, threading.Event], None]


@contextlib.contextmanager
def serving(act: Act) -> Iterator[str]:
    """Let `act` have each connection, once its request is read; the address."""
    over = threading.Event()

    def answer(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            connection.recv(65536)
            act(connection, over)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=answer, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=accept, daemon=True).start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        over.set()


def drip(connection: socket.socket, over: threading.Event) -> None:
    while not over.wait(0.05):
        connection.sendall(b"a")


def drip_headers(connection: socket.socket, over: threading.Event) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
    drip(connection, over)


def drip_body(connection: socket.socket, over: threading.Event) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
    drip(connection, over)


def drip_trailers(connection: socket.socket, over: threading.Event) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n")
    while not over.wait(0.05):
        connection.sendall(b"X: y\r\n")


def drip_chunk_size(connection: socket.socket, over: threading.Event) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;")
    drip(connection, over)


def pour(connection: socket.socket, over: threading.Event) -> None:
    while not over.is_set():
        connection.sendall(b"10000\r\n" + bytes(65536) + b"\r\n")


def endless_chunks(connection: socket.socket, over: threading.Event) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    pour(connection, over)


def endless(connection: socket.socket, over: threading.Event) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
    pour(connection, over)


def large(connection: socket.socket, over: threading.Event) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n")
    pour(connection, over)


def failure(act: Act, folder: Path, net: Net = BRIEF, scheme: str = "http", sha256: str | None = None) -> str:
    with serving(act) as host:
        remote = Remote(name="f", urls=(f"{scheme}://{host}/f",), sha256=sha256)
        with pytest.raises(DownloadFailed) as caught:
            fetch(remote, folder / "f", net, lambda *progress: None)
    return " ".join((caught.value.what, *caught.value.looked))


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("act", [drip, drip_headers])
def test_headers_and_handshakes_that_drip_come_to_an_end(act: Act, scheme: str, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # ssl's socket of a handshake that was cut
        assert "2 attempts" in failure(act, tmp_path, replace(BRIEF, answer=0.4), scheme)
        gc.collect()


def test_a_proxy_that_drips_comes_to_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(drip_headers) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://{proxy}")
        remote = Remote(name="f", urls=("https://example.invalid/f",))
        with pytest.raises(DownloadFailed, match="could not be downloaded"):
            fetch(remote, tmp_path / "f", replace(BRIEF, answer=0.4), lambda *progress: None)


def test_a_body_that_drips_comes_to_an_end(tmp_path: Path) -> None:
    assert "less than 1000 a second (2 attempts)" in failure(drip_body, tmp_path)


@pytest.mark.parametrize("act", [drip_trailers, drip_chunk_size])
def test_what_stands_around_chunks_comes_to_an_end(act: Act, tmp_path: Path) -> None:
    """Nothing of it is a part of the body, so no speed is measured."""
    assert "(2 attempts)" in failure(act, tmp_path, replace(BRIEF, answer=0.4))
    assert not (tmp_path / "f").exists()


def test_a_slow_body_above_the_least_speed_is_waited_for(tmp_path: Path) -> None:
    def act(connection: socket.socket, over: threading.Event) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n")
        for _ in range(8):
            over.wait(0.05)
            connection.sendall(b"a")

    with serving(act) as host:
        net = replace(BRIEF, least=0.01, patience=0.1)
        fetch(Remote(name="f", urls=(f"http://{host}/f",)), tmp_path / "f", net, lambda *progress: None)
    assert (tmp_path / "f").read_bytes() == b"a" * 8


@pytest.mark.parametrize("sha256", [None, "ab" * 32])
@pytest.mark.parametrize("act", [endless_chunks, large])
def test_what_has_no_size_may_not_be_larger_than_anything_known(
    act: Act, sha256: str | None, tmp_path: Path
) -> None:
    assert f"has more than {1 << 20} bytes" in failure(act, tmp_path, sha256=sha256)
    assert not list(tmp_path.glob("f*"))


def test_a_body_without_any_length_ends_too(tmp_path: Path) -> None:
    assert f"has more than {1 << 20} bytes" in failure(endless, tmp_path, sha256="ab" * 32)
    assert not list(tmp_path.glob("f*"))


def test_the_disk_is_looked_at_while_a_file_grows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first look finds room, and the next, 16 MiB later, none."""
    looks = iter((1 << 30, 1 << 30, 5))
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=next(looks, 5)))
    said = failure(endless_chunks, tmp_path, replace(BRIEF, largest=1 << 40))
    assert "no room for f: 5 bytes are free" in said
    assert (tmp_path / "f.part").stat().st_size < 64 << 20


def test_where_a_file_really_came_from_is_known(tmp_path: Path) -> None:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            moved = self.path == "/f"
            self.send_response(302 if moved else 200)
            self.send_header("Location" if moved else "ETag", "/g?token=secret" if moved else '"v1"')
            self.send_header("Content-Length", "0" if moved else "3")
            self.end_headers()
            self.wfile.write(b"" if moved else b"abc")

        def log_message(self, format: str, *args: object) -> None: ...

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        base = f"http://127.0.0.1:{server.server_port}"
        seen: dict[Path, Origin] = {}
        remote = Remote(name="f", urls=(f"{base}/f",))
        fetch_all(((remote, tmp_path / "f"),), BRIEF, lambda *progress: None, seen=seen)
        server.shutdown()
    origin = seen[tmp_path / "f"]
    assert (origin.url, origin.final, origin.etag) == (f"{base}/f", f"{base}/g?token=...", '"v1"')
