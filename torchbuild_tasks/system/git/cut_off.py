"""Clean up after a killed run: its running git processes, and the lock files of those that died.

Called only with our lock on the checkout held. A git that the user started is never ended, and while one
works in the checkout no lock file is removed.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from torchbuild_tasks.errors import SourceError
from torchbuild_tasks.system import files
from torchbuild_tasks.system.git.transfer import TREE
from torchbuild_tasks.system.process_tree import end_tree, list_processes

if TYPE_CHECKING:
    import psutil

MARK: Final = "source.working"
_TEMPORARY: Final = ("tmp_pack_", "tmp_idx_", "tmp_obj_")


@contextlib.contextmanager
def mark_change(state: Path, tree: Path, git_dir: Path) -> Iterator[None]:
    """Mark that we change a repository; clean up after an interrupted run first.

    Args:
        state: the folder that holds the mark.
        tree: the checkout, or the mirror: the name its git processes carry.
        git_dir: its repository, which contains those of submodules.

    Raises:
        SourceError: a git of the user's works there, and lock files of a run that was cut off are left.
    """
    mark = state / MARK
    with files.translate_errors(SourceError, mark):
        if mark.exists():
            end_orphans(str(tree))
            remove_locks(tree, git_dir)
        with files.create(mark) as file:
            file.write(b"A command of torchbuild_tasks changes this repository, or was cut off.\n")
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            files.unlink(mark)


def was_cut_off(state: Path) -> bool:
    """Say whether a run is changing the repository, or was killed while it did."""
    return (state / MARK).exists()


def _gits() -> Iterator[psutil.Process]:
    for each in list_processes("name"):
        if (each.info["name"] or "").casefold().startswith("git") and each.pid != os.getpid():
            yield each


def end_orphans(tree: str) -> None:
    """End the git processes that a killed run left running in a checkout."""
    import psutil

    for each in list(_gits()):
        with contextlib.suppress(psutil.Error, OSError):
            if each.environ().get(TREE) == tree:
                end_tree(each.pid)


def remove_locks(tree: Path, git_dir: Path) -> None:
    """Remove the lock files and unfinished packs of killed git processes.

    Raises:
        SourceError: there are locks, and a git works there.
    """
    locks = [path for path in _below(git_dir) if path.name.endswith(".lock")]
    if locks and (who := _users_git(tree)):
        raise SourceError(
            f"{tree} has lock files of a run that was cut off, and another git works there.",
            looked=(f"process {who}", *(str(path) for path in locks[:5])),
            next_step="Wait until it is over and run the same command again.",
        )
    for path in locks:
        files.unlink(path, missing_ok=True)
    for path in _below(git_dir):
        if path.name.startswith(_TEMPORARY):
            files.unlink(path, missing_ok=True)


def _below(git_dir: Path) -> Iterator[Path]:
    """Yield the files of a repository and its submodules in folders with lock files or unfinished packs."""
    for folder, folders, names in os.walk(git_dir):
        if Path(folder).name == "objects":
            folders[:] = [name for name in folders if name == "pack"]
        for name in names:
            yield Path(folder) / name


def _users_git(tree: Path) -> int | None:
    import psutil

    for each in _gits():
        with contextlib.suppress(psutil.Error, OSError):
            if Path(each.cwd()).is_relative_to(tree):
                return each.pid
    return None
