"""Wheels found on a real index and in a real folder, with pip's own settings, and the same as pip finds."""

from __future__ import annotations

import hashlib
import html
import http.server
import json
import os
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from torchbuild_tasks.effects.fetch.index import Wheel, find_wheel, pip_settings
from torchbuild_tasks.effects.fetch.net import Net

pytestmark = pytest.mark.integration

JSON = "application/vnd.pypi.simple.v1+json"
NAMES = [
    "tiny_lib-1.0-py2.py3-none-win_amd64.whl",
    "tiny_lib-1.0-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
    "tiny_lib-1.0-py3-none-win32.whl",
    "tiny_lib-1.1-py3-none-win_amd64.whl",
]
TAGS = ("win_amd64", "manylinux2014_x86_64", "win32")


def make_wheel(path: Path) -> None:
    """A wheel that pip takes, with one data file."""
    name, version, rest = path.name.removesuffix(".whl").split("-", 2)
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(f"{name}-{version}.data/data/lib/{name}.txt", rest)
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        wheel.writestr(f"{info}/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: {rest}\n")
        wheel.writestr(f"{info}/RECORD", "")


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    folder = tmp_path / "some wheels"
    folder.mkdir()
    for name in NAMES:
        make_wheel(folder / name)
    return folder


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def html_page(wheels: Path) -> bytes:
    links = (
        f'<a href="../../files/{html.escape(path.name)}#sha256={sha256(path)}">{html.escape(path.name)}</a>'
        for path in wheels.iterdir()
    )
    return f"<!DOCTYPE html><html><body>{'<br>'.join(links)}</body></html>".encode()


def json_page(wheels: Path) -> bytes:
    files = [
        {
            "filename": path.name,
            "url": f"../../files/{path.name}",
            "hashes": {"sha256": sha256(path)},
            "size": path.stat().st_size,
        }
        for path in wheels.iterdir()
    ]
    return json.dumps({"meta": {"api-version": "1.1"}, "name": "tiny-lib", "files": files}).encode()


class Index(http.server.ThreadingHTTPServer):
    """A package index on loopback; `speaks_json` makes it PEP 691, else it is PEP 503."""

    wheels: Path
    speaks_json = False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(http.server.BaseHTTPRequestHandler):
    server: Index

    def do_GET(self) -> None:
        file = self.server.wheels / self.path.rpartition("/")[2]
        if self.path == "/simple/tiny-lib/" and self.server.speaks_json:
            assert JSON in self.headers["Accept"]
            self.answer(json_page(self.server.wheels), JSON)
        elif self.path == "/simple/tiny-lib/":
            self.answer(html_page(self.server.wheels), "text/html")
        elif self.path.startswith("/files/") and file.is_file():
            self.answer(file.read_bytes(), "application/octet-stream")
        else:
            self.send_error(404)

    def answer(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def index(wheels: Path) -> Iterator[Index]:
    with Index(("127.0.0.1", 0), Handler) as server:
        server.wheels = wheels
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def environ(**more: str) -> dict[str, str]:
    """Ours, with pip knowing nothing but what is said here."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    return {**ours, "PIP_CONFIG_FILE": os.devnull, **more}


def found(env: dict[str, str], tag: str, version: str = "1.0") -> Wheel:
    net = Net()
    with net.session() as session:
        return find_wheel("Tiny.Lib", version, tag, pip_settings(env), session, net)


def what_pip_takes(env: dict[str, str], tag: str, folder: Path) -> Path:
    """The file that pip itself downloads for this tag."""
    argv = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "--no-cache-dir"]
    argv += ["--no-deps", "--only-binary=:all:", "--platform", tag, "-d", str(folder), "tiny-lib==1.0"]
    done = subprocess.run(argv, env=env, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    (file,) = folder.iterdir()
    return file


@pytest.mark.parametrize("speaks_json", [False, True], ids=["PEP 503", "PEP 691"])
def test_an_index(index: Index, wheels: Path, tmp_path: Path, speaks_json: bool) -> None:
    index.speaks_json = speaks_json
    env = environ(PIP_INDEX_URL=f"{index.url}/simple")
    for tag, name in zip(TAGS, NAMES, strict=False):
        wheel = found(env, tag)
        size = (wheels / name).stat().st_size if speaks_json else None
        assert wheel == Wheel(
            name=name, url=f"{index.url}/files/{name}", sha256=sha256(wheels / name), size=size
        )
    taken = what_pip_takes(env, "win_amd64", tmp_path / "pip")
    assert (taken.name, sha256(taken)) == (NAMES[0], sha256(wheels / NAMES[0]))


def test_a_folder(wheels: Path, tmp_path: Path) -> None:
    settings = tmp_path / ("a long name, as homes on a network have, " * 3 + "end") / "pip.conf"
    settings.parent.mkdir()
    link = wheels.as_uri()  # a path with a space would be two, for pip too
    settings.write_text(f"[global]\nno-index = true\n[install]\nfind-links = {link}\n", "ascii")
    env = environ(PIP_CONFIG_FILE=str(settings))
    for tag, name in zip(TAGS, NAMES, strict=False):
        wheel = found(env, tag)
        size = (wheels / name).stat().st_size
        assert wheel == Wheel(name=name, url=(wheels / name).as_uri(), sha256=None, size=size)


def test_an_index_in_a_folder_behind_one_that_is_not_there(wheels: Path, tmp_path: Path) -> None:
    project = tmp_path / "index" / "simple" / "tiny-lib"
    project.mkdir(parents=True)
    (project / "index.html").write_bytes(html_page(wheels).replace(b"../../files", wheels.as_uri().encode()))
    env = environ(PIP_INDEX_URL=(tmp_path / "nothing").as_uri(), PIP_EXTRA_INDEX_URL=project.parent.as_uri())
    wheel = found(env, "win_amd64")
    assert wheel.url == (wheels / NAMES[0]).as_uri()
    assert wheel.sha256 == sha256(wheels / NAMES[0])
    assert what_pip_takes(env, "win_amd64", tmp_path / "pip").name == wheel.name
