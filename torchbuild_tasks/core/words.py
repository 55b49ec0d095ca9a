"""Mistyped words: the known one that was most likely meant."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that a mistyped one most likely meant, case ignored."""
    import difflib

    folded = {item.casefold(): item for item in known}
    found = difflib.get_close_matches(word.casefold(), folded, n=1, cutoff=0.6)
    return folded[found[0]] if found else None
