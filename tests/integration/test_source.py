"""`source` against real git servers on loopback: sound ones, and some that fail, stall and vanish."""

from __future__ import annotations

import functools
import io
import os
import shutil
import subprocess
import tarfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import git_servers as gits
from tests.support.capabilities import needs_git
from tests.support.git_servers import ALL, NEXT, TAG, GitServer, git, silent
from tests.support.sources import RecordingReporter, act, content
from torchbuild_tasks.errors import ArchiveRefused, SourceError, TreeBusy, UsageError
from torchbuild_tasks.features.source import places

pytestmark = [pytest.mark.integration, needs_git]


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return gits.publish(tmp_path_factory.mktemp("published") / "root")


@pytest.fixture(scope="module")
def sound(published: Path) -> Iterator[GitServer]:
    with GitServer(published) as server:
        yield server


@pytest.fixture
def server(sound: GitServer) -> GitServer:
    """The server, sound until a test says otherwise."""
    sound.faults, sound.seen = {}, []
    sound.over.clear()
    return sound


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture(scope="module")
def got(sound: GitServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = tmp_path_factory.mktemp("got")
    return Path(act(store, sound.url, "get", TAG).checkouts[0].path)


@pytest.fixture
def root(got: Path, tmp_path: Path) -> Path:
    """A checkout of the test's own."""
    return Path(shutil.copytree(got, tmp_path / "pt", symlinks=True))


def test_a_new_checkout_is_complete_shallow_and_has_no_setting_of_ours(
    server: GitServer, store: Path
) -> None:
    report = act(store, server.url, "get", "2.14.0")
    (checkout,) = report.checkouts
    root = Path(checkout.path)
    assert (checkout.kind, checkout.version, checkout.at, checkout.shallow) == ("clone", "2.14.0", TAG, True)
    assert root.is_relative_to(store / "sources")
    for path in ALL:
        assert (root / path / "payload.bin").is_file()
        assert git(root / path, "rev-list", "--count", "HEAD") == "1"
    assert content(root)["changes"] == ""
    settings = git(root, "config", "--local", "--list")
    assert "insteadof" not in settings.lower() and "unpacklimit" not in settings.lower()
    assert [path.name for path in (store / "sources").iterdir()] == [
        root.name
    ]  # nothing half is left beside it


def test_git_itself_takes_the_submodules_for_its_own(server: GitServer, store: Path, root: Path) -> None:
    assert (root / "third_party/one/.git").read_text().strip() == "gitdir: ../../.git/modules/third_party/one"
    git(root, "submodule", "foreach", "--recursive", "--quiet", "git status")
    before = content(root)
    root.rename(store.parent / "elsewhere")  # the paths in it are relative
    assert content(store.parent / "elsewhere") == before
    git(store.parent / "elsewhere", "submodule", "deinit", "--force", "--all")
    git(store.parent / "elsewhere", "submodule", "update", "--init", "--recursive", "--no-fetch")
    assert content(store.parent / "elsewhere") == before


@pytest.mark.parametrize(("word", "near"), [("2.99", NEXT), ("mian", "main"), ("deadbeef" * 5, "")])
def test_what_is_not_there_is_an_error_and_never_the_default_branch(
    server: GitServer, store: Path, word: str, near: str
) -> None:
    with pytest.raises(SourceError) as raised:
        act(store, server.url, "get", word)
    assert near in "".join(raised.value.looked)
    assert not list((store / "sources").glob("[!.]*"))


def test_an_unreachable_host_is_named_with_the_mirror_that_would_help(store: Path) -> None:
    with pytest.raises(SourceError) as raised:
        act(store, "http://127.0.0.1:1/pytorch.git", "get", TAG)
    assert '[mirrors]\n"http://127.0.0.1:1/" = ' in raised.value.next_step


def test_mirrors_of_hosts_stand_in_for_them_in_submodules_too(server: GitServer, store: Path) -> None:
    url, real = "https://gone.invalid/pytorch.git", server.url.removesuffix("pytorch.git")
    root = Path(act(store, url, "get", TAG, mirrors=(("https://gone.invalid/", real),)).checkouts[0].path)
    assert git(root, "remote", "get-url", "origin") == url
    assert git(root / ALL[-1], "remote", "get-url", "origin") == "https://gone.invalid/deep.git"


def test_one_fails_one_stalls_one_vanishes_and_all_are_had(
    server: GitServer, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHBUILD_STALL", "1")
    server.faults = {"one": ["fail"], "two": ["stall"], "deep": ["vanish"]}
    said = RecordingReporter()
    root = Path(act(store, server.url, "get", TAG, said=said).checkouts[0].path)
    assert content(root)["changes"] == ""
    assert {note.partition(":")[0] for note in said.notes if "once more" in note} == set(ALL) - {ALL[2]}


def test_what_cannot_be_had_is_named_and_the_rest_stays_for_the_next_run(
    server: GitServer, store: Path
) -> None:
    server.faults = {"one": ["missing"] * 20}
    with pytest.raises(SourceError) as raised:
        act(store, server.url, "get", TAG)
    assert [line.split()[0] for line in raised.value.looked] == ["third_party/one"]
    assert not list((store / "sources").glob("[!.]*"))  # a part is not taken for a checkout
    server.faults, server.seen = {}, []
    root = Path(act(store, server.url, "get", TAG).checkouts[0].path)
    assert content(root)["changes"] == ""
    assert {path.split("/")[1] for path in server.seen} == {"pytorch.git", "one.git"}
    assert not [path for path in server.seen if path == "/pytorch.git/git-upload-pack"][1:]  # ls-remote alone


def test_a_server_that_says_nothing_is_given_up(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHBUILD_STALL", "1")
    with silent() as url, pytest.raises(SourceError) as raised:
        act(store, url, "get", TAG)
    assert "nothing was heard for 1 seconds" in raised.value.looked


def test_a_checkout_moves_on_and_refuses_to_over_changes(server: GitServer, store: Path, root: Path) -> None:
    (root / "version.txt").write_text("mine\n")
    with pytest.raises(SourceError) as raised:
        act(store, server.url, "update", NEXT, root)
    assert raised.value.looked == ("version.txt",)
    assert "stash" in raised.value.next_step and "--source" in raised.value.next_step
    assert (root / "version.txt").read_text() == "mine\n"
    git(root, "checkout", "version.txt")
    (root / "third_party/one/text.txt").write_text("mine\n")
    act(store, server.url, "update", NEXT, root)  # carried along: it is in nobody's way
    assert (root / "third_party/one/text.txt").read_text() == "mine\n"
    assert (root / "third_party/one/new.txt").is_file()
    other = Path(act(store, server.url, "get", NEXT).checkouts[0].path)
    git(root / "third_party/one", "checkout", "text.txt")
    assert content(root) == content(other)


def test_a_submodule_with_changes_in_the_way_is_refused_by_name(
    server: GitServer, store: Path, root: Path
) -> None:
    (root / "third_party/one/new.txt").write_text("mine\n")
    with pytest.raises(SourceError) as raised:
        act(store, server.url, "update", NEXT, root)
    assert (
        "third_party/one" in raised.value.looked[0] and "changes of yours: new.txt" in raised.value.looked[0]
    )
    assert (root / "third_party/one/new.txt").read_text() == "mine\n"


def test_a_commit_that_no_branch_holds_is_kept(server: GitServer, store: Path, root: Path) -> None:
    (root / "mine.txt").write_text("mine\n")
    git(root, "add", "mine.txt")
    git(root, "commit", "--quiet", "--message", "mine")
    mine = git(root, "rev-parse", "HEAD")
    act(store, server.url, "update", NEXT, root)
    assert git(root, "for-each-ref", "--format=%(objectname)", "refs/torchbuild/kept") == mine
    assert "kept" in act(store, server.url, "status", None, root).checkouts[0].notes[0]


def test_a_full_history_stays_full_and_comes_on_request(
    server: GitServer, store: Path, published: Path
) -> None:
    mine = store.parent / "mine"
    git(store.parent, "clone", "--quiet", str(published / "pytorch.git"), str(mine))
    git(mine, "checkout", "--quiet", TAG)
    git(mine, "remote", "set-url", "origin", server.url)
    act(store, server.url, "update", NEXT, mine)
    assert git(mine, "rev-parse", "--is-shallow-repository") == "false"
    assert git(mine, "rev-list", "--count", "HEAD") == "3"
    assert git(mine, "rev-parse", "main")  # the user's branch is where it was
    root = Path(act(store, server.url, "get", NEXT, full=True).checkouts[0].path)
    assert git(root, "rev-list", "--count", "HEAD") == "3"
    assert git(root, "rev-parse", "--is-shallow-repository") == "false"
    assert git(root, "config", "remote.origin.partialclonefilter") == "blob:none"
    absent = git(root, "rev-list", "--objects", "--all", "--missing=print").count("\n?")
    assert absent  # contents of older versions come when they are asked for
    act(store, server.url, "update", TAG, root)
    assert content(root)["changes"] == ""


def test_a_worktree_has_its_own_submodules(server: GitServer, store: Path, root: Path) -> None:
    beside = store.parent / "beside"
    git(root, "worktree", "add", "--quiet", "--detach", str(beside))
    (checkout,) = act(store, server.url, "update", None, beside).checkouts
    assert checkout.kind == "worktree"
    assert (beside / ALL[-1] / "payload.bin").is_file()
    state = act(store, server.url, "status", None, beside).checkouts[0]
    assert {module.state for module in state.modules} == {"ok"}
    assert content(root)["changes"] == ""


def test_only_what_is_needed_is_got_and_the_rest_later(server: GitServer, store: Path) -> None:
    def needs(root: Path) -> object:
        return lambda path: not path.startswith("third_party/deeper/")

    report = act(store, server.url, "get", TAG, needs=needs)  # type: ignore[arg-type]
    root = Path(report.checkouts[0].path)
    assert not any((root / ALL[-1]).iterdir())
    assert not [path for path in server.seen if path.startswith("/deep.git")]
    act(store, server.url, "update", None, root)
    assert (root / ALL[-1] / "payload.bin").is_file()


def test_a_second_version_comes_out_of_the_mirror_store_and_stays_complete_without_it(
    server: GitServer, store: Path
) -> None:
    report = act(store, server.url, "mirror", TAG)
    assert {url.rpartition("/")[2] for url, _ in report.mirrors} == {
        f"{n}.git" for n in ("pytorch", "one", "two", "deeper", "deep")
    }
    server.seen = []
    root = Path(act(store, server.url, "get", TAG, offline=True).checkouts[0].path)
    assert server.seen == []
    act(store, server.url, "get", NEXT)
    fetched = [path.split("/")[1] for path in server.seen if path.endswith("git-upload-pack")]
    assert set(fetched) == {"pytorch.git", "one.git", "deeper.git"}  # what did not change was not asked for
    (store / "mirrors").rename(store / "gone")
    assert content(root)["changes"] == ""
    assert act(store, server.url, "status", None, root).checkouts[0].lost == ()


def test_without_a_network_what_the_store_lacks_is_reported(server: GitServer, store: Path) -> None:
    with pytest.raises(SourceError, match="there is no mirror of"):
        act(store, server.url, "get", NEXT, offline=True)
    act(store, server.url, "mirror", TAG)
    with pytest.raises(SourceError):
        act(store, server.url, "get", NEXT, offline=True)


def test_two_commands_on_one_tree_and_two_gets_of_one_version(
    server: GitServer, store: Path, root: Path
) -> None:
    from torchbuild_tasks.system import lock

    with lock.hold(root, "build"), pytest.raises(TreeBusy) as raised:
        act(store, server.url, "update", NEXT, root)
    assert "build" in raised.value.what
    server.faults = {"two": ["stall"]}
    ended: list[object] = []

    def first() -> None:
        try:
            ended.append(act(store, server.url, "get", NEXT))
        except SourceError as error:
            ended.append(error)

    thread = threading.Thread(target=first)
    thread.start()
    while server.faults["two"]:
        assert thread.is_alive()
        time.sleep(0.01)
    with pytest.raises(TreeBusy):
        act(store, server.url, "get", NEXT)
    server.over.set()  # the stalled answer ends, and the fetch is tried once more
    thread.join(60)
    assert len(ended) == 1 and not isinstance(ended[0], Exception)


def test_a_merge_that_git_cannot_decide_is_explained(server: GitServer, store: Path, root: Path) -> None:
    commit = git(root / "third_party/one", "rev-parse", "HEAD")
    entries = "".join(
        f"160000 {digit * 40} {stage}\tthird_party/one\n" for stage, digit in ((2, "a"), (3, "b"))
    )
    git(root, "update-index", "--force-remove", "third_party/one")
    (root / "entries").write_text(entries)
    subprocess.run(["git", "update-index", "--index-info"], cwd=root, input=entries.encode(), check=True)
    with pytest.raises(SourceError) as raised:
        act(store, server.url, "update", None, root)
    assert raised.value.looked == ("third_party/one: ours aaaaaaaaaa, theirs bbbbbbbbbb",)
    assert git(root / "third_party/one", "rev-parse", "HEAD") == commit


def test_reset_gets_third_party_anew_and_keeps_what_is_the_users(
    server: GitServer, store: Path, root: Path
) -> None:
    before = content(root)
    (root / "third_party/one/payload.bin").unlink()
    (root / "third_party/deeper/junk.o").write_text("")
    (root / "third_party/two/text.txt").write_text("mine\n")
    with pytest.raises(UsageError):
        act(store, server.url, "reset", None, root)
    report = act(store, server.url, "reset", None, root, third_party=True, dry_run=True)
    assert report.removed == ("third_party/one",)
    report = act(store, server.url, "reset", None, root, third_party=True)
    assert dict(report.kept) == {"third_party/two": ("text.txt",), "third_party/deeper": ("junk.o",)}
    assert (root / "third_party/one/payload.bin").is_file()
    assert (root / "third_party/two/text.txt").read_text() == "mine\n"
    act(store, server.url, "reset", None, root, third_party=True, yes=True)
    assert content(root) == before


def test_reset_mends_broken_repositories_and_old_addresses(
    server: GitServer, store: Path, root: Path
) -> None:
    before = content(root)
    broken = root / ".git/modules/third_party/one"
    for pack in (broken / "objects/pack").iterdir():
        pack.chmod(0o600)
        pack.write_bytes(b"")
    git(root, "config", "submodule.third_party/two.url", "http://127.0.0.1:1/two.git")
    for name in ("one", "two"):
        for path in (root / "third_party" / name).iterdir():
            if path.name != ".git":
                path.unlink()
    act(store, server.url, "reset", None, root, third_party=True)
    assert content(root) == before
    assert git(root, "config", "submodule.third_party/two.url").endswith(
        ":" + server.url.split(":")[2].replace("pytorch", "two")
    )
    assert len(list((root / ".torchbuild/broken-repositories").iterdir())) == 1


def test_what_git_folders_name_outside_of_the_checkout_stays(
    server: GitServer, store: Path, root: Path, tmp_path: Path
) -> None:
    """A `.git` that came with a checkout names other files, or another repository, as its own."""
    mine = tmp_path / "mine"
    git(tmp_path, "clone", "--quiet", server.url, str(mine))
    before = content(mine)
    git(root / "third_party/one", "config", "core.worktree", str(mine))
    act(store, server.url, "update", NEXT, root)
    assert content(mine) == before
    assert (root / "third_party/one/new.txt").is_file()

    (root / "third_party/two/.git").write_text(f"gitdir: {mine / '.git'}\n", "utf-8")
    head = git(mine, "rev-parse", "HEAD")
    act(store, server.url, "update", TAG, root)
    assert git(mine, "rev-parse", "HEAD") == head
    assert git(mine, "status", "--porcelain") == ""

    shutil.rmtree(root / ".git")
    (root / ".git").write_text(f"gitdir: {mine / '.git'}\n", "utf-8")
    with pytest.raises(SourceError, match="does not name"):
        act(store, server.url, "update", NEXT, root)
    git(root, "config", "core.worktree", str(root))  # as the error says
    shutil.rmtree(root / "third_party")  # whose repositories went with .git
    act(store, server.url, "update", NEXT, root)


def without(name: str, info: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Leave out what lies below a folder of that name, as `git archive` leaves out submodules."""
    return None if name in info.name.split("/")[1:] else info


def test_a_release_archive_becomes_a_checkout_and_one_without_submodules_does_not(
    server: GitServer, store: Path, root: Path, tmp_path: Path
) -> None:
    for name, skipped in (("pytorch-v2.14.0", ".git"), ("bare", "third_party")):
        with tarfile.open(tmp_path / f"{name}.tar.gz", "w:gz") as tar:
            tar.add(root, name, filter=functools.partial(without, skipped))
    (checkout,) = act(store, server.url, "get", str(tmp_path / "pytorch-v2.14.0.tar.gz")).checkouts
    assert (checkout.kind, checkout.version) == ("archive", "2.14.0")
    assert (Path(checkout.path) / ALL[-1] / "payload.bin").is_file()
    with pytest.raises(SourceError) as raised:
        act(store, server.url, "get", str(tmp_path / "bare.tar.gz"), tmp_path / "there")
    assert "no submodules" in raised.value.what
    assert not (tmp_path / "there").exists()
    with pytest.raises(SourceError, match="not a git checkout"):
        act(store, server.url, "update", NEXT, Path(checkout.path))


def test_a_release_that_was_packed_anew_keeps_its_links_and_a_refusal_leaves_nothing(
    server: GitServer, store: Path, tmp_path: Path
) -> None:
    """Debian's archive of 2.6.0 has .dockerignore, a link to .gitignore, and no .gitignore."""
    cases = {
        "packed": ((".dockerignore", ".gitignore"), ("third_party/x", "../docs/none")),
        "leaves": (("a/link", "../../mine"),),
        "absolute": (("link", "/etc/passwd"),),
    }
    for name, links in cases.items():
        with tarfile.open(tmp_path / f"{name}.tar.gz", "w:gz") as tar:
            info = tarfile.TarInfo("pytorch/version.txt")
            info.size = 6
            tar.addfile(info, io.BytesIO(b"2.6.0\n"))
            for place, target in links:
                info = tarfile.TarInfo(f"pytorch/{place}")
                info.type, info.linkname = tarfile.SYMTYPE, target
                tar.addfile(info)
    there = tmp_path / "there"
    for name, said in (("leaves", "leaves its folder"), ("absolute", "absolute path")):
        with pytest.raises((SourceError, ArchiveRefused), match=said):
            act(store, server.url, "get", str(tmp_path / f"{name}.tar.gz"), there)
        assert not there.exists() and not places.unfinished_folders(tmp_path)
    act(store, server.url, "get", str(tmp_path / "packed.tar.gz"), there)
    assert (there / "version.txt").is_file()
    if os.name == "posix":
        assert (there / ".dockerignore").readlink() == Path(".gitignore")


def test_a_branch_comes_with_all_history_and_again(server: GitServer, store: Path) -> None:
    root = Path(act(store, server.url, "get", "main", full=True).checkouts[0].path)
    assert git(root, "rev-parse", "--is-shallow-repository") == "false"
    assert git(root, "rev-parse", "refs/remotes/origin/main") == git(root, "rev-parse", "HEAD")
    act(store, server.url, "update", None, root, full=True)
    part = Path(act(store, server.url, "get", "main", store.parent / "part").checkouts[0].path)
    act(store, server.url, "update", "main", part, full=True)
    assert git(part, "rev-parse", "--is-shallow-repository") == "false"


def test_a_folder_with_something_in_it_is_not_taken(server: GitServer, store: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/file").write_text("mine")
    with pytest.raises(SourceError):
        act(store, server.url, "get", TAG, tmp_path / "mine")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["file"]
