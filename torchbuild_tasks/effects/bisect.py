"""`git bisect` in a worktree of ours: told all that is known, it says which commit to try next.

git keeps the state of a bisect per worktree, so one that the user has under way in the checkout is neither
seen nor changed. It is made anew at each step (`git bisect replay`), without a checkout of its own.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import msgspec

from torchbuild_tasks.errors import SourceError
from torchbuild_tasks.system.files import write_atomic
from torchbuild_tasks.system.git.run import Git, failed

_LEFT: Final = re.compile(r"^Bisecting: (.+)$", re.MULTILINE)
_FIRST: Final = re.compile(r"^# (?:first|possible first) bad commit: \[(\w+)\]", re.MULTILINE)
_SECONDS: Final = 600.0


class Advice(msgspec.Struct, frozen=True, kw_only=True):
    """What git says: the commit to try and how many are left, or the first bad one, or why there is none.

    Where skipped commits hide it, `first_bad` are all that it can be, the oldest last.
    """

    commit: str = ""
    left: str = ""
    first_bad: tuple[str, ...] = ()
    problem: str = ""


def next_commit(git: Git, log: Path, text: str) -> Advice:
    """Let git judge all that is known.

    Args:
        git: in the worktree.
        log: where to write `text` for git.
        text: the log as `git bisect replay` reads it.
    """
    write_atomic(log, text.encode(), error=SourceError)
    done = git.ask("bisect", "replay", str(log), timeout=_SECONDS)
    said = done.stdout.decode("utf-8", "surrogateescape")
    known = (git.folder / git.run("rev-parse", "--git-path", "BISECT_LOG")).resolve()
    first = _FIRST.findall(known.read_text("utf-8", "surrogateescape")) if known.exists() else []
    if first:
        return Advice(first_bad=tuple(first))
    commit = git.said("rev-parse", "--verify", "--quiet", "BISECT_HEAD") if done.rc == 0 else None
    if commit:
        left = _LEFT.findall(said)
        return Advice(commit=commit, left=left[-1] if left else "")
    words = done.stderr.decode("utf-8", "replace").strip().splitlines()
    told = [line for line in words if not line.startswith("We are not bisecting")]
    if not told:
        raise failed(git.argv(("bisect", "replay", str(log))), done)
    return Advice(problem=" ".join(told))


def commits_of(git: Git, words: str) -> tuple[str, ...]:
    """The commits of a ref, or of a range `A..B`, as `git bisect skip` takes it.

    Raises:
        SourceError: there is no such ref.
    """
    listed = git.run("rev-list", *(("--no-walk",) if ".." not in words else ()), words, "--")
    return tuple(listed.split())


def commit_title(git: Git, commit: str) -> str:
    """The first line of a commit's message."""
    return git.said("log", "-1", "--format=%s", commit) or ""


def whole_message(git: Git, commit: str) -> str:
    """Who made a commit, when, and its whole message."""
    return git.run("log", "-1", "--format=commit %H%nAuthor: %an <%ae>%nDate:   %ad%n%n%w(0,4,4)%B", commit)
