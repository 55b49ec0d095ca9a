"""Obtaining: downloads, hashes, pins, and the offline answer, from addresses on this machine."""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support.archives import Put, make
from torchbuild_tasks.errors import ArchiveRefused, DownloadFailed, HashRefused, Untrusted, UsageError
from torchbuild_tasks.features.helpers import store as shelf
from torchbuild_tasks.features.helpers.fetch import obtain
from torchbuild_tasks.model import Artifact
from torchbuild_tasks.plan.pins import Pin, read_pins, write_pins
from torchbuild_tasks.system.mark import MARKER, read_marker
from torchbuild_tasks.system.net.client import Net
from torchbuild_tasks.values import replace


@dataclass
class World:
    """A server's folder, a store and a checkout; `notes` are the messages to the user."""

    root: Path
    notes: list[str] = field(default_factory=list)
    told: list[tuple[str, int, int | None]] = field(default_factory=list)

    @property
    def store(self) -> Path:
        return self.root / "store"

    @property
    def lock_file(self) -> Path:
        return self.root / "checkout" / "torchbuild.lock"

    @property
    def pins(self) -> dict[str, Pin]:
        return dict(read_pins(self.lock_file.read_text("utf-8"))) if self.lock_file.exists() else {}

    def serve(self, name: str, text: bytes = b"int a;", kind: str = "zip") -> Artifact:
        """An archive at a `file:` address, and the artifact of it without a hash."""
        path = make(kind, self.root / "server" / f"{name}.{kind}", [Put("include/a.h", text)])
        return Artifact(
            id=name, name=name, version="1", urls=(path.as_uri(),), unpack="zip", holds=("include/a.h",)
        )

    def archive(self, artifact: Artifact) -> Path:
        return self.root / "server" / f"{artifact.id}.zip"

    def sha256(self, artifact: Artifact) -> str:
        return hashlib.sha256(self.archive(artifact).read_bytes()).hexdigest()

    def obtain(
        self,
        artifacts: Sequence[Artifact],
        *,
        require_hashes: bool = False,
        offline: bool = False,
        allow_http: bool = False,
        net: Net | None = None,
    ) -> dict[str, Path]:
        return dict(
            obtain(
                artifacts,
                self.store,
                net=net or Net(offline=offline),
                lock_file=self.lock_file,
                require_hashes=require_hashes,
                allow_http=allow_http,
                tell=lambda *now: self.told.append(now),
                note=self.notes.append,
            )
        )


@pytest.fixture
def world(tmp_path: Path) -> World:
    for name in ("server", "checkout", "wheels"):
        (tmp_path / name).mkdir()
    return World(tmp_path)


# ---------------------------------------------------------------- the first time, and then


def test_what_is_missing_is_downloaded_unpacked_and_pinned(world: World) -> None:
    one, two = world.serve("mkl-1", b"1"), world.serve("magma-2", b"22")
    folders = world.obtain([one, two])
    assert folders == {name: world.store / "unpacked" / name for name in ("mkl-1", "magma-2")}
    assert (folders["magma-2"] / "include/a.h").read_bytes() == b"22"
    for artifact in (one, two):
        pin = world.pins[artifact.id]
        assert pin.sha256 == world.sha256(artifact)
        assert (pin.size, pin.url) == (world.archive(artifact).stat().st_size, artifact.urls[0])
        assert shelf.file_of(world.store, pin.sha256, f"{artifact.id}.zip").is_file()
        marker = read_marker(folders[artifact.id])
        assert marker is not None
        assert (marker.sha256, marker.url) == (pin.sha256, pin.url)
        said = f"first download of {artifact.id}: its hash is now in torchbuild.lock; commit that file"
        assert said in world.notes
    assert list((world.store / "partial").iterdir()) == []
    assert {name for name, _, _ in world.told} >= {"mkl-1.zip", "unpacking mkl-1", "unpacking magma-2"}


