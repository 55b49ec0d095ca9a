"""Downloads from a server that misbehaves: the right file or the right error, and nothing partial."""

from __future__ import annotations

import hashlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.capabilities import POSIX, has, needs, needs_signals
from tests.support.webserver import BUSY, FINAL, LIES, LOSSES, WRONG_BYTES, Fault, WebServer, faults_of
from torchbuild_tasks.errors import DownloadFailed, HashRefused
from torchbuild_tasks.system.net.client import Halt, Net
from torchbuild_tasks.system.net.download import fetch, fetch_all
from torchbuild_tasks.system.net.transfer import Remote

pytestmark = pytest.mark.integration

ATTEMPTS = 4
QUICK = Net(read=0.3, attempts=ATTEMPTS, back_off=0.004, longest_wait=0.02, note=0.0)
DATA = random.Random(1).randbytes(700_001)
SHA = hashlib.sha256(DATA).hexdigest()
needs_openssl = needs(has("openssl"), "openssl")
needs_dev_full = needs(POSIX and Path("/dev/full").exists(), "/dev/full")


def unheard(name: str, done: int, size: int | None) -> None:
    """Ignore the progress."""


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reach loopback directly on a machine that has proxies."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")


@pytest.fixture
def target(tmp_path: Path) -> Path:
    (tmp_path / "store").mkdir()
    return tmp_path / "store" / "file.bin"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-made certificate for 127.0.0.1 with its key, in one file."""
    folder = tmp_path_factory.mktemp("certificate")
    words = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=loopback -addext subjectAltName=IP:127.0.0.1"
    files = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    subprocess.run(["openssl", *words.split(), *files], check=True, capture_output=True)
    both = folder / "both.pem"
    both.write_bytes((folder / "key.pem").read_bytes() + (folder / "cert.pem").read_bytes())
    return both


def get(target: Path, *urls: str, net: Net = QUICK, pinned: bool = True, size: bool = True) -> str:
    remote = Remote(
        name="file.bin", urls=urls, sha256=SHA if pinned else None, size=len(DATA) if size else None
    )
    return fetch(remote, target, net, unheard)


def left(target: Path) -> set[str]:
    return {path.name for path in target.parent.iterdir()}


def ranges_asked(server: WebServer) -> list[str]:
    return [headers.get("Range", "") for _, headers in server.state.seen]


SEEDS = [seed if seed < 25 else pytest.param(seed, marks=pytest.mark.slow) for seed in range(100)]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_hundred_seeded_runs(seed: int, target: Path) -> None:
    """Several faults each: the right file or the right error, and the next honest run ends right."""
    pinned = seed % 4 != 0
    kinds = LOSSES * 2 + LIES + BUSY + (FINAL[:3] if seed % 3 == 0 else ())
    kinds += WRONG_BYTES if pinned and seed % 2 else ()
    with WebServer({"file.bin": DATA}, faults=faults_of(seed, kinds)) as server:
        try:
            assert get(target, server.url("file.bin"), pinned=pinned) == SHA
            assert target.read_bytes() == DATA
            assert left(target) == {target.name}
        except HashRefused:
            assert set(server.state.committed) & set(WRONG_BYTES)
            assert left(target) == set()
        except DownloadFailed:
            committed = server.state.committed
            assert committed[-1] in FINAL or len(committed) >= ATTEMPTS
            assert left(target) <= {"file.bin.part", "file.bin.part.json"}
    with WebServer({"file.bin": DATA}) as honest:
        assert get(target, honest.url("file.bin"), pinned=pinned) == SHA
    assert target.read_bytes() == DATA
    assert left(target) == {target.name}


@pytest.mark.parametrize("kind", [*LOSSES, *BUSY, *LIES])
def test_one_fault_is_mended(kind: str, target: Path) -> None:
    """A fault costs at most one more attempt; wrong answers are given to requests for the rest."""
    faults = [Fault(kind="cut")] * (kind in LIES) + [Fault(kind=kind)]
    with WebServer({"file.bin": DATA}, faults=faults) as server:
        assert get(target, server.url("file.bin"), pinned=False, size=kind != "short") == SHA
        assert server.state.committed[-1] == kind
    assert target.read_bytes() == DATA
    assert left(target) == {target.name}


@pytest.mark.parametrize(
    ("kind", "told"),
    [("missing", "404 Not Found"), ("loop", "in a circle"), ("hops", "more than 10 times")],
)
def test_what_ends_an_address_is_not_tried_again(kind: str, told: str, target: Path) -> None:
    with WebServer({"file.bin": DATA}, faults=[Fault(kind=kind)] * 9) as server:
        with pytest.raises(DownloadFailed) as caught:
            get(target, server.url("file.bin?X-Amz-Signature=secret"))
        assert told in caught.value.looked[0]
        assert "secret" not in repr(caught.value.looked)
        asked = [path for path, _ in server.state.seen if path.startswith("/file.bin")]
        assert len(asked) == 1
    assert left(target) == set()


def test_the_next_address_is_tried_and_all_are_named(target: Path) -> None:
    with WebServer({"file.bin": DATA}) as server:
        nowhere = server.url("elsewhere/file.bin")
        assert get(target, nowhere, server.url("file.bin")) == SHA
        target.unlink()
        with pytest.raises(DownloadFailed) as caught:
            get(target, nowhere, server.url("nor-here"))
    assert len(caught.value.looked) == 2
    assert caught.value.looked[0].startswith(nowhere)


def test_a_server_that_is_not_there_is_tried_and_named(target: Path) -> None:
    with WebServer({}) as server:
        url = server.url("file.bin")
    with pytest.raises(DownloadFailed) as caught:
        get(target, url)
    assert f"({ATTEMPTS} attempts)" in caught.value.looked[0]


def test_a_cut_download_is_resumed_where_it_stopped(target: Path) -> None:
    faults = [Fault(kind="cut", at=0.5)] + [Fault(kind="drop")] * ATTEMPTS
    with WebServer({"file.bin": DATA}, faults=faults) as server:
        with pytest.raises(DownloadFailed):
            get(target, server.url("file.bin"), pinned=False)
        assert left(target) == {"file.bin.part", "file.bin.part.json"}
        server.state.faults.clear()
        server.state.seen.clear()
        assert get(target, server.url("file.bin"), pinned=False) == SHA
        assert ranges_asked(server) == [f"bytes={int(0.5 * len(DATA))}-"]


def test_a_file_that_changed_meanwhile_is_begun_anew(target: Path) -> None:
    new = bytes(reversed(DATA))
    with WebServer({"file.bin": DATA}, faults=[Fault(kind="cut"), Fault(kind="missing")]) as server:
        with pytest.raises(DownloadFailed):
            get(target, server.url("file.bin"), pinned=False)
        server.state.files = {"file.bin": new}
        assert get(target, server.url("file.bin"), pinned=False) == hashlib.sha256(new).hexdigest()
    assert target.read_bytes() == new


@pytest.mark.parametrize("damage", ["part_changed", "part_shorter", "note_torn", "note_missing"])
def test_a_damaged_part_is_not_gone_by(damage: str, target: Path) -> None:
    part, note = target.with_name("file.bin.part"), target.with_name("file.bin.part.json")
    with WebServer({"file.bin": DATA}, faults=[Fault(kind="cut"), Fault(kind="missing")]) as server:
        with pytest.raises(DownloadFailed):
            get(target, server.url("file.bin"), pinned=False)
        data = part.read_bytes()
        if damage == "part_changed":
            part.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        elif damage == "part_shorter":
            part.write_bytes(data[:-1])
        elif damage == "note_torn":
            note.write_bytes(note.read_bytes()[:40])
        else:
            note.unlink()
        assert get(target, server.url("file.bin"), pinned=False) == SHA
        assert ranges_asked(server)[-1] == ""
    assert target.read_bytes() == DATA
    assert left(target) == {target.name}


def test_a_wrong_hash_is_reported_and_nothing_kept(target: Path) -> None:
    with WebServer({"file.bin": DATA[:-1] + b"!"}) as server:
        with pytest.raises(HashRefused) as caught:
            get(target, server.url("file.bin"))
        assert len(server.state.seen) == 1
        told = "\n".join(caught.value.looked)
        assert SHA in told and hashlib.sha256(DATA[:-1] + b"!").hexdigest() in told
        assert server.url("file.bin") in told
    assert left(target) == set()


def test_pieces_that_do_not_fit_are_fetched_once_more_completely(target: Path) -> None:
    faults = [Fault(kind="cut"), Fault(kind="flip")]
    with WebServer({"file.bin": DATA}, faults=faults) as server:
        assert get(target, server.url("file.bin")) == SHA
        assert [bool(asked) for asked in ranges_asked(server)] == [False, True, False]


def test_a_body_without_a_length_is_not_trusted_as_complete(target: Path) -> None:
    """HTTP/1.0 without Content-Length: only a size or a hash says whether it was cut short."""
    with WebServer({"file.bin": DATA}, faults=[Fault(kind="no_length")]) as server:
        with pytest.raises(DownloadFailed, match="could not be downloaded"):
            get(target, server.url("file.bin"), pinned=False, size=False)
        server.state.faults[:] = [Fault(kind="no_length_cut")] * 2 + [Fault(kind="no_length")]
        assert get(target, server.url("file.bin"), size=False) == SHA
        server.state.faults[:] = [Fault(kind="no_length_cut"), Fault(kind="no_length")]
        assert get(target, server.url("file.bin"), pinned=False) == SHA


def test_retry_after_is_obeyed_up_to_a_bound_and_reported(
    target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits, told = list[float](), list[str]()
    monkeypatch.setattr(Halt, "sleep", lambda halt, seconds: waits.append(seconds))
    net = Net(read=2, back_off=0.0, longest_wait=0.7, say=told.append)
    faults = [Fault(kind="busy_429"), Fault(kind="busy_until"), Fault(kind="busy_500")]
    with WebServer({"file.bin": DATA}, faults=faults) as server:
        assert get(target, server.url("file.bin"), net=net) == SHA
    assert waits[0] == 0.7 and 0 <= waits[1] <= 0.7 and waits[2] == 0.7
    assert "429 Too Many Requests and asked for a wait of 1 s; trying again in 0.7 s" in told[0]


def test_no_name_or_password_reaches_another_host(target: Path) -> None:
    with WebServer({"file.bin": DATA}) as other, WebServer({"file.bin": DATA}) as server:
        away = server.url("to/" + other.url("file.bin").replace("://", "/", 1))
        home = server.url("to/" + server.url("file.bin").replace("://", "/", 1))
        for url in (away, home):
            get(target, url.replace("://", "://user:secret@"))
        assert ["Authorization" in headers for _, headers in server.state.seen] == [True, True, True]
        assert ["Authorization" in headers for _, headers in other.state.seen] == [False]


def test_netrc_is_read_for_each_host(target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login user password secret\n", "utf-8")
    monkeypatch.setenv("NETRC", str(netrc))
    with WebServer({"file.bin": DATA}) as server:
        get(target, server.url("file.bin"))
        assert "Authorization" in server.state.seen[0][1]


def test_the_proxy_of_the_environment_is_used(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with WebServer({}) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url(""))
        monkeypatch.setenv("NO_PROXY", "")
        with pytest.raises(DownloadFailed):
            get(target, "http://example.invalid/file.bin")
        assert proxy.state.seen[0][0] == "http://example.invalid/file.bin"


@needs_openssl
def test_tls_is_always_verified(
    target: Path, certificate: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"):
        monkeypatch.delenv(name, raising=False)
    with WebServer({"file.bin": DATA}, certificate=certificate) as server:
        with pytest.raises(DownloadFailed) as caught:
            get(target, server.url("file.bin"))
        assert "certificate cannot be trusted" in caught.value.looked[0]
        for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"):
            with monkeypatch.context() as patch:
                patch.setenv(name, str(certificate))
                assert get(target, server.url("file.bin")) == SHA
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
        with pytest.raises(DownloadFailed, match="certificates") as caught:
            get(target, server.url("file.bin"))
        assert "SSL_CERT_FILE" in caught.value.looked[0]


@needs_openssl
@pytest.mark.parametrize("kind", ["downgrade", "cut", "stall", "reset", "drop"])
def test_over_tls(kind: str, target: Path, certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate))
    with WebServer({"file.bin": DATA}, faults=[Fault(kind=kind)], certificate=certificate) as server:
        if kind == "downgrade":
            with pytest.raises(DownloadFailed) as caught:
                get(target, server.url("file.bin"))
            assert "from https to http://127.0.0.1:9/never, which is not secure" in caught.value.looked[0]
            assert left(target) == set()
        else:
            assert get(target, server.url("file.bin")) == SHA


@needs_dev_full
def test_a_full_disk_is_reported_with_the_free_space(target: Path) -> None:
    target.with_name("file.bin.part").symlink_to("/dev/full")
    with (
        WebServer({"file.bin": DATA}) as server,
        pytest.raises(DownloadFailed, match="No space left") as caught,
    ):
        get(target, server.url("file.bin"))
    assert "bytes are free there" in caught.value.next_step
    assert not target.exists()


def test_several_at_once_stop_promptly_with_the_first_error(target: Path) -> None:
    """The others read from a server that is silent for longer than anybody would wait."""
    net = Net(read=120, attempts=2, back_off=0.01)
    faults = [Fault(kind="stall")] * 3 + [Fault(kind="missing")]
    with WebServer({"file.bin": DATA}, faults=faults, stall=120) as server:
        jobs = [
            (Remote(name=f"{n}", urls=(server.url("file.bin"),)), target.with_name(str(n))) for n in range(4)
        ]
        start = time.monotonic()
        with pytest.raises(DownloadFailed):
            fetch_all(jobs, net, unheard)
        assert time.monotonic() - start < 60, "it waited for the stalled ones"
    for thread in threading.enumerate():
        if thread.name == "download":  # one that could not be woken ends with its connection
            thread.join(timeout=60)
            assert not thread.is_alive()
    assert not any(path.name in "0123" for path in target.parent.iterdir())


def test_several_downloads_return_in_the_order_of_the_request(target: Path) -> None:
    files = {f"{n}.bin": random.Random(n).randbytes(100_000 + n) for n in range(7)}
    with WebServer(files, faults=faults_of(3, ("cut", "busy_503", "slow"))) as server:
        jobs = [(Remote(name=name, urls=(server.url(name),)), target.with_name(f"t{name}")) for name in files]
        hashes = fetch_all(jobs, QUICK, unheard, at_once=3)
        assert server.state.most_open <= 3
    assert hashes == tuple(hashlib.sha256(data).hexdigest() for data in files.values())
    assert left(target) == {f"t{name}" for name in files}


CHILD = """
import signal, sys
from pathlib import Path
from torchbuild_tasks.system.net.download import Remote, fetch
from torchbuild_tasks.system.net.client import Net
def tell(name, done, size):
    print(done, flush=True)
