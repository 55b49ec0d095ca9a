"""Name the settings that are part of a cache's keys, and those that changed since it was filled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from torchbuild_tasks.model import CacheTool

CHECKOUT: Final = "the checkout"
# Variables that are part of a cache's keys, by tool; after a change everything is compiled again.
HASHED: Final[Mapping[str, tuple[str, ...]]] = {
    "ccache": ("CCACHE_BASEDIR", "CCACHE_NOHASHDIR", "PYTHONHASHSEED"),
    "sccache": ("SCCACHE_BASEDIRS", "SCCACHE_DIRECT", "PYTHONHASHSEED"),
    "recc": ("RECC_SERVER", "RECC_INSTANCE", "PYTHONHASHSEED"),
}
MOST_SETTINGS: Final = 20  # combinations of settings that are recorded for a folder


def hashed_settings(
    tool: str, values: Mapping[str, str], compiler: str, version: str, root: str
) -> dict[str, str]:
    """Return the settings of a cache that affect hits, without those that only differ between checkouts.

    Args:
        tool: ccache or sccache.
        values: the build variables as decided.
        compiler: path and version of the C++ compiler.
        version: the cache's own; a new one may compare otherwise.
        root: the checkout.
    """
    settings = {name: values.get(name, "") for name in HASHED[tool]}
    shown = {name: CHECKOUT if value == root else value for name, value in settings.items()}
    return {**shown, "compiler": compiler, "version": version}


def drift(tool: CacheTool, seen: Sequence[Mapping[str, str]]) -> tuple[str, ...]:
    """Return each changed setting as "name: before -> now"; empty if the cache was filled with these."""
    now = dict(tool.settings)
    if not seen or any(dict(each) == now for each in seen):
        return ()
    # The most similar one: if two compilers alternate, name only the setting that changed.
    before = min(reversed(seen), key=lambda each: len(_list_changed(each, now)))
    return tuple(
        f"{name}: {before.get(name, '')} -> {now.get(name, '')}" for name in _list_changed(before, now)
    )


def _list_changed(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    return [name for name in sorted({*before, *now}) if before.get(name, "") != now.get(name, "")]


def drift_line(tool: CacheTool, changes: tuple[str, ...]) -> str:
    """Return the warning about changed settings; "" without a change."""
    if not changes:
        return ""
    return (
        f"Warning: {tool.name} will find nothing this once, for what it compares has changed "
        f"({'; '.join(changes)}). What it kept is for the settings before."
    )


def remember_settings(seen: Sequence[Mapping[str, str]], now: Mapping[str, str]) -> list[dict[str, str]]:
    """Return the known combinations with this one as the newest."""
    others = [dict(each) for each in seen if dict(each) != dict(now)]
    return [*others[-(MOST_SETTINGS - 1) :], dict(now)]
