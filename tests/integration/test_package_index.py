"""Wheels by real pip, from a real index on loopback and from folders, with pip's own settings."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import http.server
import importlib.util
import json
import os
import sys
import threading
import time
import zipfile
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import psutil
import pytest
from packaging.tags import platform_tags

from tests.support.capabilities import needs
from torchbuild_tasks.build.prepare import install
from torchbuild_tasks.errors import DownloadFailed, HashRefused, RequirementsError
from torchbuild_tasks.features.helpers.fetch import obtain
from torchbuild_tasks.model import Artifact, Command
from torchbuild_tasks.plan.pins import read_pins
from torchbuild_tasks.system.net.client import Net
from torchbuild_tasks.system.net.pip import (
    PipSettings,
    WheelWanted,
    download_wheel,
    python_with_pip,
    read_settings,
)
from torchbuild_tasks.values import replace

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
        wheel.writestr(f"{info}/noise", os.urandom(2_000_000))


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    folder = tmp_path / "some wheels"
    folder.mkdir()
    for name in NAMES:
        make_wheel(folder / name)
    return folder


def sha256_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def html_page(wheels: Path) -> bytes:
    links = (
        f'<a href="../../files/{path.name}#sha256={sha256_of(path)}">{path.name}</a>'
        for path in wheels.iterdir()
    )
    return f"<!DOCTYPE html><html><body>{'<br>'.join(links)}</body></html>".encode()


def json_page(wheels: Path) -> bytes:
    files = [
        {
            "filename": path.name,
            "url": f"../../files/{path.name}",
            "hashes": {"sha256": sha256_of(path)},
            "size": path.stat().st_size,
        }
        for path in wheels.iterdir()
    ]
    return json.dumps({"meta": {"api-version": "1.1"}, "name": "tiny-lib", "files": files}).encode()


class Index(http.server.ThreadingHTTPServer):
    """A package index on loopback.

    `speaks_json` makes it PEP 691, else it is PEP 503; with `password` it asks for it; `changed` files
    are not those that its page knows; a file takes `seconds`, or `drips`: then it never ends.
    """

    wheels: Path
    speaks_json = False
    password = ""
    changed = False
    seconds = 0.0
    drips = False

    def __init__(self, *words: Any) -> None:
        super().__init__(*words)
        self.asked: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(http.server.BaseHTTPRequestHandler):
    server: Index

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        file = self.server.wheels / self.path.rpartition("/")[2]
        login = b64encode(self.server.password.encode()).decode()
        if self.server.password and self.headers["Authorization"] != f"Basic {login}":
            self.send_response(401)
            self.send_header("WWW-Authenticate", "Basic")
            self.end_headers()
            return
        if self.path == "/simple/tiny-lib/" and self.server.speaks_json:
            self.answer(json_page(self.server.wheels), JSON)
        elif self.path == "/simple/tiny-lib/":
            self.answer(html_page(self.server.wheels), "text/html")
        elif self.path.startswith("/files/") and file.is_file():
            more = b"more" if self.server.changed else b""
            self.answer(file.read_bytes() + more, "application/octet-stream", self.server.seconds)
        else:
            self.send_error(404)

    def answer(self, body: bytes, kind: str, seconds: float = 0.0) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        half = len(body) // 2
        self.wfile.write(body[:half])
        with contextlib.suppress(OSError):  # the other side has gone
            while self.server.drips and kind == "application/octet-stream":
                self.wfile.write(b"x")
                time.sleep(0.1)
        time.sleep(seconds)
        self.wfile.write(body[half:])

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


Configure = Callable[..., None]


@pytest.fixture
def configure(monkeypatch: pytest.MonkeyPatch) -> Configure:
    """Let pip use only these settings."""

    def say(**variables: str) -> None:
        for name in [name for name in os.environ if name.startswith("PIP_")]:
            monkeypatch.delenv(name)
        for name, value in {"PIP_CONFIG_FILE": os.devnull, **variables}.items():
            monkeypatch.setenv(name, value)

    return say


@functools.lru_cache(maxsize=1)
def _settings(environ: tuple[tuple[str, str], ...]) -> PipSettings:
    """Ask pip once a test, not before every wheel."""
    return read_settings(dict(environ))


def bring(folder: Path, tag: str = "win_amd64", sha256: str | None = None, **more: Any) -> Path:
    """Have pip bring a wheel, by this process's environment."""
    folder.mkdir(parents=True)
    wanted = WheelWanted(project="Tiny.Lib", version="1.0", tag=tag, sha256=sha256, hash_source="its row")
    wanted = replace(wanted, version=more.pop("version", "1.0"))
    settings = _settings(tuple(os.environ.items()))
    path, got = download_wheel(wanted, folder, settings, Net(**more), lambda *now: None)
    assert got == sha256_of(path)
    return path


