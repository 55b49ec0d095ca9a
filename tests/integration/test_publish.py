"""Packages sent to folders and indexes on loopback: installed from there, cut on the way, never replaced."""

from __future__ import annotations

import contextlib
import email
import gzip
import hashlib
import http.server
import importlib.util
import json
import os
import socket
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from tests.support.driver import Run, environment, torchbuild
from tests.support.wheels import make_wheel

pytestmark = pytest.mark.integration


@pytest.fixture
def wheels(tmp_path: Path) -> list[Path]:
    """Two wheels of torch for anything, with local versions."""
    made = []
    for number in (1, 2):
        content = {"torch/mark.py": b"x = %d\n" % number}
        wheel = make_wheel(tmp_path / "built", content, version=f"2.6.0+mine.{number}", platform="any")
        made.append(wheel.rename(tmp_path / wheel.name.replace("cp311-cp311", "py3-none")))
    return made


def publish(place: str | Path, *wheels: Path, words: tuple[str, ...] = ("--yes",), **environ: str) -> Run:
    named = [word for wheel in wheels for word in ("--file", str(wheel))]
    return torchbuild("publish", place, *named, *words, environ=environ)


def whats(done: Run) -> list[str]:
    assert done.code == 0, done.err
    return [each["what"] for each in done.json["files"]]


def test_a_folder_is_an_index_that_pip_reads(wheels: list[Path], tmp_path: Path) -> None:
    """Also from a static server; what is there is left, other bytes of the same name are refused."""
    folder = tmp_path / "index"
    dry = publish(folder, *wheels, words=("--dry-run", "--json"))
    assert (whats(dry), folder.exists()) == (["send", "send"], False)
    assert publish(folder, wheels[0], words=()).code == 19  # nobody agreed
    assert not folder.exists()
    assert whats(publish(folder, wheels[0], words=("--yes", "--json"))) == ["send"]
    assert whats(publish(folder, *wheels, words=("--yes", "--json"))) == ["there", "send"]
    with served(folder) as url:
        for index in (folder.as_uri(), url):
            got = tmp_path / f"got{len(index)}"
            words = (
                "download",
                "-q",
                "--no-deps",
                "--index-url",
                index,
                "-d",
                str(got),
                "torch==2.6.0+mine.1",
            )
            clean = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
            subprocess.run(
                [sys.executable, "-m", "pip", *words],
                check=True,
                env={**clean, "PIP_CONFIG_FILE": os.devnull},
            )
            assert [path.read_bytes() for path in got.iterdir()] == [wheels[0].read_bytes()]
    before = (folder / "torch" / wheels[0].name).read_bytes()
    other = make_wheel(tmp_path / "other", {"torch/mark.py": b"x = 3\n"}, platform="any").rename(
        tmp_path / "other" / wheels[0].name
    )
    done = publish(folder, other)
    assert (done.code, "nothing is overwritten" in done.err) == (19, True)
    assert (folder / "torch" / wheels[0].name).read_bytes() == before


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    def handler(*words: object) -> http.server.SimpleHTTPRequestHandler:
        return http.server.SimpleHTTPRequestHandler(*words, directory=str(folder))  # type: ignore[arg-type]

    with running(http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)) as url:
        yield url


@contextlib.contextmanager
def running(server: http.server.HTTPServer) -> Iterator[str]:
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Index(http.server.BaseHTTPRequestHandler):
    """An index that loses the connection in the middle of its second file, once."""

    has: dict[str, str] = {}
    logins: list[str] = []
    cut = [False, True]

    def do_GET(self) -> None:
        files = [{"filename": name, "hashes": {"sha256": digest}} for name, digest in self.has.items()]
        self.answer(200, json.dumps({"files": files}).encode())

    def do_POST(self) -> None:
        if self.cut and self.cut.pop(0):
            self.rfile.read(100)
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        body = self.rfile.read(int(self.headers["Content-Length"]))
        whole = f"Content-Type: {self.headers['Content-Type']}\n\n".encode() + body
        for part in email.message_from_bytes(whole).get_payload():
            if name := part.get_filename():  # type: ignore[union-attr]
                content = part.get_payload(decode=True)  # type: ignore[union-attr]
                self.has[name] = hashlib.sha256(content).hexdigest()  # type: ignore[arg-type]
        self.logins.append(self.headers["Authorization"])
        self.answer(200, b"")

    def answer(self, code: int, body: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words: object) -> None:
        """Say nothing."""


