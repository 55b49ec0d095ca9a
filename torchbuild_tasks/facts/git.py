"""What git knows of the checkout: the commit, and whether tracked files were changed."""

from __future__ import annotations

from typing import NamedTuple

from torchbuild_tasks.facts.probe import Probe


class Repository(NamedTuple):
    """`there` when the folder is a repository's top; None for what git would not tell."""

    there: bool = False
    commit: str | None = None
    dirty: bool | None = None
    tags: tuple[str, ...] | None = None


def look_at_git(probe: Probe, root: str, *, tags: bool = False) -> Repository:
    """Ask git, if `root` (a real path) itself is the top of a repository or worktree.

    Which `tags` the commit has is asked on request only: PyTorch has a hundred thousand.
    git answers nothing about a folder that belongs to another user (safe.directory).
    """
    if not probe.exists(probe.join(root, ".git")):
        return Repository()
    git = probe.which("git")
    if git is None:
        return Repository(there=True)
    # Without this, looking would rewrite .git/index, perhaps while the user's git runs.
    ask = (git, "--no-optional-locks", "-C", root)
    said = probe.run((*ask, "rev-parse", "--show-toplevel", "HEAD"))
    lines = said.stdout.splitlines() if said and said.rc == 0 else []
    # A broken .git makes git answer for the repository around it.
    key = probe.names.key  # git for Windows writes C:/src
    if len(lines) != 2 or key(probe.realpath(probe.names.normal(lines[0]))) != key(root):
        return Repository(there=True)
    status = probe.run(
        (*ask, "status", "--porcelain", "--untracked-files=no", "--ignore-submodules=all"), timeout=30.0
    )
    dirty = status.stdout.strip() != "" if status and status.rc == 0 else None
    return Repository(there=True, commit=lines[1], dirty=dirty, tags=_tags(probe, ask) if tags else None)


def _tags(probe: Probe, ask: tuple[str, ...]) -> tuple[str, ...] | None:
    said = probe.run((*ask, "tag", "--points-at", "HEAD"))
    return tuple(said.stdout.split()) if said and said.rc == 0 else None
