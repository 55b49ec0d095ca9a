"""`cache`: show how full the compiler caches are, empty them, or serve one for builds by hand."""

from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING

from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.verbs import Outcome

if TYPE_CHECKING:
    from torchbuild_tasks.build.work import Reporter

from collections.abc import Sequence

from torchbuild_tasks.model import CacheState
from torchbuild_tasks.text.show import columns, size_text


def cache_text(states: Sequence[CacheState]) -> str:
    """Return one line for each cache: program, size, folder."""
    head = ("cache", "version", "filled", "at most", "folder")
    rows = [
        (
            state.tool,
            state.version,
            "nothing yet" if state.used is None else size_text(state.used),
            "not known" if state.limit is None else size_text(state.limit),
            state.folder or "not known",
        )
        for state in states
    ]
    return columns([head, *rows], "")


@dataclasses.dataclass(frozen=True, kw_only=True)
class CacheRequest(BuildRequest):
    """The words of `cache`."""

    actions = {
        "stats": "show folders and sizes",
        "clear": "empty the caches; lists first, asks",
        "serve": "run sccache's server for builds by hand, until Ctrl-C",
    }


def run(request: CacheRequest, report: Reporter) -> Outcome:
    """Show how full the compiler caches of a build are, empty them, or serve one for builds by hand."""
    states = run_action(request, report)
    text = cache_text(states) if request.action == "stats" else ""
    return Outcome({"action": request.action, "caches": states}, text)


def run_action(request: CacheRequest, report: Reporter) -> tuple[CacheState, ...]:
    """Run the requested action.

    Returns:
        The caches as they are; after clear as they were before; after serve none.
    """
    from torchbuild_tasks.context import cache_addresses, decide, look, require_checkout
    from torchbuild_tasks.features.cache import act
    from torchbuild_tasks.flag_values import refuse_stale
    from torchbuild_tasks.system.signals import interruptible

    question = look(request)
    refuse_stale(question.settings, "cache_dir")
    plan = decide(question)
    caches = act.caches_of(plan)
    environ = act.cache_environ(plan, os.environ)
    with interruptible():
        match request.action:
            case "clear":
                return act.clear_caches(
                    caches, environ, lambda ask: request.yes or report.confirm(ask), report.note
                )
            case "serve":
                addresses = cache_addresses(question)
                root = require_checkout(question)
                act.serve_cache(caches, addresses, environ, root, report.note, act.sleep_until_interrupted)
                return ()
    return act.cache_states(caches, environ)
