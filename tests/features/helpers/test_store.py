"""The store: what counts as there, what is removed, and what never is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.archives import Put, make
from tests.support.capabilities import needs_symlinks
from tests.support.preflight import RecordingReporter
from torchbuild_tasks.build.work import Fetching
from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.features.helpers import store as shelf
from torchbuild_tasks.features.helpers.act import prune_helpers
from torchbuild_tasks.features.helpers.choose import HelperReport
from torchbuild_tasks.model import Artifact
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.system.archive.unpack import unpack
from torchbuild_tasks.system.mark import MARKER, Origin, read_marker, write_marker
from torchbuild_tasks.system.net.client import Net
from torchbuild_tasks.values import replace

DEAD = 999_999_999  # no process has such a number
SHA = {"mkl-1": "aa" * 32, "magma-2": "bb" * 32}
SIZE = 3 + 4  # bytes of the files in each


def artifact(artifact_id: str = "mkl-1", *holds: str) -> Artifact:
    return Artifact(id=artifact_id, name="x", version="1", unpack="zip", holds=holds)


def fill(store: Path, artifact_id: str = "mkl-1") -> Path:
    """Put an artifact with two files into the store, and its download."""
    sha256 = SHA[artifact_id]
    archive = shelf.file_of(store, sha256, f"{artifact_id}.zip")
    archive.parent.mkdir(parents=True)
    make("zip", archive, [Put("include/a.h", b"abc"), Put("lib/b.lib", b"efgh")])
    folder = shelf.folder_of(store, artifact_id)
    origin = Origin(id=artifact_id, sha256=sha256, url="https://x/y.zip", size=archive.stat().st_size)
    unpack(archive, "zip", folder, tell=lambda *_: None, name="x", origin=origin)
    return folder


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}


# ---------------------------------------------------------------- find, list, verify


def test_what_is_unpacked_is_found_if_it_holds_what_is_wanted(tmp_path: Path) -> None:
    assert shelf.find(tmp_path, artifact()) is None
    folder = fill(tmp_path)
    assert shelf.find(tmp_path, artifact("mkl-1", "include/a.h", "lib")) == folder
    assert shelf.find(tmp_path, artifact("mkl-1", "bin")) is None
    assert shelf.find(tmp_path, artifact("magma-2")) is None


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"id": "mkl-1", "sha256": "aa"}', None, "other", "unfinished"]
)
def test_a_folder_without_a_good_mark_is_not_there(text: str | None, tmp_path: Path) -> None:
    marker = fill(tmp_path) / MARKER
    data = json.loads(marker.read_text("utf-8"))
    if text is None:
        marker.unlink()
    else:
        changed = {"other": {**data, "id": "mkl-2"}, "unfinished": {**data, "finished": None}}
        marker.write_text(json.dumps(changed[text]) if text in changed else text, "utf-8")
    assert shelf.find(tmp_path, artifact()) is None


@pytest.mark.parametrize("bad", ["", "..", ".", "a/b", "a\\b", "/a", "C:", "con", ".hidden", "a."])
def test_an_id_that_is_no_folder_name_is_refused(bad: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be the name of a folder"):
        shelf.find(tmp_path, artifact(bad))


def test_verify_finds_what_was_changed(tmp_path: Path) -> None:
    first, second = fill(tmp_path, "mkl-1"), fill(tmp_path, "magma-2")
    assert [(one.id, one.status) for one in shelf.verify(tmp_path)] == [("magma-2", "ok"), ("mkl-1", "ok")]
    (first / "include/a.h").unlink()
    (first / "lib/b.lib").write_bytes(b"longer")
    (second / MARKER).write_text("{", "utf-8")
    (tmp_path / "unpacked" / "mine").mkdir()
    findings = {one.id: one for one in shelf.verify(tmp_path)}
    assert findings["mkl-1"].status == "error"
    assert "2 of 2 files are missing or changed: include/a.h, lib/b.lib" in findings["mkl-1"].text
    assert findings["mkl-1"].fix
    assert (findings["magma-2"].status, findings["mine"].status) == ("error", "unknown")


def test_verify_finds_a_change_that_keeps_the_size_unless_the_mark_is_old(tmp_path: Path) -> None:
    folder = tmp_path / "unpacked/mkl-1"
    archive = make("zip", tmp_path / "a.zip", [Put("a", b"HONEST")])
    unpack(archive, "zip", folder, tell=lambda *now: None, name="mkl-1")
    assert [one.status for one in shelf.verify(tmp_path)] == ["ok"]
    marker = read_marker(folder)
    assert marker is not None
    write_marker(folder, replace(marker, hashes={}))
    assert [one.status for one in shelf.verify(tmp_path)] == ["unknown"]
    write_marker(folder, marker)
    (folder / "a").write_bytes(b"TAMPER")
    assert [one.status for one in shelf.verify(tmp_path)] == ["error"]


@needs_symlinks
def test_verify_finds_a_link_that_says_something_else(tmp_path: Path) -> None:
    archive = make("zip", tmp_path / "a.zip", [Put("a"), Put("b"), Put("link", kind="link", target="a")])
    folder = shelf.folder_of(tmp_path, "mkl-1")
    unpack(archive, "zip", folder, tell=lambda *_: None, name="x")
    assert [one.status for one in shelf.verify(tmp_path)] == ["ok"]
    (folder / "link").unlink()
    (folder / "link").symlink_to("b")
    assert [one.status for one in shelf.verify(tmp_path)] == ["error"]


# ---------------------------------------------------------------- prune


def test_prune_removes_what_no_kept_artifact_uses(tmp_path: Path) -> None:
    fill(tmp_path, "mkl-1")
    gone = fill(tmp_path, "magma-2")
    download = shelf.file_of(tmp_path, SHA["magma-2"], "x").parent
    before = files(tmp_path)
    planned = shelf.prune(tmp_path, {"mkl-1"}, dry_run=True)
    assert files(tmp_path) == before
    done = shelf.prune(tmp_path, {"mkl-1"})
    assert planned == done
    assert set(done.paths) == {str(gone), str(download)}
    assert done.bytes > SIZE
    assert not gone.exists()
    assert not download.exists()
    assert shelf.find(tmp_path, artifact("mkl-1")) is not None
    assert shelf.file_of(tmp_path, SHA["mkl-1"], "mkl-1.zip").exists()
    assert shelf.prune(tmp_path, {"mkl-1"}) == shelf.Pruned()


def test_a_download_can_be_kept_by_its_hash(tmp_path: Path) -> None:
    fill(tmp_path, "mkl-1")
    shelf.prune(tmp_path, {SHA["mkl-1"]})
    assert [path.name for path in (tmp_path / "unpacked").iterdir()] == []
    assert shelf.file_of(tmp_path, SHA["mkl-1"], "mkl-1.zip").exists()


def test_prune_never_removes_anything_else(tmp_path: Path) -> None:
    mine = (
        "unpacked/mine/file",
        "unpacked/file",
        f"unpacked/.mine.{DEAD}/file",
        f"files/{'ab' * 32}/x",
        "files/aa/short/x",
        f"files/ab/{'aa' * 32}/x",
        f"files/FF/{'FF' * 32}/x",
        "files/aa/file",
        "incoming/mkl.7z",
        f"partial/{'ab' * 32}/mkl.7z.part",
        "README",
        "elsewhere/x",
    )
    for name in mine:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"1")
    assert shelf.prune(tmp_path, ()) == shelf.Pruned()
    assert files(tmp_path) == set(mine)


def test_prune_removes_what_killed_runs_left(tmp_path: Path) -> None:
    leftovers = [
        tmp_path / "unpacked" / f".mkl-1.{DEAD}.unpacking",
        tmp_path / "unpacked" / f".mkl-1.{DEAD}.removing",
        tmp_path / "partial" / f".mkl-1.{DEAD}.downloading",
        tmp_path / "files" / "aa" / f".{'aa' * 32}.{DEAD}.removing",
    ]
    for leftover in leftovers:
        leftover.mkdir(parents=True)
        (leftover / "file").write_bytes(b"123")
    done = shelf.prune(tmp_path, ())
    assert set(done.paths) == set(map(str, leftovers))
    assert done.bytes == 12


def test_prune_leaves_alone_what_another_run_holds(tmp_path: Path) -> None:
    fill(tmp_path, "mkl-1")
    held = fill(tmp_path, "magma-2")
    with shelf.hold(tmp_path, {"magma-2"}, pytest.fail):
        done = shelf.prune(tmp_path, ())
        assert done.paths == (str(tmp_path / "unpacked" / "mkl-1"),)
        assert dict(done.kept)[str(held)] == "another run holds it"
        assert shelf.file_of(tmp_path, SHA["mkl-1"], "mkl-1.zip").exists()  # nobody knows who needs it now
    assert len(shelf.prune(tmp_path, ()).paths) == 3


def test_prune_says_what_stays_and_why(tmp_path: Path) -> None:
    held, said = fill(tmp_path), RecordingReporter()
    fetching = Fetching(store=tmp_path, lock_file=tmp_path / "lock", net=Net(), require_hashes=False)
    before = HelperReport(action="prune", lines=())
    fill(tmp_path, "magma-2")
    with shelf.hold(tmp_path, {"mkl-1"}, pytest.fail):
        prune_helpers(before, (), (), fetching, BuildRequest(yes=True), said)
    assert f"{held} stays: another run holds it" in said.notes


@needs_symlinks
@pytest.mark.parametrize(
    "where", ["unpacked", "unpacked/mkl-1", "files", "files/aa", f"files/aa/{'aa' * 32}"]
)
def test_prune_follows_no_link(where: str, tmp_path: Path) -> None:
    store, elsewhere = tmp_path / "store", tmp_path / "elsewhere"
    fill(store)
    (store / where).rename(elsewhere)
    (store / where).symlink_to(elsewhere)
    before = files(elsewhere)
    shelf.prune(store, ())
    assert files(elsewhere) == before
    assert (store / where).is_symlink()


@needs_symlinks
def test_a_link_in_what_is_pruned_goes_and_what_it_leads_to_stays(tmp_path: Path) -> None:
    folder = fill(tmp_path / "store")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_bytes(b"1")
    (folder / "link").symlink_to(tmp_path / "mine")
    shelf.prune(tmp_path / "store", ())
    assert not folder.exists()
    assert files(tmp_path / "mine") == {"file"}


# ---------------------------------------------------------------- one run at a time


def test_discard_takes_only_what_is_ours(tmp_path: Path) -> None:
    folder = fill(tmp_path)
    shelf.discard(tmp_path, "mkl-1")
    assert not folder.exists()
    shelf.discard(tmp_path, "mkl-1")
    folder.mkdir()
    (folder / "mine").write_bytes(b"1")
    shelf.discard(tmp_path, "mkl-1")
    assert files(folder) == {"mine"}


def test_a_lock_is_free_again_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(KeyError), shelf.hold(tmp_path, {"a", "b"}, pytest.fail):
        raise KeyError
    with shelf.hold(tmp_path, {"b", "a"}, pytest.fail):
        pass
