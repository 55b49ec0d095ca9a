"""Looks at a build while it runs: how long it takes still, what it should be told, how large it gets.

A thread beside the build, because in a long link nothing is printed for minutes. It costs at most one
percent of a core: the dearer a look, the rarer it is.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from torchbuild_tasks.core.hints import Advice, State, advice, hint
from torchbuild_tasks.core.programs import program_kind
from torchbuild_tasks.effects.history import read_peaks, write_peaks
from torchbuild_tasks.effects.sizes import Sizes
from torchbuild_tasks.effects.swap import swap_used
from torchbuild_tasks.model.facts import Peak
from torchbuild_tasks.plan.jobs import with_peaks
from torchbuild_tasks.stages.family import build_family
from torchbuild_tasks.stages.history import Pace
from torchbuild_tasks.stages.work import Reporter, Work
from torchbuild_tasks.values import replace

_SOONEST: Final = 0.2
_LATEST: Final = 5.0
_SHARE: Final = 0.01  # of a core
_TELL: Final = 1.0  # seconds between two answers of how much is left


@contextlib.contextmanager
def monitored(work: Work, pace: Pace, first_error: Callable[[], str]) -> Iterator[None]:
    """Watch the build of the body; what its processes took at most is in the ledger afterwards."""
    can = advice(work.plan, work.facts.tools, work.facts.host)
    family = build_family(os.environ if work.environ is None else work.environ)
    monitor = Monitor(pace, Sizes(program_kind, family), can, work.report, first_error)
    try:
        with monitor:
            yield
    finally:
        work.ledger.saw(monitor.sizes.peaks)
        _remember(work, monitor.sizes.peaks)


def _remember(work: Work, peaks: Sequence[Peak]) -> None:
    """Keep it for the next plan on this machine, which reckons its jobs by it."""
    if not peaks:
        return
    build_type = next((choice.value for choice in work.plan.choices if choice.name == "build type"), "")
    known = read_peaks(work.fetching.store)
    new = with_peaks(known.peaks, work.plan.source, build_type, peaks)
    if problem := write_peaks(work.fetching.store, replace(known, peaks=new)):
        work.report.note(problem)


class Monitor:
    """The thread. Enter it around the build."""

    def __init__(
        self, pace: Pace, sizes: Sizes, can: Advice, report: Reporter, first_error: Callable[[], str] = str
    ) -> None:
        self.sizes, self._first_error, self._failed = sizes, first_error, False
        self._pace, self._can, self._report = pace, can, report
        self._over = threading.Event()
        self._began = time.monotonic()
        start = swap_used()
        self._state = State(elapsed=0.0, swap=start, swap_at_start=start)
        self._several, self._told = self._began, 0.0
        self._thread = threading.Thread(target=self._run, name="monitor", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        wait = _SOONEST
        while not self._over.wait(wait):
            before = time.thread_time()
            self._look(time.monotonic())
            wait = min(_LATEST, max(_SOONEST, (time.thread_time() - before) / _SHARE))

    def _look(self, now: float) -> None:
        working = self.sizes.look()
        if len(working) != 1:
            self._several = now
        if now - self._told < _TELL:
            return
        self._told = now
        if words := self._first_error():
            self._failed = True
            for line in words.splitlines():
                self._report.note(line)
        left = None if self._failed else self._pace.left()  # what is left is not built any more
        self._report.left(left)
        self._state = replace(
            self._state,
            elapsed=now - self._began,
            swap=swap_used(),
            working=working,
            alone=now - self._several,
            left=left,
        )
        if found := hint(self._state, self._can):
            self._state = replace(self._state, said=self._state.said | {found[0]})
            self._report.note(found[1])