@pytest.mark.parametrize(
    ("speaks_json", "tags"),
    [(False, TAGS[:1]), (True, TAGS), pytest.param(False, TAGS, marks=pytest.mark.slow)],
    ids=["PEP 503", "PEP 691", "PEP 503 at length"],
)
def test_an_index(
    index: Index, wheels: Path, tmp_path: Path, speaks_json: bool, tags: Sequence[str], configure: Configure
) -> None:
    index.speaks_json = speaks_json
    configure(PIP_INDEX_URL=f"{index.url}/simple")
    for tag, name in zip(tags, NAMES, strict=False):
        path = bring(tmp_path / tag, tag, sha256_of(wheels / name))
        assert (path.name, path.read_bytes()) == (name, (wheels / name).read_bytes())


def test_install_of_pips_own_file_is_gone_by(wheels: Path, tmp_path: Path, configure: Configure) -> None:
    settings = tmp_path / ("a long name, as homes on a network have, " * 3 + "end") / "pip.conf"
    settings.parent.mkdir()
    link = wheels.as_uri()  # a path with a space would be two, for pip too
    settings.write_text(f"[global]\nno-index = true\n[install]\nfind-links = {link}\n", "ascii")
    configure(PIP_CONFIG_FILE=str(settings))
    assert bring(tmp_path / "out").name == NAMES[0]


def test_an_index_in_a_folder_behind_one_that_is_not_there(
    wheels: Path, tmp_path: Path, configure: Configure
) -> None:
    project = tmp_path / "index" / "simple" / "tiny-lib"
    project.mkdir(parents=True)
    (project / "index.html").write_bytes(html_page(wheels).replace(b"../../files", wheels.as_uri().encode()))
    configure(PIP_INDEX_URL=(tmp_path / "nothing").as_uri(), PIP_EXTRA_INDEX_URL=project.parent.as_uri())
    for offline in (False, True):
        assert bring(tmp_path / str(offline), offline=offline).name == NAMES[0]


@pytest.mark.one_system
def test_a_folder_of_wheels_by_flag_is_used_with_and_without_network(
    index: Index, wheels: Path, tmp_path: Path, configure: Configure
) -> None:
    configure(PIP_INDEX_URL="http://127.0.0.1:9/simple", PIP_RETRIES="0")
    for offline in (False, True):
        assert bring(tmp_path / str(offline), offline=offline, wheels=str(wheels)).name == NAMES[0]
    assert index.asked == []


@pytest.mark.one_system
def test_offline_no_server_is_queried(index: Index, tmp_path: Path, configure: Configure) -> None:
    """Neither as an index, nor as a page of links, nor where a page on this machine points."""
    page = tmp_path / "links.html"
    page.write_text(f'<a href="{index.url}/files/{NAMES[0]}">{NAMES[0]}</a>', "ascii")
    links = f"{index.url}/simple/tiny-lib/ {page.as_uri()}"
    configure(PIP_INDEX_URL=f"{index.url}/simple", PIP_EXTRA_INDEX_URL=index.url, PIP_FIND_LINKS=links)
    with pytest.raises(DownloadFailed, match=r"a wheel of Tiny\.Lib 1\.0 for win_amd64"):
        bring(tmp_path / "out", offline=True)
    assert index.asked == []


