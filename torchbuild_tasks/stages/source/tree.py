"""Completes the submodules of a checkout: several at once, those that fail once more one by one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Final

import msgspec

from torchbuild_tasks.core.source.reasons import Reason, advice, reason
from torchbuild_tasks.effects.git import Git
from torchbuild_tasks.effects.source import content, fetching, submodules
from torchbuild_tasks.effects.source.fetching import Way, Wish, bring
from torchbuild_tasks.effects.source.submodules import Module
from torchbuild_tasks.effects.source.transfer import Moved, Watch, run
from torchbuild_tasks.errors import SourceError
from torchbuild_tasks.stages.source.task import Task
from torchbuild_tasks.values import replace

AT_ONCE: Final = 8
_WAITS: Final = (1.0, 3.0)  # seconds before each further try
_SLICE: Final = 0.2  # seconds: Windows notices a Ctrl-C only between waits
_TOLD: Final = 10.0


class _Failed(Exception):
    """One submodule could not be had."""

    def __init__(self, why: Reason) -> None:
        super().__init__(why)
        self.why = why


class _Job(msgspec.Struct, frozen=True, kw_only=True):
    """What laying out one submodule takes."""

    way: Way
    sync: bool


def complete(task: Task, root: Path, needed: Callable[[str], bool], *, sync: bool = False) -> tuple[str, ...]:
    """Bring every submodule that is needed to the commit that its checkout wants.

    Args:
        task: the action.
        root: the checkout.
        needed: whether a path, from the checkout, must be there.
        sync: renew the addresses in the repositories from .gitmodules.

    Returns:
        The submodules that were left out because nothing needs them.

    Raises:
        SourceError: some could not be had, all of them named; the others are there.
    """
    way = task.way(root)
    tally = _Tally(way.watch)
    job = _Job(way=replace(way, watch=tally.watch), sync=sync)
    todo = submodules.initialised(task.git(root), sync=sync)
    left_out: list[str] = []

    def wanted(modules: tuple[Module, ...]) -> list[Module]:
        left_out.extend(module.top for module in modules if not needed(module.top))
        return [module for module in modules if needed(module.top)]

    failed = _at_once(job, wanted(todo), wanted, tally)
    failed = _one_by_one(task, job, failed, wanted, tally)
    if failed:
        raise _error(root, failed)
    return tuple(left_out)


def _at_once(
    job: _Job, first: list[Module], wanted: Callable[[tuple[Module, ...]], list[Module]], tally: _Tally
) -> list[tuple[Module, Reason]]:
    failed: list[tuple[Module, Reason]] = []
    stop = job.way.watch.stop
    with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
        running: dict[Future[tuple[Module, ...]], Module] = {}

        def start(modules: list[Module]) -> None:
            tally.total += len(modules)
            running.update({pool.submit(_lay_out, job, module): module for module in modules})

        try:
            start(first)
            while running:
                done, _ = wait(running, timeout=_SLICE, return_when=FIRST_COMPLETED)
                for future in done:
                    module = running.pop(future)
                    try:
                        start(wanted(future.result()))
                        tally.one_more()
                    except _Failed as error:
                        failed.append((module, error.why))
        except BaseException:
            stop.set()
            for future in running:
                future.cancel()
            raise
    return failed


def _one_by_one(
    task: Task,
    job: _Job,
    failed: list[tuple[Module, Reason]],
    wanted: Callable[[tuple[Module, ...]], list[Module]],
    tally: _Tally,
) -> list[tuple[Module, Reason]]:
    """Try the failed ones again, each alone: a server may take no more than so many at once."""
    for seconds in _WAITS:
        again = [(module, why) for module, why in failed if why.again]
        failed = [(module, why) for module, why in failed if not why.again]
        if not again:
            break
        time.sleep(seconds)
        for module, why in again:
            task.report.note(f"{module.top}: once more ({why.line})")
            try:
                failed += _at_once(job, wanted(_lay_out(job, module)), wanted, tally)
                tally.one_more()
            except _Failed as error:
                failed.append((module, error.why))
    return failed


def _lay_out(job: _Job, module: Module) -> tuple[Module, ...]:
    """Have one submodule at its commit; returns its own submodules."""
    config = job.way.config
    git = Git(folder=module.folder, config=config)
    if submodules.head(module, config) != module.commit:
        repository = submodules.repository(module, config)
        wish = Wish(url=module.url, what=module.commit, into="", commit=module.commit)
        _require(_fetched(repository, wish, job.way, module.top))
        if submodules.is_empty(module):
            submodules.forget_index(module)
        git = submodules.connect(module, repository)
        keep_head(git)
        try:
            _require(content.settle(git, module.commit, module.top, job.way.watch))
        except content.InTheWay as error:
            shown = ", ".join(error.files[:4]) + (" …" if len(error.files) > 4 else "")
            line = f"has changes of yours: {shown}"
            raise _Failed(Reason(kind="yours", line=line)) from None
    return submodules.initialised(git, f"{module.top}/", sync=job.sync)


def _fetched(git: Git, wish: Wish, way: Way, name: str) -> Moved:
    """Fetch a commit; from a server that hands out branches and tags only, all of those."""
    moved = bring(git, wish, way, name)
    if moved.rc == 0 or reason(moved.words).kind != "missing" or way.mirrors is not None:
        return moved
    everything = ("+refs/heads/*:refs/remotes/origin/*", "+refs/tags/*:refs/tags/*")
    tried = run(git, ("fetch", "--progress", wish.url, *everything), name, way.watch)
    return tried if tried.rc == 0 and git.has(wish.commit) else moved


def keep_head(git: Git) -> None:
    """Keep by a ref of ours the commit that is checked out, where it is the user's and no branch holds it.

    A commit that was fetched alone, without its history, came from a server.
    """
    commit = git.said("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    if not commit or commit in fetching.fetched_alone(git):
        return
    if git.said("for-each-ref", "--count=1", "--contains", commit) == "":
        git.run("update-ref", f"refs/torchbuild/kept/{commit}", commit)


def _require(moved: Moved) -> None:
    if moved.rc != 0:
        raise _Failed(reason(moved.words))


def _error(root: Path, failed: list[tuple[Module, Reason]]) -> SourceError:
    many = "1 submodule" if len(failed) == 1 else f"{len(failed)} submodules"
    return SourceError(
        f"{many} of {root} could not be had; the others are there.",
        looked=tuple(f"{module.top} from {module.url}: {why.line}" for module, why in failed),
        next_step=advice([why for _, why in failed], failed[0][0].url),
    )


class _Tally:
    """All submodules as one transfer: how many there are, how many are done, how much came."""

    def __init__(self, watch: Watch) -> None:
        self._tell, self._note, self._lock = watch.transfer, watch.note, threading.Lock()
        self._bytes: dict[str, int] = {}
        self._told = time.monotonic()
        self.total = self.done = 0
        self.watch = replace(watch, transfer=self._came)

    def _came(self, name: str, count: int, total: int | None) -> None:
        with self._lock:
            self._bytes[name] = count
            self._tell("submodules", sum(self._bytes.values()), total)

    def one_more(self) -> None:
        """One is laid out."""
        self.done += 1
        if time.monotonic() - self._told > _TOLD:
            self._told = time.monotonic()
            self._note(f"{self.done} of {self.total} submodules are there")
