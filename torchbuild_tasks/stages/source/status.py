"""`source status`: what a checkout is, where it is from, and what is amiss with it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

from torchbuild_tasks.effects.source import place
from torchbuild_tasks.model.source import Checkout, Kind, ModuleState
from torchbuild_tasks.stages.source.task import Task
from torchbuild_tasks.system import files
from torchbuild_tasks.system.git import fetch as fetching
from torchbuild_tasks.system.git import fetch as remains
from torchbuild_tasks.system.git import submodules
from torchbuild_tasks.system.git.run import Git


def describe(task: Task, root: Path, *, whole: bool = True) -> Checkout:
    """Look at a checkout; `whole` also looks into every submodule for changes."""
    git = task.git(root)
    note = place.read_note(root)
    version = None
    with contextlib.suppress(OSError):
        version = (root / "version.txt").read_text("utf-8").strip() or None
    if not _is_top(git):
        return Checkout(
            path=str(root),
            kind="archive" if note else "folder",
            version=version,
            url=note.url if note else "",
            notes=("it is no git checkout: get another version beside it",),
        )
    needed = task.needs(root) if whole else None
    return Checkout(
        path=str(root),
        kind=_kind(git),
        version=version,
        url=(note.url if note else git.said("remote", "get-url", "origin")) or "",
        commit=git.said("rev-parse", "--verify", "--quiet", "HEAD"),
        at=_at(git),
        shallow=fetching.is_shallow(git),
        changed=submodules.edits(git) if whole else (),
        modules=tuple(_state(git, module, needed) for module in submodules.walk(git)) if needed else (),
        cut_off=remains.was_cut_off(root / files.STATE_DIR) or bool(note and note.moving),
        lost=fetching.borrowed(git),
        notes=_notes(task, git),
    )


def _is_top(git: Git) -> bool:
    said = git.said("rev-parse", "--show-toplevel")
    return said is not None and Path(said).samefile(git.folder)


def _kind(git: Git) -> Kind:
    """`.git` as a file means a worktree, or a submodule of a repository around it."""
    if (git.folder / ".git").is_dir():
        return "clone"
    around = git.said("rev-parse", "--show-superproject-working-tree")
    return "submodule" if around else "worktree"


def _at(git: Git) -> str:
    return (
        git.said("symbolic-ref", "--quiet", "--short", "HEAD")
        or git.said("describe", "--tags", "--exact-match")
        or ""
    )


def _state(git: Git, module: submodules.Module, needed: Callable[[str], bool]) -> ModuleState:
    there = submodules.head(module, git.config)
    if there is None:
        return ModuleState(
            path=module.top,
            wanted=module.commit,
            there=None,
            state="missing" if needed(module.top) else "unneeded",
        )
    changed = submodules.edits(Git(folder=module.folder, config=git.config))
    return ModuleState(
        path=module.top,
        wanted=module.commit,
        there=there,
        state="changed" if changed else "ok" if there == module.commit else "elsewhere",
        changed=changed,
    )


def _notes(task: Task, git: Git) -> tuple[str, ...]:
    notes = []
    if kept := git.said("for-each-ref", "--format=%(objectname:short)", "refs/torchbuild/kept"):
        commits = ", ".join(kept.split("\n")[:4])
        notes.append(f"commits that no branch holds are kept under refs/torchbuild/kept: {commits}")
    if task.facts.windows:
        links = sum(
            1 for line in (git.said("ls-files", "--stage") or "").splitlines() if line[:6] == "120000"
        )
        if links and git.said("config", "core.symlinks") == "false":
            notes.append(f"{links} symbolic links are text files here, as git does without Developer Mode")
    return tuple(notes)
