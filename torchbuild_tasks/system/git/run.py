"""Run short git commands in one folder; return their output, or raise git's message as an error."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import unquote_to_bytes

import msgspec

from torchbuild_tasks.errors import INSTALL_GIT, SourceError
from torchbuild_tasks.system import process
from torchbuild_tasks.system.git import guard
from torchbuild_tasks.text.words import as_word

_LOGIN: Final = re.compile(r"(?P<scheme>https?://)(?P<login>[^/@\s]*:[^/\s]*)@(?P<host>[^/@\s?#=]+)")
# Commands that read settings and names, and start no program whatever the settings are.
_READS: Final = ("config", "rev-parse", "check-ref-format")
# Commands that read the repository, and must not fetch missing objects.
_LOOKS: Final = (
    *("status", "diff", "log", "describe", "ls-files", "ls-tree", "cat-file", "for-each-ref"),
    *("rev-list", "rev-parse", "merge-base", "diff-index", "diff-tree", "diff-files"),
)
# Commands that would show a file by a program of the settings.
_SHOWS: Final = ("diff", "log", "show", "format-patch", "diff-index", "diff-tree", "diff-files")


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
        words = [without_login(word)[0] for word in words]
        # git changes to core.worktree, and fails if that is missing, unless another one is given.
        where = ("--work-tree=.",) if self.bare else ()
        place, command = _command(words)
        if command in _SHOWS:
            words = (*words[: place + 1], "--no-ext-diff", "--no-textconv", *words[place + 1 :])
        return ("git", "-C", str(self.folder), *where, *words)

    def environment(self, words: Sequence[str]) -> dict[str, str]:
        """Return the environment of a command, with `config` and without programs of the repository.

        Not as `-c`: anybody on the machine reads a command line, and an address can hold a login. One in the
        words goes this way, too: `argv` has the address without it.
        """
        reads = _command(words)[1] in _READS
        ours = git_environment() if reads else git_environment(self.folder, self.argv(guard.QUESTION))
        logins = tuple(setting for word in words for setting in without_login(word)[1])
        own = guard.WITHOUT_SERVERS if _command(words)[1] in _LOOKS else {}
        return with_settings({**ours, **own}, (*self.config, *logins))

    def ask(self, *words: str, timeout: float | None = 60.0) -> process.Captured:
        """Run a short command, which may fail."""
        return process.capture(self.argv(words), env=self.environment(words), timeout=timeout)

    def output(self, *words: str, timeout: float | None = 60.0) -> str | None:
        """Return the output of a short command without the final newline; None if it fails."""
        captured = self.ask(*words, timeout=timeout)
        return captured.stdout.decode("utf-8", "surrogateescape").rstrip("\n") if captured.rc == 0 else None

    def has(self, commit: str) -> bool:
        """Say whether the repository has a commit, checked out or not."""
        return self.ask("--work-tree=.", "cat-file", "-e", f"{commit}^{{commit}}").rc == 0

    def run(self, *words: str, timeout: float | None = None) -> str:
        """Run a command that must succeed; return its output without the final newline.

        Raises:
            SourceError: git is missing, fails, or takes longer than `timeout` seconds.
        """
        captured = self.ask(*words, timeout=timeout)
        if captured.rc == 0:
            return captured.stdout.decode("utf-8", "surrogateescape").rstrip("\n")
        raise git_error(self.argv(words), captured)


def entries_in(output: str | None) -> list[str]:
    """Return the entries in the output of a command with -z; none without one."""
    return [entry for entry in (output or "").split("\0") if entry]


def _command(words: Sequence[str]) -> tuple[int, str]:
    """Return the subcommand after git's own options, and its index: `-c NAME=VALUE --no-pager log`."""
    place = 0
    while place < len(words) and words[place].startswith("-"):
        place += 2 if words[place] == "-c" else 1
    return place, words[place] if place < len(words) else ""


def git_error(argv: Sequence[str], captured: process.Captured) -> SourceError:
    """Return the error of a failed git command, with git's message."""
    command = " ".join(argv)
    if captured.rc == process.CANNOT_START:
        return SourceError(
            "git is needed here, and it does not start.",
            looked=(captured.error_text,),
            next_step=INSTALL_GIT,
        )
    if captured.timed_out:
        return SourceError("git did not end in time.", looked=(command,))
    output = (captured.stderr or captured.stdout).decode(errors="replace").strip().splitlines()
    return SourceError(f"git ended with exit code {captured.rc}.", looked=(command, *output[-8:]))


