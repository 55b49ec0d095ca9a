"""What every action on sources shares: the request, the ways to repositories, and who is told."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from torchbuild_tasks.build.work import Reporter
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.core.source import refs
from torchbuild_tasks.errors import SourceError, UsageError
from torchbuild_tasks.model import Facts
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.plan.torch_ref import read_word
from torchbuild_tasks.system import files, lock
from torchbuild_tasks.system.git import fetch as fetching
from torchbuild_tasks.system.git import fetch as remains
from torchbuild_tasks.system.git.complete import Reason, advice, reason
from torchbuild_tasks.system.git.run import Git
from torchbuild_tasks.system.git.transfer import Moved, run

URL: Final = "https://github.com/pytorch/pytorch.git"
Needs = Callable[[Path], Callable[[str], bool]]


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """One action under way.

    Args:
        request: the flags.
        facts: the machine, and the checkout that was named.
        report: told what goes on.
        store: where checkouts and mirrors of ours are.
        url: the repository; `config` are settings that go with each git.
        needs: says of a checkout which of its submodules the plan needs.
        newest: what is got without a word.
    """

    request: BuildRequest
    facts: Facts
    report: Reporter
    store: Path
    url: str
    config: tuple[str, ...]
    needs: Needs
    newest: str = "latest"

    def git(self, folder: Path) -> Git:
        """git in a folder, with the settings of this action."""
        return Git(folder=folder, config=self.config)

    def way(self, tree: Path) -> fetching.Way:
        """How repositories are reached for a checkout."""
        offline = self.request.offline
        return fetching.way_for(tree, self.report, config=self.config, store=self.store, offline=offline)


def resolve(task: Task, word: str, url: str) -> refs.Found:
    """What a word means to the repository, which is asked; offline its mirror is.

    Raises:
        SourceError: it cannot be reached, or it means nothing there.
    """
    where, way = url, task.way(task.store)
    if way.offline:
        where = str(fetching.mirror_of(task.store / fetching.MIRRORS, url))
    heard: list[str] = []
    words = ("ls-remote", "--heads", "--tags", where)
    task.store.mkdir(parents=True, exist_ok=True)
    moved = run(task.git(task.store), words, url, way.watch, heard=heard)
    if moved.rc != 0:
        raise failure(f"{url} does not say which versions it has. Nothing was fetched.", moved, url)
    listing = refs.parse_listing("\n".join(heard))
    known = f"refs/tags/{_by_table(word)}"
    return refs.find(known if known in listing else word, listing, url)


def _by_table(word: str) -> str:
    """What our table takes a word for, so that 2.9 is here what it is to --torch; "" where it knows none."""
    try:
        return read_word(word, load_catalog()).ref
    except UsageError:
        return ""


def failure(what: str, moved: Moved, url: str) -> SourceError:
    """The error for a git that failed: its words, and what helps against it."""
    why: Reason = reason(moved.words)
    return SourceError(what, looked=moved.words[-6:], next_step=advice((why,), url))


@contextlib.contextmanager
def held(tree: Path, what: str, git_dir: Path) -> Iterator[None]:
    """Hold a checkout for one action, after what a killed one left was cleared.

    Raises:
        TreeBusy: another command works on it.
        SourceError: a git of the user's is in the way.
    """
    with lock.hold(tree, what), remains.working(tree / files.STATE_DIR, tree, git_dir):
        yield


def git_dir(git: Git) -> Path:
    """The repository of a worktree, wherever it lies.

    Raises:
        SourceError: the folder is not the top of a worktree.
    """
    said = (git.said("rev-parse", "--show-toplevel", "--absolute-git-dir") or "").split("\n")
    if len(said) == 2 and Path(said[0]).samefile(git.folder):
        return Path(said[1])
    raise SourceError(
        f"{git.folder} is not a git checkout, so nothing can be fetched into it.",
        looked=(git.ask("rev-parse", "--show-toplevel").stderr.decode(errors="replace").strip(),),
        next_step="Get one beside it: source get WORD --source OTHER_FOLDER",
    )
