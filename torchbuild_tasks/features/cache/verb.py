"""The compiler caches as text for a person."""

from __future__ import annotations

from collections.abc import Sequence

from torchbuild_tasks.model import CacheState
from torchbuild_tasks.text.show import columns, size


def cache_text(states: Sequence[CacheState]) -> str:
    """A line a cache: program, how full, where."""
    head = ("cache", "version", "filled", "at most", "folder")
    rows = [
        (
            state.tool,
            state.version,
            "nothing yet" if state.used is None else size(state.used),
            "not known" if state.limit is None else size(state.limit),
            state.folder or "not known",
        )
        for state in states
    ]
    return columns([head, *rows], "")
