"""Drift: which changed setting would make everything be compiled again, though the cache is full."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torchbuild_tasks.model import CacheTool

KEPT = 20  # combinations of settings that one folder is remembered by


def drift(tool: CacheTool, seen: Sequence[Mapping[str, str]]) -> tuple[str, ...]:
    """Each setting that differs, as "name: before -> now"; nothing where the cache was filled with these too.

    Args:
        tool: the cache with its settings as planned.
        seen: the combinations that builds have used with this folder, the newest last.
    """
    now = dict(tool.settings)
    if not seen or any(dict(each) == now for each in seen):
        return ()
    # The nearest one: of two compilers that take turns only the one that changed is to be named.
    before = min(reversed(seen), key=lambda each: len(_changed(each, now)))
    return tuple(f"{name}: {before.get(name, '')} -> {now.get(name, '')}" for name in _changed(before, now))


def _changed(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    return [name for name in sorted({*before, *now}) if before.get(name, "") != now.get(name, "")]


def drift_line(tool: CacheTool, changes: tuple[str, ...]) -> str:
    """What is said before it happens; "" without a change."""
    if not changes:
        return ""
    return (
        f"Warning: {tool.name} will find nothing this once, for what it compares has changed "
        f"({'; '.join(changes)}). What it kept is for the settings before."
    )


def remembered(seen: Sequence[Mapping[str, str]], now: Mapping[str, str]) -> list[dict[str, str]]:
    """The combinations with this one as the newest."""
    others = [dict(each) for each in seen if dict(each) != dict(now)]
    return [*others[-(KEPT - 1) :], dict(now)]
