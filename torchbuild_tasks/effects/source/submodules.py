"""The submodules of a repository: which there are, at which commit, and how one is laid out.

A submodule lies as `git submodule` would lay it: its repository in `.git/modules/NAME` of the one around
it, a `.git` file with a relative path in its folder. It is fetched by commit, where git would fetch the
newest commit of a branch first.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from torchbuild_tasks.effects import files, gitmodules
from torchbuild_tasks.effects.git import Git
from torchbuild_tasks.errors import SourceError


class Module(msgspec.Struct, frozen=True, kw_only=True):
    """One submodule.

    Args:
        top: its path from the outermost checkout, with `/`.
        path: its path in the repository around it.
        name: what .gitmodules calls it.
        url: where it is fetched from.
        commit: the commit that the repository around it wants.
        around: the worktree around it.
        repository: its own git folder.
    """

    top: str
    path: str
    name: str
    url: str
    commit: str
    around: Path
    repository: Path

    @property
    def folder(self) -> Path:
        """Its worktree."""
        return self.around / self.path


def modules(git: Git, prefix: str = "") -> tuple[Module, ...]:
    """The submodules that the index of a worktree names, those of `update = none` left out.

    Args:
        git: the worktree around them.
        prefix: its own path from the outermost checkout.

    Raises:
        SourceError: one is in conflict after a merge, or has a name or a path that leaves its folder.
    """
    links = _links(git)
    said = gitmodules.settings(git, "--file", str(git.folder / ".gitmodules"))
    named = {values["path"]: name for name, values in said.items() if "path" in values}
    if not links or not (git.folder / ".gitmodules").is_file():
        return ()
    base = git.folder / git.run("rev-parse", "--git-path", "modules")
    own = gitmodules.settings(git)
    found = []
    for path, commit in links.items():
        name = named.get(path)
        if name is None or own.get(name, {}).get("update", said[name].get("update")) == "none":
            continue
        _check(git, name, path)
        place = git.folder / path / ".git"
        found.append(
            Module(
                top=f"{prefix}{path}",
                path=path,
                name=name,
                url=own.get(name, {}).get("url", said[name].get("url", "")),
                commit=commit,
                around=git.folder,
                repository=place if place.is_dir() else base / name,
            )
        )
    return tuple(found)


def initialised(git: Git, prefix: str = "", *, sync: bool = False) -> tuple[Module, ...]:
    """`modules`, with their addresses written into the repository as git does; `sync` renews those.

    Raises:
        SourceError: as `modules`, or git fails.
    """
    found = modules(git, prefix)
    if found:
        paths = [module.path for module in found]
        git.run("submodule", "--quiet", "init", "--", *paths)
        if sync:
            git.run("submodule", "--quiet", "sync", "--", *paths)
    return modules(git, prefix)


def _links(git: Git) -> dict[str, str]:
    """The index's submodules: path to commit."""
    links: dict[str, str] = {}
    conflicts: dict[str, list[str]] = {}
    for entry in git.run("ls-files", "--stage", "-z").split("\0"):
        about, _, path = entry.partition("\t")
        mode, commit, stage = (*about.split(" "), "", "")[:3]
        if mode != "160000":
            continue
        if stage == "0":
            links[path] = commit
        else:
            conflicts.setdefault(path, []).append(f"{_SIDES[stage]} {commit[:10]}")
    if conflicts:
        path = next(iter(conflicts))
        raise SourceError(
            f"{git.folder} is in a merge that git cannot decide for {len(conflicts)} submodules.",
            looked=tuple(f"{path}: {', '.join(sides)}" for path, sides in conflicts.items()),
            next_step=f"Choose a commit: git -C {git.folder / path} checkout COMMIT, then "
            f"git -C {git.folder} add {path}\nor leave the merge: git -C {git.folder} merge --abort",
        )
    return links


_SIDES = {"1": "both came from", "2": "ours", "3": "theirs"}


def _check(git: Git, name: str, path: str) -> None:
    """What git itself refuses, because it would lead out of the repository."""
    for text in (name, path):
        parts = text.replace("\\", "/").split("/")
        if ".." in parts or "" in parts or text.startswith("-") or ":" in text or ".git" in parts:
            raise SourceError(
                f"{git.folder / '.gitmodules'} has a submodule {text!r}, which is no safe name."
            )


def repository(module: Module, config: tuple[str, ...]) -> Git:
    """The submodule's repository, made if it is not there; commands in it know no worktree.

    Raises:
        SourceError: git fails.
    """
    git = Git(folder=module.repository, config=config)
    with files.told_as(SourceError, module.repository):
        module.repository.mkdir(parents=True, exist_ok=True)
    if git.said("rev-parse", "--absolute-git-dir") is None or not (module.repository / "HEAD").exists():
        git.run("init", "--quiet", "--bare", ".")
    if git.said("config", "--local", "remote.origin.url") != module.url:
        git.run("config", "--local", "remote.origin.url", module.url)
        git.run("config", "--local", "remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*")
    return git


def connect(module: Module, git: Git) -> Git:
    """Join the submodule's folder with its repository; the worktree that it becomes.

    Raises:
        SourceError: the folder holds something else, or git fails.
    """
    link = module.folder / ".git"
    if not os.path.lexists(link):
        back = Path(os.path.relpath(module.folder, module.repository)).as_posix()
        git.run("config", "--local", "core.bare", "false")
        git.run("config", "--local", "core.worktree", back)
        with files.told_as(SourceError, module.folder):
            module.folder.mkdir(parents=True, exist_ok=True)
            there = Path(os.path.relpath(module.repository, module.folder)).as_posix()
        files.write_atomic(link, f"gitdir: {there}\n".encode(), error=SourceError)
    return Git(folder=module.folder, config=git.config)


def is_empty(module: Module) -> bool:
    """Whether a submodule's folder holds nothing, or nothing but git's link file."""
    try:
        return {path.name for path in module.folder.iterdir()} <= {".git"}
    except OSError:
        return True


def forget_index(module: Module) -> None:
    """Take away git's list of what it laid out, so that it lays out everything again.

    Raises:
        SourceError: it cannot be removed.
    """
    with files.told_as(SourceError, module.repository):
        files.unlink(module.repository / "index", missing_ok=True)


def head(module: Module, config: tuple[str, ...]) -> str | None:
    """The commit that is checked out whole; None when none is, or all its files were removed since."""
    if is_empty(module) or not (module.repository / "index").exists():
        return None
    git = Git(folder=module.folder, config=config)
    said = (git.said("rev-parse", "--show-toplevel", "HEAD") or "").split("\n")
    if len(said) != 2 or not Path(said[0]).samefile(module.folder):
        return None
    return said[1]


def walk(git: Git, prefix: str = "") -> Iterator[Module]:
    """Every submodule, and of those that are checked out their own, outermost first."""
    for module in modules(git, prefix):
        yield module
        if head(module, git.config) is not None:
            yield from walk(Git(folder=module.folder, config=git.config), f"{module.top}/")