signal.signal(signal.SIGINT, signal.default_int_handler)  # also where the tests run in the background
net = Net(note=0.0)  # with every block, so that kills fall into the writing of a note, too
fetch(Remote(name="file.bin", urls=(sys.argv[1],)), Path(sys.argv[2]), net, tell)
"""


@pytest.fixture
def child() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Start a download in a process of its own; it is over when the test is."""
    started = list[subprocess.Popen[bytes]]()

    def begin(url: str, target: Path) -> subprocess.Popen[bytes]:
        words = [sys.executable, "-c", CHILD, url, str(target)]
        started.append(subprocess.Popen(words, cwd=Path(__file__).parents[2], stdout=subprocess.PIPE))
        return started[-1]

    yield begin
    for process in started:
        process.kill()
        process.wait()
        if process.stdout:
            process.stdout.close()


@pytest.mark.parametrize("seed", [1, 4])
def test_kill_at_any_moment(seed: int, target: Path, child: Callable[..., subprocess.Popen[bytes]]) -> None:
    """Killed four times at random moments of the download, and resumed each time; then it ends right.

    Every answer but the last stands still after a fifth of the rest: on a busy machine a download
    could otherwise be over before its kill comes, and nothing would be resumed.
    """
    chance = random.Random(seed)
    data = chance.randbytes(16_000_000)
    kills = 4
    stalls = [Fault(kind="stall", at=0.2)] * kills
    with WebServer({"file.bin": data}, faults=stalls, rate=6e6, stall=600) as server:
        for _ in range(kills):
            process = child(server.url("file.bin"), target)
            # By its progress, at most 1.3 MB of it, and by a moment. From its second line on there is a note.
            for _ in range(chance.randint(2, 9)):
                assert process.stdout is not None and process.stdout.readline()
            time.sleep(chance.random() * 0.02)
            process.kill()
            process.wait()
            assert {"file.bin.part", "file.bin.part.json"} <= left(target)
            assert left(target) <= {"file.bin.part", "file.bin.part.json", "file.bin.part.json.new"}
        server.state.rate = 0.0
        digest = fetch(Remote(name="file.bin", urls=(server.url("file.bin"),)), target, QUICK, unheard)
        asked = ranges_asked(server)
    assert asked[0] == "" and len(asked) == kills + 1
    assert all(asked[1:]), "a kill cost all that was there"
    assert digest == hashlib.sha256(data).hexdigest()
    assert target.read_bytes() == data
    assert left(target) == {target.name}


@needs_signals
def test_ctrl_c_ends_it_at_once_and_leaves_what_can_be_resumed(
    target: Path, child: Callable[..., subprocess.Popen[bytes]]
) -> None:
    with WebServer({"file.bin": DATA}, faults=[Fault(kind="stall")], stall=60) as server:
        process = child(server.url("file.bin"), target)
        while not (target.with_name("file.bin.part.json").exists()):
            time.sleep(0.02)
        start = time.monotonic()
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(timeout=60) != 0
        assert time.monotonic() - start < 30, "it waited for the stalled server"
    assert left(target) == {"file.bin.part", "file.bin.part.json"}
