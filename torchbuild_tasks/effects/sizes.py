"""How much memory the processes of a build take, by what they do; looked at now and then while it runs.

The kernel keeps the most that a process ever had, so a look shortly before its end is enough. What is
taken between the last look and the end is missed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from torchbuild_tasks.effects.jobserver.serve import Family
from torchbuild_tasks.effects.program_name import program_name
from torchbuild_tasks.model.facts import Peak


class Seen(NamedTuple):
    """One process: what it does, and the most memory it had."""

    kind: str
    bytes: int


class Sizes:
    """Call `look` every so often; `peaks` is what was seen until then.

    Args:
        kind_of: what a program of this name does; "" for one that does not count.
        family: the processes of the build; all that descends from ours unless given.
    """

    def __init__(self, kind_of: Callable[[str], str], family: Family | None = None) -> None:
        self._kind_of, self._family = kind_of, family or Family()
        self._seen: dict[tuple[int, float], Seen] = {}

    def look(self) -> tuple[str, ...]:
        """The kinds of those that work at this moment; "" for a program that does not count."""
        busy = []
        for one in self._family.look():
            # A shell becomes the compiler that it runs, so its name is asked for at each look.
            kind = self._kind_of(program_name(one.pid))
            if kind:
                self._seen[one.pid, one.started] = Seen(kind, one.peak)
            if not one.idle:
                busy.append(kind)
        return tuple(busy)

    @property
    def peaks(self) -> tuple[Peak, ...]:
        """The largest of each kind, the largest kind first."""
        sizes: dict[str, list[int]] = {}
        for one in self._seen.values():
            sizes.setdefault(one.kind, []).append(one.bytes)
        found = (Peak(kind=kind, bytes=max(each), count=len(each)) for kind, each in sizes.items())
        return tuple(sorted(found, key=lambda each: -each.bytes))
