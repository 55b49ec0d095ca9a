"""The stages that start the compiler cache before CMake runs and stop it after the last link."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchbuild_tasks.build.work import Work
from torchbuild_tasks.system import files
from torchbuild_tasks.values import replace

if TYPE_CHECKING:
    from torchbuild_tasks.features.cache.run import Running
    from torchbuild_tasks.model import CachePlan


def begin_cache(work: Work) -> Work:
    """Start the planned cache; it runs until `stop_cache` or the end of the run."""
    if work.plan.cache is None:
        return work
    running = work.background.enter_context(_run_cache(work, work.plan.cache))
    if running.unlaunched:
        _remove_launcher(work)
    return replace(work, environ=running.environ)


def stop_cache(work: Work) -> Work:
    """Stop the cache's server and report its hits; after a failure the end of the run does so."""
    work.background.close()
    return work


@contextlib.contextmanager
def _run_cache(work: Work, plan: CachePlan) -> Iterator[Running]:
    """Run the cache during the body, then record its reports in the manifest."""
    from torchbuild_tasks.features.cache.run import cache_running

    files.state_dir(work.root)  # ccache writes its statistics log there
    note = work.report.note
    previous = work.facts.tree.previous
    context = cache_running(
        plan,
        work.cache_addresses,
        work.env,
        work.root,
        note,
        complete=not work.request.target,
        goes_on=previous is not None and previous.result != "ok",
    )
    running = None
    try:
        with context as running:
            yield running
    finally:
        if running is not None:  # it began
            work.ledger.note(caches=running.reports)


def _remove_launcher(work: Work) -> None:
    """Set CMake's cache aside, because it names a launcher that cannot run."""
    from torchbuild_tasks.build.clean import set_cmake_cache_aside
    from torchbuild_tasks.features.cache.choose import LAUNCHERS

    set_cmake_cache_aside(work)
    work.ledger.forget_inputs({f"variable {name}" for names in LAUNCHERS.values() for name in names})