@pytest.mark.one_system
def test_a_mirror_is_used_in_place_of_the_index(index: Index, tmp_path: Path, configure: Configure) -> None:
    configure(PIP_INDEX_URL="https://company.invalid/simple")
    mirrors = (("https://company.invalid/", f"{index.url}/"),)
    assert bring(tmp_path / "out", mirrors=mirrors).name == NAMES[0]


@pytest.mark.one_system
def test_the_index_gets_its_password_and_no_error_shows_it(
    index: Index, tmp_path: Path, configure: Configure
) -> None:
    configure(PIP_INDEX_URL=f"{index.url.replace('//', '//me:secret@')}/simple")
    with pytest.raises(DownloadFailed) as caught:
        bring(tmp_path / "out", version="9.9")
    said = "\n".join((caught.value.what, *caught.value.looked))
    assert "secret" not in said
    assert "No matching distribution found for Tiny.Lib==9.9" in said
    assert "pip download" in said
    assert "PIP_INDEX_URL" in caught.value.next_step
    index.password = "me:secret"
    assert bring(tmp_path / "again").name == NAMES[0]


@pytest.mark.one_system
def test_a_wheel_with_another_hash_is_refused(index: Index, tmp_path: Path, configure: Configure) -> None:
    configure(PIP_INDEX_URL=f"{index.url}/simple")
    with pytest.raises(HashRefused) as caught:
        bring(tmp_path / "out", sha256="ef" * 32)
    assert f"expected sha256 {'ef' * 32}, by its row" in caught.value.looked
    index.changed = True  # the page says one hash, the file has another
    with pytest.raises(HashRefused):
        bring(tmp_path / "again")


def test_without_pip_it_is_named_how_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(DownloadFailed, match="has no pip") as caught:
        python_with_pip()
    assert "ensurepip" in caught.value.next_step


@needs(sys.platform != "win32", "size of a file that another program is writing")
def test_progress_is_reported_while_pip_downloads(index: Index, tmp_path: Path, configure: Configure) -> None:
    configure(PIP_INDEX_URL=f"{index.url}/simple", PIP_NO_CACHE_DIR="1")
    index.seconds = 4.0
    told: list[tuple[str, int, int | None]] = []
    (tmp_path / "out").mkdir()
    wanted = WheelWanted(project="tiny-lib", version="1.0", tag="win_amd64", sha256=None)
    download_wheel(wanted, tmp_path / "out", read_settings(os.environ), Net(), lambda *now: told.append(now))
    done = [bytes_ for _, bytes_, _ in told]
    assert done == sorted(done)
    assert any(0 < bytes_ < done[-1] for bytes_ in done), "nothing was told on the way"


