"""Check out all submodules of a checkout at the commits that it records.

Several are fetched at once; those that fail are tried again one by one, and what still fails is named, all
at once. A worktree borrows from the checkout that it belongs to before anything is fetched.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Final

import msgspec

from torchbuild_tasks.errors import SourceError
from torchbuild_tasks.system.git import submodules
from torchbuild_tasks.system.git.checkout import InTheWay
from torchbuild_tasks.system.git.fetch import Access, WantedCommit, borrow, bring
from torchbuild_tasks.system.git.run import Git
from torchbuild_tasks.system.git.submodules import Module
from torchbuild_tasks.system.git.transfer import Outcome, Reason, Watch, advice, find_reason, run
from torchbuild_tasks.values import replace

AT_ONCE: Final = 8
_WAITS: Final = (1.0, 3.0)  # seconds before each further try
_SLICE: Final = 0.2  # seconds: Windows notices a Ctrl-C only between waits
# A ref for the commit, which no branch has: the next fetch can use it, and `keep_head` knows it as ours.
_COMMIT_REF: Final = "refs/torchbuild/commit"
_NOTE_EVERY: Final = 10.0  # seconds between two progress notes


class _Failed(Exception):
    """One submodule could not be fetched."""

    def __init__(self, why: Reason) -> None:
        super().__init__(why)
        self.why = why


class _Job(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters for each submodule; `left_out` collects those that are not needed."""

    access: Access
    sync: bool
    needed: Callable[[str], bool]
    main: Git | None
    left_out: list[str]

    def list_needed(self, git: Git, prefix: str = "") -> list[Module]:
        """Return the needed submodules of a worktree, and write their addresses into its configuration."""
        modules = submodules.modules(git, prefix)
        self.left_out.extend(module.top for module in modules if not self.needed(module.top))
        modules = tuple(module for module in modules if self.needed(module.top))
        if submodules.initialise(git, modules, sync=self.sync):
            modules = tuple(module for module in submodules.modules(git, prefix) if self.needed(module.top))
        return list(modules)


def complete(
    git: Git, access: Access, needed: Callable[[str], bool], *, sync: bool = False, main: Git | None = None
) -> tuple[str, ...]:
    """Check out every needed submodule at its recorded commit.

    Args:
        needed: says whether a submodule, by its path from the checkout, must be present.
        sync: renew the addresses in the repositories from .gitmodules.
        main: a checkout of the same repository, whose submodules are borrowed from.

    Returns:
        The submodules that were left out because nothing needs them.

    Raises:
        SourceError: some could not be fetched, all of them named; the others are there.
    """
    tally = _Tally(access.watch)
    job = _Job(access=replace(access, watch=tally.watch), sync=sync, needed=needed, main=main, left_out=[])
    failed = _at_once(job, job.list_needed(git), tally)
    failed = _one_by_one(job, failed, tally)
    if failed:
        raise _error(git.folder, failed)
    return tuple(job.left_out)


def _at_once(job: _Job, first: list[Module], tally: _Tally) -> list[tuple[Module, Reason]]:
    failed: list[tuple[Module, Reason]] = []
    with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
        running: dict[Future[list[Module]], Module] = {}

        def start(modules: list[Module]) -> None:
            tally.total += len(modules)
            running.update({pool.submit(_update_module, job, module): module for module in modules})

        try:
            start(first)
            while running:
                finished, _ = wait(running, timeout=_SLICE, return_when=FIRST_COMPLETED)
                for future in finished:
                    module = running.pop(future)
                    try:
                        start(future.result())
                        tally.count_one()
                    except _Failed as error:
                        failed.append((module, error.why))
        except BaseException:
            job.access.watch.stop.set()
            for future in running:
                future.cancel()
            raise
    return failed


def _one_by_one(job: _Job, failed: list[tuple[Module, Reason]], tally: _Tally) -> list[tuple[Module, Reason]]:
    """Retry failed submodules one by one: a server may limit parallel connections."""
    for seconds in _WAITS:
        again = [(module, why) for module, why in failed if why.again]
        failed = [(module, why) for module, why in failed if not why.again]
        if not again:
            break
        time.sleep(seconds)
        for module, why in again:
            job.access.watch.note(f"{module.top}: once more ({why.line})")
            try:
                failed += _at_once(job, _update_module(job, module), tally)
                tally.count_one()
            except _Failed as error:
                failed.append((module, error.why))
    return failed


def _update_module(job: _Job, module: Module) -> list[Module]:
    """Check out one submodule; return the needed submodules inside it."""
    config = job.access.config
    git = module.git(config)
    is_new = submodules.head(module, config) != module.commit
    if is_new:
        _check_out(job, module)
    if is_new or _lacks_ref(git, module.commit):
        git.run("update-ref", _COMMIT_REF, module.commit)
    return job.list_needed(git, f"{module.top}/")


