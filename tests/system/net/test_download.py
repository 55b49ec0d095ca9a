"""Downloads without a network: --offline, and mirrors on disk."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
import requests

from tests.support.answers import Answer, ScriptedNet, in_turn
from torchbuild_tasks.errors import DownloadFailed, HashRefused
from torchbuild_tasks.system.net.client import Net, read_mirrors
from torchbuild_tasks.system.net.download import fetch, fetch_all
from torchbuild_tasks.system.net.transfer import Remote

DATA = b"all of it" * 300_000
SHA = hashlib.sha256(DATA).hexdigest()
URLS = ("https://one.invalid/path/f.7z?token=secret", "https://two.invalid/f.7z")


def unheard(name: str, done: int, size: int | None) -> None:
    """Ignore the progress."""


@pytest.fixture
def target(tmp_path: Path) -> Path:
    (tmp_path / "store").mkdir()
    return tmp_path / "store" / "f"


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    """A folder with a space, laid out as a mirror for every host, that has the second address."""
    folder = tmp_path / "a mirror"
    (folder / "two.invalid").mkdir(parents=True)
    (folder / "two.invalid" / "f.7z").write_bytes(DATA)
    return folder


def on_disk(mirror: Path, *, offline: bool = False) -> Net:
    return Net(mirrors=read_mirrors(mirror.as_uri()), offline=offline)


def test_offline_names_what_is_missing_and_where_to_put_it(target: Path) -> None:
    remote = Remote(name="f.7z", urls=URLS, sha256=SHA)
    with pytest.raises(DownloadFailed, match="f.7z is not here") as caught:
        fetch(remote, target, Net(offline=True), unheard)
    assert caught.value.looked == (
        "https://one.invalid/path/f.7z?token=...",
        "https://two.invalid/f.7z",
        f"sha256 {SHA}",
    )
    assert str(target) in caught.value.next_step
    assert list(target.parent.iterdir()) == []


@pytest.mark.parametrize("offline", [False, True])
def test_a_mirror_on_disk(offline: bool, target: Path, mirror: Path) -> None:
    told = list[tuple[str, int, int | None]]()
    remote = Remote(name="f.7z", urls=URLS, sha256=SHA.upper(), size=len(DATA))
    net = on_disk(mirror, offline=offline)
    assert fetch(remote, target, net, lambda *progress: told.append(progress)) == SHA
    assert target.read_bytes() == DATA
    assert told[-1] == ("f.7z", len(DATA), len(DATA))
    assert [path.name for path in target.parent.iterdir()] == ["f"]


def test_a_mirror_on_disk_is_checked(target: Path, mirror: Path) -> None:
    remote = Remote(name="f.7z", urls=URLS, sha256="0" * 64)
    with pytest.raises(HashRefused) as caught:
        fetch(remote, target, on_disk(mirror), unheard)
    assert caught.value.looked[:2] == (f"expected sha256 {'0' * 64}", f"got      sha256 {SHA}")
    with pytest.raises(DownloadFailed) as missed:
        fetch(Remote(name="f.7z", urls=URLS, size=3), target, on_disk(mirror), unheard)
    assert "instead of 3" in missed.value.looked[1]
    assert len(missed.value.looked) == 2
    assert list(target.parent.iterdir()) == []


def test_an_error_in_one_is_raised_and_leaves_nothing(target: Path, mirror: Path) -> None:
    good, bad = Remote(name="good", urls=URLS[1:]), Remote(name="bad", urls=("https://no.invalid/x",))
    with pytest.raises(DownloadFailed, match="bad could not"):
        fetch_all([(bad, target.with_name("bad"))], on_disk(mirror), unheard)
    assert fetch_all([(good, target)], on_disk(mirror), unheard) == (SHA,)
    assert fetch_all([], Net(), unheard) == ()


def test_two_downloads_to_one_place_are_a_mistake(target: Path) -> None:
    remote = Remote(name="f", urls=URLS)
    with pytest.raises(ValueError, match="one target"):
        fetch_all([(remote, target), (remote, target)], Net(), unheard)


def test_what_progress_raises_is_raised(target: Path, mirror: Path) -> None:
    def broken(name: str, done: int, size: int | None) -> None:
        raise RuntimeError("the terminal is gone")

    with pytest.raises(RuntimeError, match="terminal"):
        fetch(Remote(name="f", urls=URLS[1:]), target, on_disk(mirror), broken)
    assert not target.exists()


LOGIN = OSError("Tunnel connection failed: 407 Who")


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        (((404, {}, b""), (410, {}, b"")), "moved or withdrawn; the same command gets the same answer"),
        (((404, {}, b""), (403, {}, b"")), "does not give it out"),
        (((401, {}, b""), (404, {}, b"")), ".netrc"),
        (((400, {}, b""), (400, {}, b"")), "will not answer"),
        ((requests.exceptions.ProxyError(LOGIN), (404, {}, b"")), "The proxy"),
        # One that was not reached may have it.
        (((404, {}, b""), requests.exceptions.InvalidURL("x")), "Check the network"),
        (((404, {}, b""), *5 * [requests.ConnectionError(OSError("reset"))]), "Check the network"),
    ],
)
def test_what_an_answer_means_is_said(answers: tuple[Answer, ...], said: str, target: Path) -> None:
    net = ScriptedNet(script=in_turn(*answers))
    with pytest.raises(DownloadFailed) as caught:
        fetch(Remote(name="f.7z", urls=URLS, sha256=SHA), target, net, unheard)
    way = caught.value.next_step
    assert said in way
    answered = "Check the network" not in way
    assert (str(target) in way) == answered
    assert ("set TORCHBUILD_MIRROR" in way) == answered


def test_of_a_mirror_that_lacks_a_file_the_mirror_is_told(target: Path, tmp_path: Path) -> None:
    with pytest.raises(DownloadFailed) as caught:
        fetch(Remote(name="f.7z", urls=URLS), target, on_disk(tmp_path), unheard)
    assert "put it where TORCHBUILD_MIRROR looks for it" in caught.value.next_step