@pytest.mark.one_system
@pytest.mark.slow
def test_a_server_that_drips_is_left(
    index: Index, tmp_path: Path, configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A byte every now and then keeps up pip's own time-out for ever; nothing of it runs on."""
    index.drips = True
    configure(PIP_INDEX_URL=f"{index.url}/simple", PIP_NO_CACHE_DIR="1", PIP_DEFAULT_TIMEOUT="1000")
    monkeypatch.setenv("TORCHBUILD_STALL", "3")
    with pytest.raises(DownloadFailed, match=r"a wheel of Tiny\.Lib") as left:
        bring(tmp_path / "out")
    assert "less than 1024 a second, and was ended" in left.value.looked[-2]
    command = (sys.executable, "-m", "pip", "install", "--target", str(tmp_path / "there"), "tiny-lib")
    log, report = SimpleNamespace(write=len, path=tmp_path / "log"), MagicMock()
    work: Any = SimpleNamespace(
        report=report,
        ledger=SimpleNamespace(log=log, note_command=lambda command: None),
        plan=SimpleNamespace(
            environment=SimpleNamespace(install_options=(), python=sys.executable, foreign=True)
        ),
    )
    with pytest.raises(RequirementsError, match="made no progress: it moved") as ended:
        install(work, Command(argv=command, cwd=str(tmp_path), because=""))
    assert "--wheels" in ended.value.next_step
    mine = psutil.Process().children(recursive=True)
    assert [each for each in mine if "pip" in each.cmdline()] == []


@pytest.mark.parametrize(
    ("python", "abi"), [("cp38", "cp38"), pytest.param("cp313", "cp313t", marks=pytest.mark.slow)]
)
def test_a_wheel_of_one_python(tmp_path: Path, configure: Configure, python: str, abi: str) -> None:
    """Also for another Python than the one that runs pip."""
    folder = tmp_path / "here"
    folder.mkdir()
    machine = next(platform_tags())
    for tags in ("cp38-cp38", "cp312-cp312", "cp313-cp313", "cp313-cp313t"):
        make_wheel(folder / f"torch-2.0.0-{tags}-{machine}.whl")
    configure(PIP_NO_INDEX="1", PIP_FIND_LINKS=folder.as_uri())
    (tmp_path / "out").mkdir()
    wanted = WheelWanted(project="torch", version="2.0.0", tag="", sha256=None, python=python, abi=abi)
    path, _ = download_wheel(wanted, tmp_path / "out", read_settings(os.environ), Net(), lambda *now: None)
    assert path.name == f"torch-2.0.0-{python}-{abi}-{machine}.whl"


# ---------------------------------------------------------------- into the store


def obtained(store: Path, artifact: Artifact, *, offline: bool = False) -> Path:
    folders = obtain(
        [artifact],
        store,
        net=Net(offline=offline),
        lock_file=store.with_name("torchbuild.lock"),
        require_hashes=False,
        tell=lambda *now: None,
        note=lambda text: None,
    )
    return folders[artifact.id]


TINY = Artifact(
    id="tiny-lib-1.0",
    name="tiny-lib",
    version="1.0",
    project="tiny-lib",
    tag="win_amd64",
    unpack="zip",
    holds=("tiny_lib-1.0.data/data/lib",),
)


@pytest.mark.one_system
def test_a_wheel_comes_into_the_store_and_is_pinned(
    wheels: Path, tmp_path: Path, configure: Configure
) -> None:
    configure(PIP_NO_INDEX="1", PIP_FIND_LINKS=wheels.as_uri())
    killed = tmp_path / "store" / "partial" / f".{TINY.id}.999999999.downloading"
    (killed / "temporary").mkdir(parents=True)  # what a killed run left
    folder = obtained(tmp_path / "store", TINY, offline=True)
    assert (folder / TINY.holds[0] / "tiny_lib.txt").is_file()
    pin = read_pins((tmp_path / "torchbuild.lock").read_text("utf-8"))[TINY.id]
    assert (pin.url, pin.sha256) == (NAMES[0], sha256_of(wheels / NAMES[0]))
    assert list((tmp_path / "store" / "partial").iterdir()) == []


@pytest.mark.one_system
def test_offline_a_wheel_that_is_nowhere_is_named(tmp_path: Path, configure: Configure) -> None:
    configure(PIP_INDEX_URL="https://company.invalid/simple")
    with pytest.raises(DownloadFailed, match="1 file would have to be") as caught:
        obtained(tmp_path / "store", TINY, offline=True)
    said = "\n".join(caught.value.looked)
    assert "the wheel of tiny-lib 1.0 for win_amd64" in said
    assert f"to {tmp_path / 'store' / 'incoming' / 'tiny_lib-1.0-*win_amd64.whl'}" in said