def unread_error(git: Git) -> SourceError | None:
    """Return the error of a folder whose .git is there and cannot be read; None where nothing is wrong.

    Without git, or with a repository of another user, every question fails as in a folder without one.
    """
    if not os.path.lexists(git.folder / ".git"):
        return None
    words = ("rev-parse", "--show-toplevel")
    captured = git.ask(*words)
    if captured.rc == 0:
        return None
    if captured.rc == process.CANNOT_START or captured.timed_out:
        return git_error(git.argv(words), captured)
    lines = captured.error_text.strip().splitlines()
    folder = as_word(git.folder)
    return SourceError(
        f"git cannot read the repository of {git.folder}.",
        looked=tuple(lines[:1]),
        next_step=f"git config --global --add safe.directory {folder}"
        if "dubious ownership" in captured.error_text
        else f"See what is wrong: git -C {folder} status",
    )


def git_environment(folder: Path | None = None, question: Sequence[str] = ()) -> dict[str, str]:
    """Return the environment for git: C locale, no prompts, no hooks or programs of a repository.

    Args:
        folder: where the command will work; without it, it reads nothing but settings and names.
        question: how its settings are asked for, when not by `git -C folder`.
    """
    if folder is None:
        return guard.environment(os.environ)
    # What affects which settings git reads.
    counts = [name for name in os.environ if name.startswith("GIT_") or name in _NAMES_SETTINGS]
    variables = tuple((name, os.environ[name]) for name in sorted(counts))
    key = (str(folder), variables, _stamp(folder / ".git" / "config"), _stamp(folder / "config"))
    answer = _answers.get(key)
    if answer is None:
        argv = question or ("git", "-C", str(folder), *guard.QUESTION)
        captured = process.capture(argv, env=guard.environment(os.environ), timeout=60.0)
        answer = captured.stdout
        if captured.rc == _NO_SUCH_OPTION:
            raise SourceError(
                "This git is too old: it cannot say which settings a repository brings.",
                looked=(" ".join(argv),),
                next_step="Install git 2.31 or newer.",
            )
        if captured.rc == 0:  # without a folder there is nothing to cache; it may be created later
            _answers[key] = answer
    return guard.environment(os.environ, answer)


def git_environment_of(folder: Path, below: Sequence[str]) -> dict[str, str]:
    """Return the environment for a git command that recurses into submodules.

    A submodule's repository may have come with the checkout, as the whole of .git may: what all of them bring
    is laid over for all.

    Args:
        below: folders of submodules in it, which may have links to repositories anywhere.
    """
    env = git_environment(folder)
    places = [("-C", str(folder))]
    places += [("--git-dir", str(place)) for place in _repositories(folder / ".git" / "modules")]
    places += [("-C", str(folder / path)) for path in below if (folder / path / ".git").exists()]
    if len(places) == 1:
        return env
    argvs = (("git", *where, *guard.QUESTION) for where in places)
    plain = guard.environment(os.environ)
    answers = [process.capture(argv, env=plain, timeout=60.0).stdout for argv in argvs]
    return guard.environment(os.environ, b"".join(answers))


def _repositories(modules: Path) -> Iterator[Path]:
    """Yield the folders of repositories below .git/modules, including nested ones."""
    for parent, folders, names in os.walk(modules):
        if "config" in names and "HEAD" in names:
            folders[:] = [name for name in folders if name == "modules"]
            yield Path(parent)


_NAMES_SETTINGS: Final = ("HOME", "XDG_CONFIG_HOME", "USERPROFILE", "PATH")
_NO_SUCH_OPTION: Final = 129  # scope of git's command line; --show-scope is of git 2.26
_answers: Final[dict[object, bytes]] = {}


def _stamp(path: Path) -> tuple[int, int] | None:
    """Return a value that changes with a file; None without a file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def without_login(text: str) -> tuple[str, tuple[str, ...]]:
    """Return words of a command without logins: `user:password@` in addresses, and header settings."""
    match = _LOGIN.search(text)
    if not match:
        return text, ()
    login = base64.b64encode(unquote_to_bytes(match["login"])).decode()
    plain = text.replace(match[0], f"{match['scheme']}{match['host']}", 1)
    place = f"{match['scheme']}{match['host']}/"
    return plain, (f"http.{place}.extraHeader=Authorization: Basic {login}",)


def with_settings(environ: Mapping[str, str], settings: Sequence[str]) -> dict[str, str]:
    """Return the environment with these NAME=VALUE settings added for git.

    Not as `-c`: anybody on the machine reads a command line, and `url.<base>.insteadOf` can hold a login,
    which git hands to its helper as a word.
    """
    cleaned = [without_login(setting) for setting in settings]
    pairs = (each.partition("=")[::2] for plain, logins in cleaned for each in (plain, *logins))
    return guard.with_config(environ, tuple(pairs))
