"""Fetch one commit or ref into a repository, from its address or through the mirror store.

The mirror store is a folder of bare repositories, one for each address. Where it exists, all that is
fetched goes through it, so that a second checkout needs no network.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import urlsplit

import msgspec

from torchbuild_tasks.errors import SourceError
from torchbuild_tasks.system import files
from torchbuild_tasks.system.git.cut_off import mark_change
from torchbuild_tasks.system.git.run import Git
from torchbuild_tasks.system.git.transfer import PATIENCE, Outcome, Stopped, Watch, run
from torchbuild_tasks.system.stall import patience
from torchbuild_tasks.values import replace

MIRRORS: Final = "mirrors"
LOCKS: Final = "locks"
_ALL: Final = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
_MARK: Final = "torchbuild.mirror"
_ALTERNATES: Final = "info/alternates"
_PARTIAL: Final = ("--get-regexp", r"^remote\..*\.promisor$")
# Old servers, which a local git plays here, hand out no commit that is not a ref's.
_ANY_COMMIT: Final = "--upload-pack=git -c uploadpack.allowAnySHA1InWant=true upload-pack"


class WantedCommit(msgspec.Struct, frozen=True, kw_only=True):
    """A commit to fetch from a repository.

    Args:
        what: a full ref ("refs/tags/v2.9.1") or a commit.
        into: the local ref for it.
        full: with all history.
    """

    url: str
    what: str
    into: str
    commit: str
    full: bool = False


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """The access to repositories: the settings for every git command, the mirror store, the watch.

    Args:
        config: NAME=VALUE settings, the mirrors of torchbuild.toml among them.
        mirrors: the mirror store; None where there is none.
        offline: only what the mirror store has.
        watch: where progress is reported, and how many seconds of silence end a command.
        needed: says of a worktree, once its files are there, which submodules it cannot do without; None
            where that is not known, so that it gets those that the main checkout has.
    """

    config: tuple[str, ...]
    mirrors: Path | None = None
    offline: bool = False
    watch: Watch
    needed: Callable[[Path], Callable[[str], bool]] | None = None


class FetchReport(Protocol):
    """Receives reports on fetches."""

    def note(self, text: str) -> None: ...
    def transfer(self, name: str, done: int, total: int | None) -> None: ...


def access_for(
    tree: Path, report: FetchReport, *, config: tuple[str, ...], store: Path, offline: bool
) -> Access:
    """Return the access to repositories for a checkout; the mirror store is used if it exists.

    Raises:
        UsageError: TORCHBUILD_STALL is not a number of seconds.
    """
    watch = Watch(tree=str(tree), patience=patience(PATIENCE), transfer=report.transfer, note=report.note)
    mirrors = store / MIRRORS
    return Access(config=config, mirrors=mirrors if mirrors.is_dir() else None, offline=offline, watch=watch)


def bring(git: Git, wish: WantedCommit, access: Access, name: str) -> Outcome:
    """Fetch a commit, unless it is present.

    A repository with all its history keeps it: only a new or a shallow one is fetched into shallowly.
    """
    if _is_stored(git, wish, wish.into):
        return Outcome(rc=0)
    if access.mirrors is None:
        if access.offline:
            return Outcome(rc=1, words=("--offline, and there is no mirror store",))
        return _fetch(git, wish, wish.url, access, name)
    mirror = mirror_of(access.mirrors, wish.url)
    outcome = fill_mirror(mirror, wish, access, name)
    return outcome if outcome.rc else _fetch(git, wish, str(mirror), access, name)


def _is_stored(git: Git, wish: WantedCommit, ref: str) -> bool:
    """Say whether the repository has the commit, and the given ref points to it."""
    if not git.has(wish.commit) or (wish.full and is_shallow(git)):
        return False
    return not ref or git.output("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}") == wish.commit


def borrow(git: Git, commit: str, lender: Git, access: Access, name: str) -> None:
    """Copy a commit from another repository on this machine, if that has it.

    A new repository gets hard links to all objects, which take no space and, unlike git's alternates, stay
    valid after `git gc` or removal of the other one. After a failure `bring` fetches the commit.

    Raises:
        SourceError: a file cannot be written.
    """
    # In a new one a killed run may have linked only a part: the commit without its files.
    if not lender.has(commit) or (git.has(commit) and not is_new(git)):
        return
    shallow = is_shallow(lender)
    objects = lender.folder / (lender.output("rev-parse", "--git-path", "objects") or "")
    # The objects of a partial repository would look complete.
    parts = shallow or (objects / _ALTERNATES).exists() or lender.output("config", *_PARTIAL) is not None
    if is_new(git) and not parts:
        _link_objects(objects, git.folder / "objects")
    if not git.has(commit):
        wish = WantedCommit(url=str(lender.folder), what=commit, into="", commit=commit)
        options = (_ANY_COMMIT, *(("--update-shallow",) if shallow else ()))
        _fetch(git, wish, wish.url, access, name, *options)


def _link_objects(source: Path, target: Path) -> None:
    """Link each object and each pack of a repository into another one; an index after its pack."""
    for folder, folders, names in os.walk(source):
        folders[:] = [each for each in folders if each != "info"]
        place = target / Path(folder).relative_to(source)
        with files.translate_errors(SourceError, place):
            place.mkdir(parents=True, exist_ok=True)
        for name in sorted(names, key=lambda each: (each.endswith(".idx"), each)):
            if name.endswith((".pack", ".idx")) or "." not in name and not name.startswith("tmp_"):
                with files.translate_errors(SourceError, place / name), contextlib.suppress(FileExistsError):
                    _link(Path(folder, name), place / name)


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except FileExistsError:
        raise
    except OSError:  # another file system, or no hard links
        part = target.with_name(f"tmp_obj_{target.name}")  # git's name for an unfinished file
        shutil.copyfile(source, part)
        files.replace(part, target)


def _fetch(git: Git, wish: WantedCommit, address: str, access: Access, name: str, *options: str) -> Outcome:
    spec = f"+{wish.what}:{wish.into}" if wish.into else wish.what
    specs: tuple[str, ...] = (spec,)
    extra: tuple[str, ...] = ()
    if wish.full:
        # git refuses two sources for one destination, which `refs/heads/*` fills for a branch; the commit is
        # named separately, because the branch may move before it is fetched.
        spec = wish.what if wish.into.startswith("refs/remotes/origin/") else spec
        specs = (spec, "+refs/heads/*:refs/remotes/origin/*", "+refs/tags/*:refs/tags/*")
        extra = ("--unshallow",) if is_shallow(git) else ()
        if address == wish.url:  # a local mirror has all blobs, so no filter
            extra, address = (*extra, "--filter=blob:none"), "origin"
    elif is_shallow(git) or is_new(git):
        extra = ("--depth=1",)
    words = ("fetch", "--progress", "--no-tags", *options, *extra, address, *specs)
    return run(git, words, name, access.watch)


def is_shallow(git: Git) -> bool:
    return git.output("rev-parse", "--is-shallow-repository") == "true"


def shallow_commits(git: Git) -> frozenset[str]:
    """Return the commits at the boundary of a shallow repository."""
    place = git.output("rev-parse", "--git-path", "shallow")
    with contextlib.suppress(OSError):
        return frozenset((git.folder / (place or "")).read_text("ascii").split())
    return frozenset()


def is_new(git: Git) -> bool:
    """Say whether a repository has no objects yet."""
    return (
        git.output("for-each-ref", "--count=1") == ""
        and git.output("rev-parse", "--verify", "-q", "HEAD") is None
    )


# ---------------- the mirror store


def mirror_of(mirrors: Path, url: str) -> Path:
    """Return the folder of an address's mirror: host, path, and some digits of a hash."""
    parts = urlsplit(url.removesuffix("/").removesuffix(".git"))
    words = re.sub(r"[^\w.-]+", "-", f"{parts.hostname or 'local'}{parts.path[-60:]}".replace("/", "-"))
    digits = hashlib.sha256(url.removesuffix("/").removesuffix(".git").encode()).hexdigest()[:8]
    return mirrors / f"{words.strip('-.')}-{digits}.git"


