"""Runs short git commands in one folder: their output, or git's own words as an error."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from torchbuild_tasks.errors import INSTALL_GIT, SourceError
from torchbuild_tasks.system import process

_COUNT: Final = "GIT_CONFIG_COUNT"  # of git 2.31; with _KEY_n and _VALUE_n, read behind all files
# What a hook sets for its own repository would send our commands there.
_SET_BY_HOOKS: Final = (
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
        """Return the whole command line of one git command."""
        # git enters core.worktree, and fails where that is gone, unless another one is named.
        where = ("--work-tree=.",) if self.bare else ()
        return ("git", "-C", str(self.folder), *where, *words)

    def settings(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Return an environment that brings `config` to a command: an address in it can hold a login."""
        return with_settings(environ, self.config)

    def ask(self, *words: str, timeout: float | None = 60.0) -> process.Captured:
        """Run a short command, which may fail."""
        return process.capture(self.argv(words), env=self.settings(git_environment()), timeout=timeout)

    def output(self, *words: str, timeout: float | None = 60.0) -> str | None:
        """Return what a short command prints, without its last line end; None when it fails."""
        done = self.ask(*words, timeout=timeout)
        return done.stdout.decode("utf-8", "surrogateescape").rstrip("\n") if done.rc == 0 else None

    def has(self, commit: str) -> bool:
        """Say whether the repository holds a commit; its files need not be checked out."""
        return self.ask("--work-tree=.", "cat-file", "-e", f"{commit}^{{commit}}").rc == 0

    def run(self, *words: str, timeout: float | None = None) -> str:
        """Run a command that must not fail; return what it prints, without its last line end.

        Raises:
            SourceError: git is missing, fails, or takes longer than `timeout` seconds.
        """
        done = self.ask(*words, timeout=timeout)
        if done.rc == 0:
            return done.stdout.decode("utf-8", "surrogateescape").rstrip("\n")
        raise git_error(self.argv(words), done)


def git_error(argv: Sequence[str], done: process.Captured) -> SourceError:
    """Return the error of a git command that did not end well, with git's own words."""
    command = " ".join(argv)
    if done.rc == process.CANNOT_START:
        return SourceError(
            "git is needed here, and it does not start.",
            looked=(done.stderr.decode(errors="replace").strip(),),
            next_step=INSTALL_GIT,
        )
    if done.timed_out:
        return SourceError("git did not end in time.", looked=(command,))
    output = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
    return SourceError(f"git ended with exit code {done.rc}.", looked=(command, *output[-8:]))


def git_environment() -> dict[str, str]:
    """Return our environment in the C locale, without what a hook sets or questions at a terminal."""
    kept = {name: value for name, value in os.environ.items() if name not in _SET_BY_HOOKS}
    return {**kept, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"}


def with_settings(environ: Mapping[str, str], settings: Sequence[str]) -> dict[str, str]:
    """Return an environment in which git has these NAME=VALUE settings, too.

    Not as `-c`: anybody on the machine reads a command line, and `url.<base>.insteadOf` can hold a login.
    """
    count = int(environ.get(_COUNT) or 0) if (environ.get(_COUNT) or "0").isdigit() else 0
    more = {_COUNT: str(count + len(settings))} if settings else {}
    for number, setting in enumerate(settings, count):
        name, _, value = setting.partition("=")
        more |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return {**environ, **more}
