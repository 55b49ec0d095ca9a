"""Where a server listens: short, private, one for each checkout, and led to without a gap."""

from __future__ import annotations

import os
import socket
import tempfile
from pathlib import Path

import pytest

from tests.support.capabilities import needs_unix_sockets
from torchbuild_tasks.features.cache.server import PortPlace, SocketPlace

pytestmark = pytest.mark.integration


def listen(address: dict[str, str]) -> socket.socket:
    server = socket.socket(socket.AF_UNIX)
    server.bind(address["SCCACHE_SERVER_UDS"])
    server.listen()
    return server


def connects_to(place: SocketPlace, server: socket.socket) -> bool:
    server.settimeout(2)
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(place.clients["SCCACHE_SERVER_UDS"])
        try:
            server.accept()[0].close()
        except TimeoutError:
            return False
    return True


@needs_unix_sockets
def test_a_deep_checkout_has_a_short_socket_in_a_private_folder(tmp_path: Path) -> None:
    path = Path(SocketPlace(tmp_path / ("deep/" * 60)).clients["SCCACHE_SERVER_UDS"])
    assert len(os.fsencode(path)) < 108
    assert path.parent.stat().st_mode & 0o077 == 0
    assert path.parent.stat().st_uid == os.getuid()


@needs_unix_sockets
def test_checkouts_and_names_are_distinct(tmp_path: Path) -> None:
    places = (SocketPlace(tmp_path), SocketPlace(tmp_path / "other"), SocketPlace(tmp_path, "serve"))
    assert len({place.clients["SCCACHE_SERVER_UDS"] for place in places}) == 3


@needs_unix_sockets
def test_a_too_long_runtime_folder_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / ("x" * 120)))
    assert len(SocketPlace(tmp_path).clients["SCCACHE_SERVER_UDS"]) < 108


@needs_unix_sockets
def test_a_folder_that_others_can_enter_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory(prefix="t") as base:  # short: tmp_path could be too long by itself
        monkeypatch.setenv("XDG_RUNTIME_DIR", base)
        strange = Path(base) / f"torchbuild-{os.getuid()}"
        own = SocketPlace(Path("/checkout")).clients["SCCACHE_SERVER_UDS"]
        assert Path(own).parent == strange
        strange.chmod(0o777)
        other = SocketPlace(Path("/checkout")).clients["SCCACHE_SERVER_UDS"]
        assert Path(other).parent != strange
        assert Path(other).parent.stat().st_mode & 0o077 == 0


@needs_unix_sockets
def test_clients_are_led_from_one_server_to_the_next(tmp_path: Path) -> None:
    place = SocketPlace(tmp_path)
    with listen(place.next()) as first:
        place.lead()
        assert connects_to(place, first)
        assert place.pid() == os.getpid()
        with listen(place.next()) as second:
            assert connects_to(place, first)  # not before lead()
            place.lead()
            assert connects_to(place, second)
        assert place.leftovers() == (os.getpid(),)
    place.clear()
    assert place.leftovers() == ()
    assert not Path(place.clients["SCCACHE_SERVER_UDS"]).is_symlink()


def test_a_port_is_free_and_the_same_for_all() -> None:
    place = PortPlace()
    port = int(place.clients["SCCACHE_SERVER_PORT"])
    with socket.create_server(("127.0.0.1", port)):
        assert place.next() == place.server == place.clients
