"""The history of a machine's builds: the times of steps, and the memory of processes."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

HISTORY_SCHEMA = 1
# The file of `PastPeaks`, below the store.
PEAKS = "build-memory.json"


class PastBuild(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One finished or stopped build: `seconds` of wall time, and the number of steps that ran.

    `work` is the seconds of all steps together; `hits` are the compiles that a cache must have answered.
    """

    finished: str
    seconds: float
    steps: int
    work: float = 0.0
    hits: int = 0


class Peak(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The peak memory of the processes of a kind, in bytes, and their number."""

    kind: str
    bytes: int
    count: int


class PastPeak(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A `Peak` of the builds of one checkout with one build type.

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
        """The share of the build's steps that ran; the others may need more memory."""
        return self.seen / (self.seen + self.left) if self.left else 1.0


class PastPeaks(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of the file with these peaks, the newest last."""

    schema: int = HISTORY_SCHEMA
    peaks: tuple[PastPeak, ...] = ()


class History(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`steps` has the seconds of each step by its output, `builds` the last ones; the newest first."""

    schema: int = HISTORY_SCHEMA
    source: str = ""
    compiler: str = ""
    steps: Mapping[str, tuple[float, ...]] = msgspec.field(default_factory=dict)
    builds: tuple[PastBuild, ...] = ()
