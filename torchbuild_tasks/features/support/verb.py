"""What `support` wrote, as text for a person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol


class Written(Protocol):
    """What `flow.support` gives."""

    @property
    def path(self) -> str: ...
    @property
    def members(self) -> Sequence[str]: ...
    @property
    def redacted(self) -> Mapping[str, int]: ...
    @property
    def problems(self) -> Sequence[str]: ...


def support_text(made: Written) -> str:
    """Where it is, what is in it, what was taken out and what could not be had."""
    taken = ", ".join(f"{rule} ({count})" for rule, count in made.redacted.items()) or "nothing"
    lines = [f"wrote {made.path}", f"  in it: {', '.join(made.members)}", f"  taken out: {taken}"]
    lines += [f"  could not be had: {problem}" for problem in made.problems]
    return "\n".join(lines) + "\n  Look through it before you hand it on.\n"
