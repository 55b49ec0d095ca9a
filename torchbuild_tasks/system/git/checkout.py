"""Check out a commit without losing changes of the user's, also after an interrupted checkout.

git refuses to overwrite what differs from its index, and after a checkout that was killed half of the
files do. Those are known by their content: what is in the way may be overwritten when it is what the wanted
commit holds, or the beginning of that (the file that was being written).
"""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from torchbuild_tasks.system.git.run import Git, entries_in
from torchbuild_tasks.system.git.transfer import Outcome, Watch, run


class InTheWay(Exception):
    """Files of the user's would be overwritten; the argument lists them."""

    def __init__(self, files: tuple[str, ...]) -> None:
        super().__init__(files)
        self.files = files


def check_out(git: Git, commit: str, name: str, watch: Watch, *, also: Sequence[str] = ()) -> Outcome:
    """Check out a commit, also over the files of an interrupted checkout.

    Args:
        commit: the commit; its objects are in the repository.
        name: the name in progress messages.
        also: as `files_in_the_way`.

    Raises:
        InTheWay: files of the user's would be overwritten; nothing was changed.
    """
    checkout = ("-c", "advice.detachedHead=false", "checkout", "--progress", "--detach")
    outcome = run(git, (*checkout, "--no-overwrite-ignore", commit), name, watch)
    if outcome.rc == 0:
        return outcome
    if others := files_in_the_way(git, commit, *also):
        raise InTheWay(others)
    return run(git, (*checkout, "--force", commit), name, watch)


def files_in_the_way(git: Git, commit: str, *also: str) -> tuple[str, ...]:
    """Return changed, staged or untracked files that a checkout of `commit` would overwrite.

    Args:
        commit: the commit to check out; its objects are in the repository.
        also: other commits whose files may be overwritten: the target of an interrupted checkout.
    """
    wanted = ids_in_tree(git, commit, "blob")
    others = (ids_in_tree(git, each, "blob") for each in dict.fromkeys(also) if each)
    trees = (wanted, *others)
    suspects = set(_names(git, "diff", "--name-only", "--no-renames", "-z", "--ignore-submodules=all"))
    if git.output("rev-parse", "--verify", "--quiet", "HEAD") is not None:
        staged = ("diff", "--cached", "--name-only", "--no-renames", "-z", "--ignore-submodules=all", "HEAD")
        suspects.update(_names(git, *staged))
    tracked = set(_names(git, "ls-files", "-z"))
    obstacle_at = _obstacle_finder(git.folder)
    obstacles = (obstacle_at(path) for path in wanted if path not in tracked)
    # A tracked link or file, where the commit has a folder, is removed by the checkout.
    suspects.update(path for path in obstacles if path and path not in tracked)
    return tuple(
        sorted(
            path
            for path in suspects
            if obstacle_at(path) == path
            and not any(_is_of(git, path, blob) for blob in {tree.get(path) for tree in trees})
        )
    )


def files_not_of(git: Git, commit: str) -> tuple[str, ...]:
    """Return the files of a worktree without an index that differ from `commit`, sorted."""
    wanted = ids_in_tree(git, commit, "blob")
    paths = []
    for folder, folders, names in os.walk(git.folder):
        folders[:] = [name for name in folders if name != ".git"]
        for name in names:
            path = (Path(folder) / name).relative_to(git.folder).as_posix()
            if name != ".git" and not _is_of(git, path, wanted.get(path)):
                paths.append(path)
    return tuple(sorted(paths))


def changed_files(git: Git, *, deleted: bool = True, untracked: bool = True) -> tuple[str, ...]:
    """Return the changed, staged and added files (not ignored ones), relative to the worktree, sorted.

    Args:
        deleted: those too that were deleted.
        untracked: those too that git does not track.
    """
    status = ("status", "--porcelain=v1", "-z", "--no-renames", "--ignore-submodules=all")
    names = _names(git, *status, f"--untracked-files={'all' if untracked else 'no'}")
    return tuple(sorted(each[3:] for each in names if deleted or each[:2] not in (" D", "D ")))


def _names(git: Git, *words: str) -> list[str]:
    return entries_in(git.output(*words, timeout=None))


def _obstacle_finder(root: Path) -> Callable[[str], str | None]:
    """Return a function from a path to the existing file or link at it or above it; None for none.

    A path through a link (`.jenkins -> .ci` of 2.0, where 1.10 has a folder) names a file elsewhere.
    """

    @functools.cache
    def obstacle_at(path: str) -> str | None:
        above = path.rpartition("/")[0]
        if above and (obstacle := obstacle_at(above)):
            return obstacle
        place = root / path
        return path if place.is_symlink() or place.is_file() else None

    return obstacle_at


def _is_of(git: Git, path: str, blob: str | None) -> bool:
    """Say whether a file has the content of this blob, or the beginning of it."""
    if blob is None:
        return False
    place = git.folder / path
    data = os.fsencode(place.readlink()) if place.is_symlink() else place.read_bytes()
    plain = data.replace(b"\r\n", b"\n")  # git for Windows writes CRLF where the user wants it
    if blob in (_blob_id(data, blob), _blob_id(plain, blob)):
        return True
    captured = git.ask("cat-file", "blob", blob, timeout=None)
    return captured.rc == 0 and any(captured.stdout.startswith(each) for each in (data, plain))


def _blob_id(data: bytes, like: str) -> str:
    digest = hashlib.sha256 if len(like) == 64 else hashlib.sha1
    return digest(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def ids_in_tree(git: Git, commit: str, kind: Literal["blob", "commit"]) -> dict[str, str]:
    """Return the ids of the files ("blob") or submodules ("commit") of a commit, by path.

    There are none where the repository lacks the commit.
    """
    ids = {}
    for entry in entries_in(git.output("ls-tree", "-r", "-z", "--full-tree", commit, timeout=None)):
        about, _, path = entry.partition("\t")
        _, what, id = about.split(" ")
        if what == kind:
            ids[path] = id
    return ids
