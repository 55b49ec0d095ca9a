"""Repositories with nested submodules for tests, and a git that is killed, with us, at a chosen command."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Final

from torchbuild_tasks.system.git.run import Git

CONFIG: Final = (
    *("user.name=a", "user.email=a@b", "init.defaultBranch=main", "protocol.file.allow=always"),
    *("core.autocrlf=false", "commit.gpgsign=false"),
)


def repository(folder: Path, **files: str) -> Git:
    """A repository with one commit; `__` in a name is a dot."""
    folder.mkdir(parents=True, exist_ok=True)
    git = Git(folder=folder, config=CONFIG)
    git.run("init", "-q")
    save(git, "first", **files)
    return git


def save(git: Git, message: str, **files: str) -> str:
    """Write files and commit them with all that is there; returns the commit."""
    for name, text in files.items():
        (git.folder / name.replace("__", ".")).write_text(text, "utf-8")
    git.run("add", "--all")
    git.run("commit", "-q", "--allow-empty", "-m", message)
    return git.run("rev-parse", "HEAD")


def with_submodules(parent: Path) -> tuple[Git, str, str]:
    """A checkout whose two commits differ in a file, a submodule, and one that only the second has.

    third_party/outer holds third_party/inner. Returns the checkout (at the second) and both commits.
    """
    inner = repository(parent / "servers/inner", inner__txt="1")
    outer = repository(parent / "servers/outer", outer__txt="1")
    outer.run("submodule", "--quiet", "add", str(inner.folder), "third_party/inner")
    save(outer, "with inner")
    late = repository(parent / "servers/late", late__txt="1")
    git = repository(parent / "main", file__txt="1", __gitignore="build/\n")
    git.run("submodule", "--quiet", "add", str(outer.folder), "third_party/outer")
    git.run("submodule", "--quiet", "update", "--init", "--recursive")
    first = save(git, "one")
    save(inner, "two", inner__txt="2")
    _to_newest(Git(folder=git.folder / "third_party/outer/third_party/inner", config=CONFIG))
    sub = Git(folder=git.folder / "third_party/outer", config=CONFIG)
    save(sub, "two", outer__txt="2")
    sub.run("push", "--quiet", "origin", "HEAD:refs/heads/next")
    git.run("submodule", "--quiet", "add", str(late.folder), "third_party/late")
    second = save(git, "two", file__txt="2", new__txt="2")
    return git, first, second


def _to_newest(git: Git) -> None:
    git.run("fetch", "--quiet", "origin")
    git.run("checkout", "--quiet", "--detach", "origin/main")


def contents(folder: Path) -> dict[str, str]:
    """Return every file of a checkout with its text, without git's own and ignored ones."""
    return {
        path.relative_to(folder).as_posix(): path.read_text("utf-8")
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix == ".txt"
    }


def fatal_git(folder: Path, at: int, *, after: bool) -> dict[str, str]:
    """Environment in which the `at`-th git command kills its parent, after it has run or instead."""
    folder.mkdir()
    real, counter = shutil.which("git"), folder / "count"
    counter.write_text("0", "utf-8")
    run = f'"{real}" "$@"; ' if after else ""
    script = folder / "git"
    script.write_text(
        "#!/bin/sh\n"
        f'case "$GIT_INNER" in yes) exec "{real}" "$@";; esac\n'
        "export GIT_INNER=yes\n"
        f'n=$(($(cat "{counter}") + 1)); echo $n > "{counter}"\n'
        f'if [ $n = {at} ]; then {run}kill -9 $PPID; exit 1; fi\nexec "{real}" "$@"\n',
        "utf-8",
    )
    script.chmod(0o755)
    return {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": _ours()}


def _ours() -> str:
    return os.pathsep.join(path for path in sys.path if path)
