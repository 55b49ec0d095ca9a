"""How much memory a job of a build takes: measured on this machine, or else tabled."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from torchbuild_tasks.catalog import GIB
from torchbuild_tasks.core.question import Question
from torchbuild_tasks.core.rows import memory_row
from torchbuild_tasks.model.history import PastPeak, Peak
from torchbuild_tasks.values import replace

# The kinds of memory.toml by the programs that are measured. Compiles by nvcc that are no heavy kernels
# cannot be told from those that are, so their size stays tabled.
_MEASURED: Final = {"c++": "C++", "heavy kernel": "CUDA"}
_ENOUGH: Final = 50  # of fewer compiles the largest says little about the next one
_MARGIN: Final = 1.25  # what was taken after the last look was missed, and sources change
_LEAST: Final = 0.5  # GiB
_KEPT: Final = 200


class Size(NamedTuple):
    """GiB of one process, and where that is from; "" for the table."""

    gib: float
    because: str = ""


def job_size(question: Question, kind: str, build_type: str) -> Size:
    """Return what a process of a kind of memory.toml may take at its peak.

    What builds here took with the same build type counts more than the table, if they had enough compiles.
    """
    tabled = memory_row(question.catalog, kind).gib
    store = question.facts.store
    seen = [
        peak
        for peak in (store.peaks if store else ())
        if peak.kind == _MEASURED.get(kind) and peak.build_type == build_type and peak.count >= _ENOUGH
    ]
    if not seen:
        return Size(tabled)
    own = [peak for peak in seen if peak.source == question.facts.tree.root]
    most = max(own or seen, key=lambda peak: peak.bytes)
    gib = max(_LEAST, math.ceil(most.bytes * _MARGIN / GIB * 10) / 10)
    where = "this checkout" if own else most.source
    because = f"the largest of {most.count:,} in {where} took {most.bytes / GIB:.2f} GiB"
    return Size(gib, f"{because}, {build_type}; tabled: {tabled:g}")


def decisive(known: Sequence[PastPeak], source: str, build_type: str) -> tuple[PastPeak, ...]:
    """Those of them that `job_size` may take for this checkout: its own, else the largest of each kind."""
    fitting = [peak for peak in known if peak.build_type == build_type and peak.count >= _ENOUGH]
    own = [peak for peak in fitting if peak.source == source]
    largest: dict[str, PastPeak] = {}
    for peak in sorted(fitting, key=lambda peak: peak.bytes):
        largest[peak.kind] = peak
    return (*own, *(peak for kind, peak in largest.items() if kind not in {each.kind for each in own}))


def with_peaks(
    known: Sequence[PastPeak], source: str, build_type: str, peaks: Iterable[Peak]
) -> tuple[PastPeak, ...]:
    """What is known of this machine, with the processes of one more build of a checkout.

    A build that ran much less than the one before it can add to what is known, and takes nothing away.
    """
    rows = {(row.source, row.build_type, row.kind): row for row in known}
    for peak in peaks:
        key = (source, build_type, peak.kind)
        new = PastPeak(
            source=source, build_type=build_type, kind=peak.kind, bytes=peak.bytes, count=peak.count
        )
        old = rows.pop(key, new)
        rows[key] = new if 2 * new.count >= old.count else replace(old, bytes=max(old.bytes, new.bytes))
    return tuple(rows.values())[-_KEPT:]