def test_the_second_time_nothing_is_done(world: World) -> None:
    artifact = world.serve("mkl-1")
    (folder,) = world.obtain([artifact]).values()
    text, stamp = world.lock_file.read_bytes(), (folder / MARKER).stat().st_mtime_ns
    world.archive(artifact).unlink()
    world.notes.clear()
    world.told.clear()
    for offline in (False, True):
        assert world.obtain([artifact], require_hashes=True, offline=offline) == {"mkl-1": folder}
    assert (world.notes, world.told) == ([], [])
    assert (world.lock_file.read_bytes(), (folder / MARKER).stat().st_mtime_ns) == (text, stamp)


def test_what_was_pruned_is_unpacked_again_from_the_download(world: World) -> None:
    artifact = world.serve("mkl-1")
    world.obtain([artifact])
    shelf.prune(world.store, {world.sha256(artifact)})
    world.archive(artifact).unlink()
    assert world.obtain([artifact])["mkl-1"].is_dir()


def test_what_lacks_a_file_is_made_anew(world: World) -> None:
    artifact = world.serve("mkl-1")
    (folder,) = world.obtain([artifact]).values()
    (folder / "include/a.h").unlink()
    (folder / "old").write_bytes(b"1")
    world.obtain([artifact])
    assert {path.name for path in folder.rglob("*")} == {"include", "a.h", MARKER}


def test_a_folder_of_the_users_is_not_replaced(world: World) -> None:
    folder = world.store / "unpacked" / "mkl-1"
    folder.mkdir(parents=True)
    (folder / "mine").write_bytes(b"1")
    with pytest.raises(DownloadFailed, match="exists already"):
        world.obtain([world.serve("mkl-1")])
    assert [path.name for path in folder.iterdir()] == ["mine"]
    assert world.pins == {}


def test_a_second_checkout_gets_the_pins_of_what_is_there(world: World) -> None:
    artifact = world.serve("mkl-1")
    world.obtain([artifact])
    world.lock_file.unlink()
    world.obtain([artifact])
    assert world.pins["mkl-1"].sha256 == world.sha256(artifact)


def test_other_pins_stay_as_they_are(world: World) -> None:
    other = Pin(id="other", sha256="cd" * 32, size=1, url="https://x/y")
    world.lock_file.write_text(write_pins({"other": other}), "utf-8")
    world.obtain([world.serve("mkl-1")])
    assert set(world.pins) == {"other", "mkl-1"}
    assert world.pins["other"] == other


def test_the_same_artifact_twice_is_one(world: World) -> None:
    artifact = world.serve("mkl-1")
    assert list(world.obtain([artifact, artifact])) == ["mkl-1"]


def test_no_artifacts_is_no_work(world: World) -> None:
    assert world.obtain([]) == {}
    assert not world.store.exists()
    assert not world.lock_file.exists()


# ---------------------------------------------------------------- hashes


def test_a_known_hash_is_kept_to_and_not_pinned(world: World) -> None:
    artifact = world.serve("mkl-1")
    right = replace(
        artifact, sha256=world.sha256(artifact).upper(), size=world.archive(artifact).stat().st_size
    )
    assert world.obtain([right], require_hashes=True)["mkl-1"].is_dir()
    assert world.pins == {}
    assert world.notes == []


@pytest.mark.parametrize("by", ["its row", "torchbuild.lock"])
def test_another_file_than_the_known_one_is_refused(by: str, world: World) -> None:
    artifact, wrong = world.serve("mkl-1"), "ef" * 32
    if by == "its row":
        artifact = replace(artifact, sha256=wrong)
    else:
        pin = Pin(id="mkl-1", sha256=wrong, size=1, url="https://x/y")
        world.lock_file.write_text(write_pins({"mkl-1": pin}), "utf-8")
    with pytest.raises(HashRefused, match=r"mkl-1\.zip") as refused:
        world.obtain([artifact])
    said = "\n".join(refused.value.looked)
    assert wrong in said
    assert by in said
    assert refused.value.next_step
    assert not (world.store / "unpacked").exists()