def test_what_was_cut_goes_on_with_the_file_that_it_was_at(wheels: list[Path]) -> None:
    pytest.importorskip("twine")
    login = {"TWINE_USERNAME": "me", "TWINE_PASSWORD": "hunter22hunter22"}
    with running(http.server.ThreadingHTTPServer(("127.0.0.1", 0), Index)) as url:
        done = publish(url, *wheels, words=("--yes",), **login)
        assert done.code == 19
        assert "continues here" in done.err
        assert "hunter22" not in done.err + done.out
        assert list(Index.has) == [wheels[0].name]
        assert whats(publish(url, *wheels, words=("--yes", "--json"), **login)) == ["there", "send"]
        assert list(Index.has) == [wheel.name for wheel in wheels]
    assert len(Index.logins) == 2  # each file once
    assert set(Index.logins) == {"Basic bWU6aHVudGVyMjJodW50ZXIyMg=="}


class Small(Index):
    """An index that takes small files."""

    has: dict[str, str] = {}
    cut: list[bool] = []

    def do_POST(self) -> None:
        if int(self.headers["Content-Length"]) < 20_000:
            super().do_POST()
        else:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.answer(413, b"")


def test_what_is_too_large_for_an_index_is_refused_before_anything_else_is_there(
    wheels: list[Path], tmp_path: Path
) -> None:
    pytest.importorskip("twine")
    large = make_wheel(tmp_path / "large", {"torch/noise": os.urandom(30_000)}, version="2.6.0+z")
    login = {"TWINE_USERNAME": "me", "TWINE_PASSWORD": "hunter22hunter22"}
    with running(http.server.ThreadingHTTPServer(("127.0.0.1", 0), Small)) as url:
        done = publish(url, *wheels, large, words=("--yes",), **login)
    assert (done.code, Small.has) == (19, {})
    assert f"{large.name} was not accepted" in done.err and "413" in done.err


def test_a_real_index_takes_it_once(wheels: list[Path], tmp_path: Path) -> None:
    pytest.importorskip("twine")
    # Looked for only: imported, its bottle leaves a finder behind that warns at the next import.
    if importlib.util.find_spec("pypiserver") is None:
        pytest.skip("pypiserver is not here")
    packages = tmp_path / "packages"
    packages.mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    argv = [
        sys.executable,
        "-m",
        "pypiserver",
        "run",
        "-i",
        "127.0.0.1",
        "-p",
        str(port),
        "-P",
        ".",
        "-a",
        ".",
    ]
    url, login = f"http://127.0.0.1:{port}", {"TWINE_USERNAME": "a", "TWINE_PASSWORD": "b"}
    server = subprocess.Popen([*argv, str(packages)], env=environment(), stderr=subprocess.DEVNULL)
    try:
        for _ in range(100):
            with contextlib.suppress(requests.ConnectionError):
                requests.get(url, timeout=5)
                break
            time.sleep(0.2)
        assert whats(publish(url, wheels[0], words=("--yes", "--json"), **login)) == ["send"]
        assert [path.read_bytes() for path in packages.iterdir()] == [wheels[0].read_bytes()]
        assert whats(publish(url, wheels[0], words=("--yes", "--json"), **login)) == ["there"]
    finally:
        server.terminate()
        server.wait()


def test_an_index_that_cannot_be_reached_gets_nothing(wheels: list[Path]) -> None:
    done = publish("http://127.0.0.1:1", *wheels)
    assert (done.code, "Nothing was sent." in done.err, "--index" in done.err) == (19, True, True)


def test_what_is_no_complete_package_is_refused(wheels: list[Path], tmp_path: Path) -> None:
    cut = tmp_path / "cut" / wheels[0].name
    cut.parent.mkdir()
    cut.write_bytes(wheels[0].read_bytes()[:-40])
    for path, says in ((cut, "not a complete package"), (tmp_path / "gone.whl", "There is no")):
        done = publish(tmp_path / "index", path)
        assert (done.code, says in done.err) == (19, True), done.err
    assert not (tmp_path / "index").exists()


def test_a_source_distribution_that_is_a_bomb_is_refused(tmp_path: Path) -> None:
    """One header asks for a gigabyte; it is read up to a few megabytes."""
    bomb = tmp_path / "torch-2.6.0.tar.gz"
    header = tarfile.TarInfo("././@PaxHeader")
    header.type, header.size = tarfile.XHDTYPE, 1 << 30
    with gzip.open(bomb, "wb", compresslevel=1) as file:
        file.write(header.tobuf(tarfile.USTAR_FORMAT) + bytes(16 << 20))
    done = publish(tmp_path / "index", bomb)
    assert (done.code, "between two members" in done.err) == (19, True), done.err
    assert not (tmp_path / "index").exists()
