"""Checks out a commit so that nothing of the user's is lost, also after a checkout that was cut off.

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

from torchbuild_tasks.system.git.run import Git
from torchbuild_tasks.system.git.transfer import Outcome, Watch, run


class InTheWay(Exception):
    """Files of the user's would be overwritten; the argument names them."""

    def __init__(self, files: tuple[str, ...]) -> None:
        super().__init__(files)
        self.files = files


def check_out(git: Git, commit: str, name: str, watch: Watch, *, also: Sequence[str] = ()) -> Outcome:
    """Check out a commit, over what a move that was cut off left.

    Args:
        git: a worktree.
        commit: where it goes; its objects are in the repository.
        name: what the progress is called.
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
    """Return the files that differ from git's index, are staged or in the way, and are not of `commit`.

    Args:
        git: a worktree.
        commit: where it is to go; its objects are in the repository.
        also: other commits whose content counts as ours: where a move that was cut off went.
    """
    wanted = ids_in_tree(git, commit, "blob")
    others = (ids_in_tree(git, each, "blob") for each in dict.fromkeys(also) if each)
    trees = (wanted, *others)
    suspects = set(_names(git, "diff", "--name-only", "--no-renames", "-z", "--ignore-submodules=all"))
    if git.output("rev-parse", "--verify", "--quiet", "HEAD") is not None:
        staged = ("diff", "--cached", "--name-only", "--no-renames", "-z", "--ignore-submodules=all", "HEAD")
        suspects.update(_names(git, *staged))
    tracked = set(_names(git, "ls-files", "-z"))
    standing = _standing(git.folder)
    obstacles = (standing(path) for path in wanted if path not in tracked)
    # A link or a file that git tracks, where the commit has a folder, goes with the move.
    suspects.update(path for path in obstacles if path and path not in tracked)
    return tuple(
        sorted(
            path
            for path in suspects
            if standing(path) == path
            and not any(_is_of(git, path, blob) for blob in {tree.get(path) for tree in trees})
        )
    )


def files_not_of(git: Git, commit: str) -> tuple[str, ...]:
    """Return the files of a worktree without an index that do not hold what `commit` holds there, sorted."""
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
    """Return files that were changed, staged or added (and are not ignored), by their paths in it, sorted.

    Args:
        git: the worktree.
        deleted: those too that were deleted.
        untracked: those too that git does not track.
    """
    status = ("status", "--porcelain=v1", "-z", "--no-renames", "--ignore-submodules=all")
    names = _names(git, *status, f"--untracked-files={'all' if untracked else 'no'}")
    return tuple(sorted(each[3:] for each in names if deleted or each[:2] not in (" D", "D ")))


def _names(git: Git, *words: str) -> list[str]:
    output = git.output(*words, timeout=None) or ""
    return [name for name in output.split("\0") if name]


def _standing(root: Path) -> Callable[[str], str | None]:
    """Return what says which file stands at a path of the worktree, or above it; None for none.

    A path through a link (`.jenkins -> .ci` of 2.0, where 1.10 has a folder) names a file elsewhere.
    """

    @functools.cache
    def standing(path: str) -> str | None:
        above = path.rpartition("/")[0]
        if above and (obstacle := standing(above)):
            return obstacle
        place = root / path
        return path if place.is_symlink() or place.is_file() else None

    return standing


def _is_of(git: Git, path: str, blob: str | None) -> bool:
    """Say whether a file holds this blob, or the beginning of it."""
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
    """Return the ids of the files ("blob") or submodules ("commit") in the tree of a commit, by their paths.

    There are none where the repository lacks the commit.
    """
    ids = {}
    listed = git.output("ls-tree", "-r", "-z", "--full-tree", commit, timeout=None) or ""
    for entry in filter(None, listed.split("\0")):
        about, _, path = entry.partition("\t")
        _, what, id = about.split(" ")
        if what == kind:
            ids[path] = id
    return ids
