"""How a bisect ended, as text for a person."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Tried(Protocol):
    """One step."""

    @property
    def commit(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def verdict(self) -> str: ...
    @property
    def because(self) -> str: ...


class FoundBad(Protocol):
    """What `flow.bisect` found."""

    @property
    def first_bad(self) -> Sequence[str]: ...
    @property
    def messages(self) -> Sequence[str]: ...
    @property
    def steps(self) -> Sequence[Tried]: ...
    @property
    def log(self) -> str: ...


def bisect_text(found: FoundBad) -> str:
    """Every step, then the first bad commit; or those among which skipped ones hide it."""
    steps = "".join(f"  {x.verdict:4}  {x.commit[:10]}  {x.title}  ({x.because})\n" for x in found.steps)
    if len(found.first_bad) == 1:
        head = f"{found.first_bad[0]} is the first bad commit\n"
    else:
        head = f"Commits were skipped, so the first bad one is any of these {len(found.first_bad)}:\n"
    return f"Steps\n{steps}\n{head}\n" + "\n\n".join(found.messages) + f"\n\nLog: {found.log}\n"