def test_what_is_unpacked_from_another_file_is_refused(world: World) -> None:
    artifact = world.serve("mkl-1")
    (folder,) = world.obtain([artifact]).values()
    pin = replace(world.pins["mkl-1"], sha256="ef" * 32)
    world.lock_file.write_text(write_pins({"mkl-1": pin}), "utf-8")
    with pytest.raises(HashRefused, match="unpacked from another file") as refused:
        world.obtain([artifact])
    assert str(folder) in refused.value.next_step
    assert folder.is_dir()


def test_a_row_and_a_pin_that_differ_are_refused(world: World) -> None:
    artifact = world.serve("mkl-1")
    world.obtain([artifact])
    with pytest.raises(HashRefused, match="two hashes"):
        world.obtain([replace(artifact, sha256="ef" * 32)])


def test_require_hashes_names_all_that_have_none_before_any_download(world: World) -> None:
    known = world.serve("c")
    known = replace(known, sha256=world.sha256(known))
    with pytest.raises(HashRefused, match="No hash is known of 2") as refused:
        world.obtain([world.serve("a"), known, world.serve("b")], require_hashes=True)
    assert [line.split(":")[0] for line in refused.value.looked] == ["a", "b"]
    assert not world.store.exists()


def test_a_download_that_was_changed_in_the_store_is_refused(world: World) -> None:
    artifact = world.serve("mkl-1")
    world.obtain([artifact])
    sha256 = world.sha256(artifact)
    shelf.prune(world.store, {sha256})
    shelf.file_of(world.store, sha256, "mkl-1.zip").write_bytes(b"other")
    with pytest.raises(HashRefused, match=r"mkl-1\.zip is not the file"):
        world.obtain([artifact])


def test_a_refused_archive_is_neither_there_nor_pinned(world: World) -> None:
    artifact = world.serve("mkl-1")
    make("zip", world.archive(artifact), [Put("../evil", b"1")])
    with pytest.raises(ArchiveRefused, match="leaves the folder"):
        world.obtain([artifact])
    assert world.pins == {}
    assert shelf.find(world.store, artifact) is None


def test_a_broken_lock_file_is_refused_before_anything(world: World) -> None:
    world.lock_file.write_text("[[helper]]\nid = 3\n", "utf-8")
    with pytest.raises(UsageError, match="line 1"):
        world.obtain([world.serve("mkl-1")])
    assert not world.store.exists()


@pytest.mark.parametrize(
    "url", ["https://x/", "https://x/a%2F..%2Fb", "https://x/con", "https://x/.7z", "https://x"]
)
def test_an_address_without_a_file_name_is_refused(url: str, world: World) -> None:
    with pytest.raises(UsageError, match="names no file"):
        world.obtain([replace(world.serve("mkl-1"), urls=(url,))])


# ---------------------------------------------------------------- wheels


def wheel(world: World, version: str = "1.0") -> Artifact:
    """A wheel in a folder."""
    path = world.root / "wheels" / f"mkl_static-{version}-py3-none-win_amd64.whl"
    make("zip", path, [Put("mkl_static-1.0.data/data/Library/lib/x.lib", b"lib")])
    return Artifact(
        id=f"mkl-static-{version}",
        name="mkl-static",
        version=version,
        project="mkl-static",
        tag="win_amd64",
        unpack="zip",
        holds=("mkl_static-1.0.data/data/Library",),
    )


# ---------------------------------------------------------------- offline


