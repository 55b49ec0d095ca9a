"""Fill the mirror store with the repositories of a version and of its submodules."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from torchbuild_tasks.errors import SourceError
from torchbuild_tasks.features.source.choose import check_room, least_room
from torchbuild_tasks.features.source.get import Task, git_failure, resolve
from torchbuild_tasks.system import files
from torchbuild_tasks.system.git import submodules
from torchbuild_tasks.system.git.complete import AT_ONCE
from torchbuild_tasks.system.git.fetch import MIRRORS, Access, WantedCommit, fill_mirror, mirror_of
from torchbuild_tasks.system.git.transfer import Reason, advice, find_reason
from torchbuild_tasks.text.words import counted
from torchbuild_tasks.values import replace


class _Wanted(NamedTuple):
    """A commit of a repository."""

    url: str
    commit: str


def fill_mirrors(task: Task, word: str | None) -> None:
    """Fill the mirror store with a version and its submodules; --full brings all history of PyTorch.

    Raises:
        SourceError: something is not available; what came stays.
    """
    resolved = resolve(task, word or task.newest, task.url)
    folder = task.store / MIRRORS
    need = least_room(task.url, full=task.request.full, mirrored=False)
    if text := check_room(need, files.free_bytes(folder), str(folder)):
        task.report.note(text)
    task.report.stage(f"mirror {resolved.name} of {task.url} into {folder}")
    access = replace(task.access(folder), mirrors=folder)
    what = resolved.commit if resolved.branch or not resolved.ref else resolved.ref
    top = WantedCommit(url=task.url, what=what, into="", commit=resolved.commit, full=task.request.full)
    outcome = fill_mirror(mirror_of(folder, task.url), top, access, "pytorch")
    if outcome.rc != 0:
        raise git_failure(f"{resolved.name} of {task.url} could not be mirrored.", outcome, task.url)
    _mirror_submodules(task, access, folder, _Wanted(task.url, resolved.commit))


def _mirror_submodules(task: Task, access: Access, folder: Path, top: _Wanted) -> None:
    seen = {top}
    level = list(_submodules_of(task, folder, top))
    failed = list[tuple[_Wanted, Reason]]()
    while level:
        seen.update(level)
        with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
            try:
                results = list(pool.map(lambda wanted: _mirror_one(access, folder, wanted), level))
            except BaseException:
                access.watch.stop.set()
                raise
        failed += [(wanted, why) for wanted, why in zip(level, results, strict=True) if why]
        good = [wanted for wanted, why in zip(level, results, strict=True) if not why]
        level = list(
            dict.fromkeys(n for wanted in good for n in _submodules_of(task, folder, wanted) if n not in seen)
        )
        task.report.note(f"mirrored: {counted(len(seen) - len(failed), 'repository', 'repositories')}")
    if failed:
        raise SourceError(
            f"{counted(len(failed), 'repository', 'repositories')} could not be mirrored; the others are.",
            looked=tuple(f"{wanted.url}: {why.line}" for wanted, why in failed),
            next_step=advice([why for _, why in failed], failed[0][0].url),
        )


def _mirror_one(access: Access, folder: Path, wanted: _Wanted) -> Reason | None:
    wish = WantedCommit(url=wanted.url, what=wanted.commit, into="", commit=wanted.commit)
    name = wanted.url.rpartition("/")[2]
    outcome = fill_mirror(mirror_of(folder, wanted.url), wish, access, name)
    if outcome.rc != 0 and find_reason(outcome.words).again:
        outcome = fill_mirror(mirror_of(folder, wanted.url), wish, access, name)
    return find_reason(outcome.words) if outcome.rc != 0 else None


def _submodules_of(task: Task, folder: Path, top: _Wanted) -> Iterator[_Wanted]:
    """Yield the submodules of a commit in a mirror, by their addresses."""
    git = task.git(mirror_of(folder, top.url))
    for module in submodules.modules(git, commit=top.commit):
        if module.listed:
            yield _Wanted(module.listed, module.commit)
