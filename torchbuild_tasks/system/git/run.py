"""What a repository says of its submodules: their settings, and the commits that a tree names."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

import msgspec

from torchbuild_tasks.errors import SourceError
from torchbuild_tasks.system import process

# What a hook sets for its own repository would send our commands there.
_OF_A_HOOK: Final = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_PREFIX",
    "GIT_OBJECT_DIRECTORY",
    "GIT_COMMON_DIR",
)


class Git(msgspec.Struct, frozen=True, kw_only=True):
    """git in one folder.

    Args:
        folder: a worktree, or a repository.
        config: NAME=VALUE settings that go with each command.
        bare: it is a repository, and its worktree, which may be gone, is none of our business.
    """

    folder: Path
    config: tuple[str, ...] = ()
    bare: bool = False

    def argv(self, words: Sequence[str]) -> tuple[str, ...]:
        """The whole command line of one git command."""
        settings = tuple(word for setting in self.config for word in ("-c", setting))
        # git enters core.worktree, and fails where that is gone, unless another one is named.
        where = ("--work-tree=.",) if self.bare else ()
        return ("git", *settings, "-C", str(self.folder), *where, *words)

    def ask(self, *words: str, timeout: float | None = 60.0) -> process.Captured:
        """Run a short command, which may fail."""
        return process.capture(self.argv(words), env=environment(), timeout=timeout)

    def said(self, *words: str, timeout: float | None = 60.0) -> str | None:
        """What a short command prints, without its last line end; None when it fails."""
        done = self.ask(*words, timeout=timeout)
        return done.stdout.decode("utf-8", "surrogateescape").rstrip("\n") if done.rc == 0 else None

    def has(self, commit: str) -> bool:
        """Whether a commit is in the repository, whose files may not be checked out."""
        return self.ask("--work-tree=.", "cat-file", "-e", f"{commit}^{{commit}}").rc == 0

    def run(self, *words: str, timeout: float | None = None) -> str:
        """What a command prints, which must not fail.

        Raises:
            SourceError: git is missing, fails, or takes longer than `timeout` seconds.
        """
        done = self.ask(*words, timeout=timeout)
        if done.rc == 0:
            return done.stdout.decode("utf-8", "surrogateescape").rstrip("\n")
        raise failed(self.argv(words), done)


def failed(argv: Sequence[str], done: process.Captured) -> SourceError:
    """The error of a git command that did not end well, with git's own words."""
    command = " ".join(argv)
    if done.rc == process.CANNOT_START:
        return SourceError(
            "git is needed here, and it does not start.",
            looked=(done.stderr.decode(errors="replace").strip(),),
            next_step="Install git: sudo apt-get install git, winget install Git.Git",
        )
    if done.timed_out:
        return SourceError("git did not end in time.", looked=(command,))
    said = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
    return SourceError(f"git ended with exit code {done.rc}.", looked=(command, *said[-8:]))


def environment() -> dict[str, str]:
    """Ours, in the C locale, without what a hook sets and without questions at a terminal."""
    kept = {name: value for name, value in os.environ.items() if name not in _OF_A_HOOK}
    return {**kept, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"}


# ----------------


_KEYS: Final = r"^submodule\..*\.(path|url|update)$"


def settings(git: Git, *where: str) -> dict[str, dict[str, str]]:
    """`path`, `url` and `update` of each submodule by its name.

    Args:
        git: the repository.
        where: words of `git config` that name a .gitmodules (`--file F`, `--blob COMMIT:F`); without
            them the repository's own settings.
    """
    said = git.said("config", *where, "-z", "--get-regexp", _KEYS) or ""
    found: dict[str, dict[str, str]] = {}
    for entry in filter(None, said.split("\0")):
        key, _, value = entry.partition("\n")
        name, _, what = key.removeprefix("submodule.").rpartition(".")
        found.setdefault(name, {})[what] = value
    return found


def tree(git: Git, commit: str, kind: Literal["blob", "commit"]) -> dict[str, str]:
    """Return the ids of the files ("blob") or submodules ("commit") in the tree of a commit, by their paths.

    There are none where the commit is not here.
    """
    found = {}
    listed = git.said("ls-tree", "-r", "-z", "--full-tree", commit, timeout=None) or ""
    for entry in filter(None, listed.split("\0")):
        about, _, path = entry.partition("\t")
        _, what, id = about.split(" ")
        if what == kind:
            found[path] = id
    return found
