"""The stages that start the compiler cache before CMake and stop it after the last link."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from torchbuild_tasks.build.work import Work
from torchbuild_tasks.core.cache.variables import LAUNCHERS
from torchbuild_tasks.stages.cache import Running, cache_running
from torchbuild_tasks.system import files
from torchbuild_tasks.values import replace


def start_cache(work: Work) -> Work:
    """Start it, unless Ninja may find nothing to do: then a server is not worth its start."""
    return work if work.plan.way.name == "install" else begin_cache(work)


def begin_cache(work: Work) -> Work:
    """Have the cache of the plan work from here on, until `stop_cache` or the end of the run."""
    if work.plan.cache is None:
        return work
    running = work.at_end.enter_context(_recorded(work))
    if running.unlaunched:
        _without_launcher(work)
    return replace(work, environ=running.environ)


def stop_cache(work: Work) -> Work:
    """Stop what runs beside the build and tell what the cache did; after a failure the run's end does."""
    work.at_end.close()
    return work


@contextlib.contextmanager
def _recorded(work: Work) -> Iterator[Running]:
    assert work.plan.cache is not None
    environ = os.environ if work.environ is None else work.environ
    files.state_dir(work.root)  # ccache writes down there what it did
    beside = cache_running(work.plan.cache, work.cache_words, environ, work.root, work.report.note)
    try:
        with beside as running:
            yield running
    finally:
        work.ledger.note(caches=running.reports)


def _without_launcher(work: Work) -> None:
    """Have CMake run anew, for a launcher that cannot run stands in what it remembers."""
    work.ledger.open()
    cache = work.build_dir / "CMakeCache.txt"
    if cache.exists():
        cache.replace(cache.with_suffix(".txt.old"))
    work.ledger.forget_inputs({f"variable {name}" for names in LAUNCHERS.values() for name in names})
