"""Check out all submodules again: remove their files, update their addresses, fetch."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from torchbuild_tasks.errors import SourceError, UsageError
from torchbuild_tasks.features.source.get import Task, git_dir, lock_checkout
from torchbuild_tasks.system import files
from torchbuild_tasks.system.git import submodules
from torchbuild_tasks.system.git.checkout import changed_files, files_not_of
from torchbuild_tasks.system.git.complete import complete
from torchbuild_tasks.system.git.run import Git
from torchbuild_tasks.system.git.submodules import Module
from torchbuild_tasks.system.remove import remove_tree
from torchbuild_tasks.text.words import first_few

_ASIDE: Final = "broken-repositories"
Changed = tuple[tuple[str, tuple[str, ...]], ...]


def reset_third_party(task: Task, root: Path) -> tuple[tuple[str, ...], Changed]:
    """Check out every submodule again, except those with changes of the user's.

    Returns:
        The submodules that were fetched again (with --dry-run: would be), and those kept with their changes.

    Raises:
        UsageError: --third-party was not given.
        SourceError: something cannot be removed or had.
        TreeBusy: another command works on it.
    """
    if not task.request.third_party:
        raise UsageError(
            "source reset needs to be told what to reset", next_step="Use: source reset --third-party"
        )
    git = task.git(root)
    own = git_dir(git)
    with lock_checkout(root, "source reset", own):
        outer = submodules.modules(git)
        changes = {module: _changes(git, module) for module in outer}
        spared = {module: changed for module, changed in changes.items() if changed and not task.request.yes}
        renewed = [module for module in outer if module not in spared]
        outcome = (
            tuple(module.top for module in renewed),
            tuple((module.top, changed) for module, changed in spared.items()),
        )
        if task.request.dry_run:
            return outcome
        task.report.stage(f"get submodules of {root} again")
        for top, changed in outcome[1]:
            task.report.note(f"{top} is kept: {first_few(changed, 4)}")
        for module in renewed:
            _remove(task, root, module)
        tops = [module.top for module in spared]
        needed = task.needs(root)
        complete(git, task.access(root), lambda path: needed(path) and not _within(path, tops), sync=True)
    return outcome


def _within(path: str, tops: Sequence[str]) -> bool:
    return any(f"{path}/".startswith(f"{top}/") for top in tops)


def _changes(git: Git, module: Module) -> tuple[str, ...]:
    """Return the files of a submodule (recursively) that differ from its commit.

    A file that was deleted holds nothing that could be lost.
    """
    inside = module.git(git.config)
    if submodules.head(module, git.config) is None:
        return _without_head(inside, module)
    inner = (
        f"{each.path}/{file}"
        for each in submodules.modules(inside, f"{module.top}/")
        for file in _changes(inside, each)
    )
    return (*changed_files(inside, deleted=False), *inner)


def _without_head(git: Git, module: Module) -> tuple[str, ...]:
    """Return the files in an incompletely checked-out folder that are not of its commit.

    Where the repository cannot say what its commit holds, every file counts.
    """
    if not module.folder.is_dir():
        return ()
    if os.path.lexists(module.folder / ".git") and git.has(module.commit):
        return files_not_of(git, module.commit)
    return tuple(sorted(path.name for path in module.folder.iterdir() if path.name != ".git"))


def _remove(task: Task, root: Path, module: Module) -> None:
    """Remove a submodule's worktree; keep its repository, but set a broken one aside."""
    repository = Git(folder=module.repository, config=task.config, bare=True)
    with files.translate_errors(SourceError, module.folder):
        if (module.folder / ".git").is_dir():
            return  # a repository created by the user, whose only copy this is
        if submodules.head(module, task.config) is not None:
            submodules.keep_head(module.git(task.config))
        submodules.remove_index(module)
        if module.folder.is_dir() and not module.folder.is_symlink():
            _empty(module.folder)
        if module.repository.is_dir() and not _is_readable(repository):
            _set_repository_aside(task, root, module)


def _empty(folder: Path) -> None:
    """Remove the content of a submodule's folder; the folder belongs to the parent's checkout."""
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            remove_tree(path)
        elif path.name != ".git":
            files.unlink(path)
    link = folder / ".git"
    if os.path.lexists(link):  # last: until then an interrupted run leaves a checkout that git recognises
        files.unlink(link)


def _is_readable(git: Git) -> bool:
    """Say whether all objects of a repository's commit can be read."""
    if git.output("rev-parse", "--git-dir") is None:
        return False
    head = git.output("rev-parse", "--verify", "--quiet", "HEAD")
    return head is None or git.ask("ls-tree", "-r", head, timeout=None).rc == 0


def _set_repository_aside(task: Task, root: Path, module: Module) -> None:
    folder = files.state_dir(root) / _ASIDE
    folder.mkdir(exist_ok=True)
    stem = module.top.replace("/", "-")
    target = next(path for n in range(1, 10_000) if not (path := folder / f"{stem}-{n}").exists())
    files.replace(module.repository, target)
    task.report.note(f"the repository of {module.top} is broken; it is put aside in {target}")
