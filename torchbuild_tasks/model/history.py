"""The memory of a machine's builds: how long each step takes, and how much memory a process took."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

HISTORY_SCHEMA = 1
# The file of `PastPeaks`, below the store.
PEAKS = "build-memory.json"


class PastBuild(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One build that Ninja finished or was stopped in: `seconds` of wall time, how many steps ran.

    `work` is the seconds of all steps together; `hits` are the compiles that a cache must have answered.
    """

    finished: str
    seconds: float
    steps: int
    work: float = 0.0
    hits: int = 0


class Peak(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The most memory that one process of a kind was seen to have, in bytes, and how many were seen."""

    kind: str
    bytes: int
    count: int


class PastPeak(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A `Peak` of the builds of one checkout with one build type, kept on the machine.

    `seen` counts the steps that these builds ran, `left` those that were to come when the last one ended.
    """

    source: str
    build_type: str
    kind: str
    bytes: int
    count: int
    seen: int = 0
    left: int = 0

    @property
    def share(self) -> float:
        """The part of the steps that it speaks of; the rest may be heavier."""
        return self.seen / (self.seen + self.left) if self.left else 1.0


class PastPeaks(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file in which the machine keeps them, the newest last."""

    schema: int = HISTORY_SCHEMA
    peaks: tuple[PastPeak, ...] = ()


class History(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`steps` has the seconds of each step by its output, `builds` the last ones; the newest first."""

    schema: int = HISTORY_SCHEMA
    source: str = ""
    compiler: str = ""
    steps: Mapping[str, tuple[float, ...]] = msgspec.field(default_factory=dict)
    builds: tuple[PastBuild, ...] = ()