def _check_out(job: _Job, module: Module) -> None:
    """Fetch a submodule's commit and check it out."""
    config = job.access.config
    store = submodules.open_repository(module, config)
    _require(_fetch_commit(store, module, job))
    if submodules.is_empty(module) or not module.is_present:
        submodules.remove_index(module)
    git = submodules.connect(module, store)
    submodules.keep_head(git)
    try:
        _require(submodules.move(git, module.commit, module.top, job.access.watch))
    except InTheWay as error:
        shown = ", ".join(error.files[:4]) + (" …" if len(error.files) > 4 else "")
        line = f"has changes of yours: {shown}"
        raise _Failed(Reason(kind="yours", line=line)) from None


def _lacks_ref(git: Git, commit: str) -> bool:
    """Say whether a run was killed between the checkout of a commit and the writing of its ref.

    A repository that the user's git fetched has refs of its own and none of ours.
    """
    ref = git.output("rev-parse", "--verify", "--quiet", _COMMIT_REF)
    return ref != commit and (ref is not None or git.output("for-each-ref", "--count=1") == "")


def _fetch_commit(git: Git, module: Module, job: _Job) -> Outcome:
    """Fetch a submodule's commit: from the main checkout, its configured address, or the listed one.

    From a server that only serves branches and tags, all of these are fetched.
    """
    if lender := _lender(module, job):
        borrow(git, module.commit, lender, job.access, module.top)
    outcome = Outcome(rc=0)
    if module.foreign and module.url == module.listed and not git.has(module.commit):
        return Outcome(rc=128, words=(f"fatal: {module.url} is a place on this machine: {_FOREIGN}",))
    for url in dict.fromkeys((module.url, module.listed)):
        wish = WantedCommit(url=url, what=module.commit, into="", commit=module.commit)
        outcome = bring(git, wish, job.access, module.top)
        if outcome.rc == 0 or find_reason(outcome.words).kind != "missing":
            break
        if job.access.mirrors is None:
            everything = ("+refs/heads/*:refs/remotes/origin/*", "+refs/tags/*:refs/tags/*")
            run(git, ("fetch", "--progress", url, *everything), module.top, job.access.watch)
            if git.has(module.commit):
                return Outcome(rc=0)
    return outcome


_FOREIGN: Final = (
    "git takes nothing from there because a repository says so. "
    "Where it is yours: git config --global protocol.file.allow always"
)


def _lender(module: Module, job: _Job) -> Git | None:
    """Return a submodule's repository in the main checkout, even if its present commit lacks it."""
    if job.main is None:
        return None
    same = Git(folder=job.main.folder / module.top, config=job.main.config)
    place = same.output("rev-parse", "--absolute-git-dir") if os.path.lexists(same.folder / ".git") else None
    if place is None:
        around = Path(module.top.removesuffix(module.path).rstrip("/"))
        outer = Git(folder=job.main.folder / around, config=job.main.config)
        common = outer.output("rev-parse", "--git-common-dir") or ""
        place = str(outer.folder / common / "modules" / module.name)
    return Git(folder=Path(place), config=job.main.config, bare=True) if Path(place).is_dir() else None


def _require(outcome: Outcome) -> None:
    if outcome.rc != 0:
        raise _Failed(find_reason(outcome.words))


def _error(root: Path, failed: list[tuple[Module, Reason]]) -> SourceError:
    many = "1 submodule" if len(failed) == 1 else f"{len(failed)} submodules"
    return SourceError(
        f"{many} of {root} could not be fetched; the others are there.",
        looked=tuple(f"{module.top} from {module.url}: {why.line}" for module, why in failed),
        next_step=advice([why for _, why in failed], failed[0][0].url),
    )


class _Tally:
    """The progress of all submodules as one transfer: their number, those done, the bytes received."""

    def __init__(self, watch: Watch) -> None:
        self._tell = watch.transfer
        self._note = watch.note
        self._lock = threading.Lock()
        self._bytes: dict[str, int] = {}
        self._noted = time.monotonic()
        self.total = self.done = 0
        self.watch = replace(watch, transfer=self._count_bytes)

    def _count_bytes(self, name: str, count: int, total: int | None) -> None:
        with self._lock:
            self._bytes[name] = count
            self._tell("submodules", sum(self._bytes.values()), total)

    def count_one(self) -> None:
        self.done += 1
        if time.monotonic() - self._noted > _NOTE_EVERY:
            self._noted = time.monotonic()
            self._note(f"{self.done} of {self.total} submodules are there")