def test_offline_names_all_that_is_missing_and_where_to_put_it(world: World) -> None:
    known = Artifact(
        id="mkl-1",
        name="mkl",
        version="1",
        urls=("https://x/mkl_1.7z", "https://user:secret@y/mkl_1.7z"),
        sha256="ab" * 32,
        size=77,
        unpack="7z",
    )
    unknown = Artifact(id="magma-2", name="magma", version="2", urls=("https://x/magma.7z",), unpack="7z")
    here = world.serve("here")
    with pytest.raises(DownloadFailed, match="2 files would have to be") as refused:
        world.obtain([here, known, unknown], offline=True)
    said = "\n".join(refused.value.looked)
    for part in (
        "mkl-1, 77 bytes",
        "from https://x/mkl_1.7z",
        f"sha256 {'ab' * 32}",
        f"to {world.store / 'files' / 'ab' / ('ab' * 32) / 'mkl_1.7z'}",
        f"to {world.store / 'incoming' / 'magma.7z'}",
    ):
        assert part in said
    assert "secret" not in said
    assert "here" not in said


@pytest.mark.parametrize("offline", [False, True])
@pytest.mark.parametrize("place", ["files", "incoming"])
def test_a_file_that_a_user_laid_there_is_taken(place: str, offline: bool, world: World) -> None:
    artifact = world.serve("mkl-1")
    sha256 = world.sha256(artifact)
    known = replace(artifact, urls=("https://nowhere.invalid/mkl-1.zip",), sha256=sha256)
    laid = (
        shelf.file_of(world.store, sha256, "mkl-1.zip")
        if place == "files"
        else world.store / "incoming/mkl-1.zip"
    )
    laid.parent.mkdir(parents=True)
    world.archive(artifact).rename(laid)
    assert world.obtain([known], offline=offline)["mkl-1"].is_dir()
    assert shelf.file_of(world.store, sha256, "mkl-1.zip").is_file()


def test_an_unpinned_file_that_a_user_laid_there_is_pinned(world: World) -> None:
    artifact = world.serve("mkl-1")
    (world.store / "incoming").mkdir(parents=True)
    sha256 = world.sha256(artifact)
    world.archive(artifact).rename(world.store / "incoming" / "mkl-1.zip")
    unreachable = replace(artifact, urls=("https://nowhere.invalid/mkl-1.zip",))
    world.obtain([unreachable], offline=True)
    assert world.pins["mkl-1"].sha256 == sha256
    assert world.pins["mkl-1"].url == "https://nowhere.invalid/mkl-1.zip"
    assert list((world.store / "incoming").iterdir()) == []


def test_a_wheel_that_a_user_laid_there_is_taken(world: World) -> None:
    artifact = wheel(world)
    (world.store / "incoming").mkdir(parents=True)
    (path,) = (world.root / "wheels").iterdir()
    path.rename(world.store / "incoming" / path.name)
    assert world.obtain([artifact], offline=True)[artifact.id].is_dir()


def test_a_wrong_file_that_a_user_laid_there_is_refused_and_stays(world: World) -> None:
    artifact = replace(world.serve("mkl-1"), sha256="ef" * 32)
    laid = world.store / "incoming" / "mkl-1.zip"
    laid.parent.mkdir(parents=True)
    laid.write_bytes(b"other")
    with pytest.raises(HashRefused, match="not the file that was expected") as refused:
        world.obtain([artifact], offline=True)
    assert str(laid) in "".join(refused.value.looked)
    assert laid.read_bytes() == b"other"


# ---------------------------------------------------------------- servers, and other checkouts


def test_what_another_server_gave_is_not_what_is_wanted(world: World) -> None:
    """Nobody published a hash: then the address says which file it is, and each is downloaded itself."""
    evil = world.serve("evil", b"EVIL")
    honest = replace(world.serve("honest", b"HONEST"), id="evil", name="evil")
    world.obtain([evil])
    world.lock_file.unlink()
    world.notes.clear()
    (folder,) = world.obtain([honest]).values()
    assert (folder / "include/a.h").read_bytes() == b"HONEST"
    assert world.pins["evil"].url == honest.urls[0]
    assert "first download of evil" in world.notes[0]


