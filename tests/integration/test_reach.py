"""The doctor's network tests: servers that answer, refuse, hang, or have an unknown name."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from torchbuild_tasks.features.doctor.act import reach
from torchbuild_tasks.model import Reached
from torchbuild_tasks.system.net.client import Net

pytestmark = pytest.mark.integration


class Answers(BaseHTTPRequestHandler):
    """Says the number of its server for everything."""

    def do_GET(self) -> None:
        self.send_response(self.server.status)  # type: ignore[attr-defined]
        self.end_headers()

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "http_proxy",
        "https_proxy",
        "all_proxy",
        "no_proxy",
        "requests_ca_bundle",
        "curl_ca_bundle",
    ):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def server() -> Iterator[HTTPServer]:
    made = HTTPServer(("127.0.0.1", 0), Answers)
    made.status = 404  # type: ignore[attr-defined]
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    yield made
    made.shutdown()
    made.server_close()
    thread.join()


def one(url: str, limit: float = 20.0) -> Reached:
    (found,) = reach([(url, "a helper")], Net(), limit=limit)
    return found


def test_a_server_that_answers_anything_is_reached(server: HTTPServer) -> None:
    found = one(f"http://127.0.0.1:{server.server_port}/some/file")
    assert (found.dns, found.https, found.proxy) == ("", "", "")
    assert found.ahead is not None and abs(found.ahead) < 30


def test_an_unknown_name() -> None:
    found = one("https://no-such-host.invalid/x")
    assert found.dns and "name does not resolve" in found.dns
    assert found.https is None


def test_a_server_that_does_not_take_the_connection() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, and nobody listens
        found = one(f"http://127.0.0.1:{taken.getsockname()[1]}/")
    assert found.dns == ""
    assert found.https and "connection failed" in found.https


def test_a_host_that_hangs_is_cut_and_delays_no_other(server: HTTPServer) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        urls = [f"http://127.0.0.1:{silent.getsockname()[1]}/", f"http://127.0.0.1:{server.server_port}/"]
        start = time.monotonic()
        hung, _ = reach([(url, "x") for url in urls], Net(), limit=1.0)
        assert time.monotonic() - start < 30  # a hang guard, no measurement
    assert hung.https and ("in time" in hung.https or "within" in hung.https)


def test_a_proxy_is_used_instead_and_its_refusal_is_reported(
    server: HTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.status = 407  # type: ignore[attr-defined]
    monkeypatch.setenv("http_proxy", f"http://me:hunter2@127.0.0.1:{server.server_port}")
    found = one("http://no-such-host.invalid/x")
    assert (found.dns, found.proxy) == ("", "127.0.0.1")
    assert found.https == "the proxy answered 407 Proxy Authentication Required"
    assert "hunter2" not in repr(found)


def test_variables_that_lead_nowhere_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://[broken")
    assert "proxy is not an address" in str(one("http://127.0.0.1:9/").dns)
    monkeypatch.delenv("http_proxy")
    monkeypatch.setenv("SSL_CERT_FILE", "/no/such/file.pem")
    assert "/no/such/file.pem" in str(one("http://127.0.0.1:9/").https)