def fill_mirror(mirror: Path, wish: WantedCommit, access: Access, name: str) -> Outcome:
    """Fetch a commit into the mirror unless it is there; one run at a time.

    Raises:
        SourceError: the mirror cannot be written.
        Stopped: everything is to end.
    """
    with _lock_mirror(mirror, access, name):
        git = Git(folder=mirror, config=access.config)
        with files.translate_errors(SourceError, mirror):
            mirror.mkdir(parents=True, exist_ok=True)
        with mark_change(mirror, mirror, mirror):
            if not (mirror / "HEAD").exists() or git.output("config", "--local", _MARK) is None:
                git.run("init", "--quiet", "--bare", ".")
                # Old servers, which a local git plays here, hand out no commit that is not a ref's.
                git.run("config", "--local", "uploadpack.allowAnySHA1InWant", "true")
                git.run("config", "--local", "remote.origin.url", wish.url)
                git.run("config", "--local", _MARK, wish.url)
            keep = wish.what if wish.what.startswith("refs/") else f"refs/torchbuild/{wish.commit}"
            if _is_stored(git, wish, keep):
                return Outcome(rc=0)
            if access.offline:
                return Outcome(rc=1, words=(f"--offline, and {mirror} does not hold it",))
            specs = (f"+{wish.what}:{keep}", *(_ALL if wish.full else ()))
            words = ("fetch", "--progress", *_depth(git, wish), wish.url, *specs)
            return run(git, words, name, replace(access.watch, tree=str(mirror)))


def _depth(git: Git, wish: WantedCommit) -> tuple[str, ...]:
    if wish.full:
        return ("--unshallow",) if is_shallow(git) else ()
    return ("--no-tags", "--depth=1") if is_shallow(git) or is_new(git) else ("--no-tags",)


@contextlib.contextmanager
def _lock_mirror(mirror: Path, access: Access, name: str) -> Iterator[None]:
    """Lock the mirror; wait for other threads and other runs."""
    import filelock

    folder = mirror.parent.parent / LOCKS
    with files.translate_errors(SourceError, folder):
        folder.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(folder / f"{mirror.name}.lock")
    began = time.monotonic()
    noted = False
    while True:
        with contextlib.suppress(filelock.Timeout):
            lock.acquire(timeout=0.5)
            break
        if access.watch.stop.is_set():
            raise Stopped
        if not noted and time.monotonic() - began > 2:
            access.watch.note(f"{name}: waiting for another fetch into {mirror.name}")
            noted = True
    try:
        yield
    finally:
        lock.release()


def mirrors_in(mirrors: Path) -> tuple[tuple[str, Path], ...]:
    """Return the address and folder of each mirror in the store, sorted."""
    known = []
    for folder in sorted(mirrors.iterdir()) if mirrors.is_dir() else ():
        if (folder / "HEAD").is_file() and (url := Git(folder=folder).output("config", "--local", _MARK)):
            known.append((url, folder))
    return tuple(known)


def lost_alternates(git: Git) -> tuple[str, ...]:
    """Return the missing folders among a repository's alternates."""
    place = git.folder / (git.output("rev-parse", "--git-path", f"objects/{_ALTERNATES}") or "")
    with contextlib.suppress(OSError):
        lines = place.read_text("utf-8").splitlines()
        return tuple(line for line in lines if line and not (place.parent.parent / line).is_dir())
    return ()
