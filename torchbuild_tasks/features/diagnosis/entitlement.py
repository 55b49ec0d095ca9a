"""Decide which sentences of a fix a log allows: what is typed needs what the log may show as absent."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Final

from torchbuild_tasks.catalog.diagnosis import PremiseRow
from torchbuild_tasks.features.diagnosis.machine import Machine

_SENTENCE: Final = re.compile(r"(?<=[.;]) ")


def entitle(fix: str, machine: Machine, known: Mapping[str, str]) -> str:
    """Return a fix without what the log speaks against, and with what holds in its place.

    Args:
        fix: of a row, a kind or a look-up.
        machine: of the log, whose catalog has the rows.
        known: what was read off the error, by its names in sentences.
    """
    for row in machine.catalog.premise:
        if _typed(row.typed).search(fix) and any(_is_so(name, machine, known) for name in row.against):
            fix = _apply(row, fix, machine, known)
    return fix


def _is_so(name: str, machine: Machine, known: Mapping[str, str]) -> bool:
    return bool(known.get(name) or machine.value(name))


def _apply(row: PremiseRow, fix: str, machine: Machine, known: Mapping[str, str]) -> str:
    if row.also:
        return f"{fix} {machine.fill((row.also,), (), known)}"
    if not row.instead:
        return _typed(row.typed).sub("", fix)
    kept = [part for part in _SENTENCE.split(fix) if not _typed(row.typed).search(part)]
    return " ".join(filter(None, (" ".join(kept), machine.fill((row.instead,), (), known))))


@functools.cache
def _typed(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