def test_checkouts_that_call_two_things_the_same_have_a_folder_each(world: World) -> None:
    evil = replace(world.serve("evil", b"EVIL"), place="evil-1")
    honest = replace(world.serve("honest", b"HONEST"), id="evil", name="evil", place="evil-2")
    first = world.obtain([evil])["evil"]
    world.lock_file.unlink()
    second = world.obtain([honest])["evil"]
    assert [(folder / "include/a.h").read_bytes() for folder in (first, second)] == [b"EVIL", b"HONEST"]
    assert [finding.status for finding in shelf.verify(world.store)] == ["ok", "ok"]


def test_what_was_in_the_store_is_no_first_download(world: World) -> None:
    artifact = world.serve("mkl-1")
    world.obtain([artifact])
    world.lock_file.unlink()
    world.notes.clear()
    world.obtain([artifact])
    assert "first download" not in world.notes[0]
    assert f"was in the store, downloaded from {artifact.urls[0]}" in world.notes[0]


def test_plain_http_without_a_hash_is_refused_before_any_request(world: World) -> None:
    artifact = replace(world.serve("mkl-1"), urls=("http://127.0.0.1:9/mkl-1.zip",))
    with pytest.raises(HashRefused, match="plain http") as refused:
        world.obtain([artifact])
    assert "--allow-http" in refused.value.next_step
    offline = Net(offline=True)  # it gets as far as that
    with pytest.raises(DownloadFailed, match="offline"):
        world.obtain([replace(artifact, sha256="ab" * 32)], net=offline)
    with pytest.raises(DownloadFailed, match="offline"):
        world.obtain([artifact], net=offline, allow_http=True)


def test_a_mirror_over_plain_http_is_no_better(world: World) -> None:
    artifact = replace(world.serve("mkl-1"), urls=("https://h/mkl-1.zip",))
    with pytest.raises(HashRefused, match="plain http"):
        world.obtain([artifact], net=Net(mirrors=(("", "http://127.0.0.1:9/"),)))


def test_prune_takes_unfinished_downloads_that_no_run_resumes(world: World) -> None:
    kept, other = world.serve("mkl-1"), world.serve("magma-1")
    for artifact in (kept, other):
        folder = shelf.partial_of(world.store, artifact)
        folder.mkdir(parents=True)
        (folder / "x.part").write_bytes(b"12345")
    partial = {shelf.partial_of(world.store, kept)}
    assert shelf.prune(world.store, (), partial=partial, dry_run=True).bytes == 5
    shelf.prune(world.store, (), partial=partial)
    assert set(shelf.unfinished(world.store)) == partial


on_posix = pytest.mark.skipif(sys.platform == "win32", reason="rights are kept elsewhere there")


@on_posix
@pytest.mark.parametrize("place", ["", "unpacked", "unpacked/a", "files", "toolkits/cuda"])
def test_a_store_that_everybody_can_change_is_not_used(
    place: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    artifact = world.serve("a")
    world.obtain([artifact])
    (world.store / "toolkits/cuda").mkdir(parents=True)
    (world.store / place).chmod(0o777)
    with pytest.raises(Untrusted, match=f"everybody may write in {re.escape(str(world.store / place))},"):
        world.obtain([artifact])
    (world.store / place).chmod(0o1777)  # as /tmp: nobody moves what is another's
    world.obtain([artifact])
    (world.store / place).chmod(0o777)
    monkeypatch.setenv("TORCHBUILD_TRUST", str(world.root))
    world.obtain([artifact])


@on_posix
def test_a_store_of_another_user_is_not_used(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    artifact = world.serve("a")
    world.obtain([artifact])
    owner = world.store.stat().st_uid or 1000
    os.chown(world.store, owner, -1)
    monkeypatch.setattr("os.geteuid", lambda: owner + 1)
    with pytest.raises(Untrusted, match=f"user {owner} owns"):
        world.obtain([artifact])
    monkeypatch.setenv("SUDO_UID", str(owner))  # who runs us by sudo
    world.obtain([artifact])
