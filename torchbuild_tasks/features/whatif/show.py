"""Format the result of a simulation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from torchbuild_tasks.catalog import GIB
from torchbuild_tasks.features.whatif.choose import Answer, Figures, Scenario
from torchbuild_tasks.ninja.progress import short_path
from torchbuild_tasks.text.show import columns, took

_SHOWN: Final = 5
_WHY: Final = {
    "critical path": "the critical path: more machines do not help",
    "cores": "the cores of this machine",
    "jobs": "the number of jobs that this machine can feed",
    "servers": "the cores of the servers",
    "memory": "memory; with memory=GIB it is another",
}


def answer_text(answer: Answer) -> str:
    """Return both builds side by side, the longest chain of the second, and the sources of the figures."""
    rows = [("", "as it is", "what if")]
    rows += [
        (name, here, there) for (name, here), (_, there) in zip(*map(_rows, _cases(answer)), strict=True)
    ]
    notes = "".join(f"  {note}\n" for note in answer.notes)
    return f"{columns(rows)}{_chain(answer.then)}{_say_history(answer)}{notes}"


def _cases(answer: Answer) -> Iterator[tuple[Scenario, Figures]]:
    yield answer.here, answer.now
    yield answer.what_if, answer.then


def _rows(case: tuple[Scenario, Figures]) -> list[tuple[str, str]]:
    scenario, figures = case
    servers = f"{scenario.servers} of {scenario.server_cores} cores" if scenario.servers else "none"
    return [
        ("cores", f"{scenario.cores:,}"),
        ("servers", servers),
        ("memory", "no limit" if scenario.memory is None else f"{scenario.memory:.1f} GiB"),
        ("compiles from a cache", f"{figures.hits:,} ({scenario.cache:.0%})"),
        ("compiles sent away", f"{figures.sent:,}"),
        ("steps", f"{figures.steps:,}, {figures.jobs:,} at once"),
        ("wall time", took(figures.wall_seconds)),
        ("critical path", took(figures.critical_path_seconds)),
        ("all steps together", took(figures.work_seconds)),
        ("memory, at most", f"{figures.memory_peak_bytes / GIB:.1f} GiB"),
        ("limited by", figures.limited_by),
    ]


def _chain(figures: Figures) -> str:
    more = len(figures.chain) - _SHOWN
    names = [short_path(name) or name for name in figures.chain[-_SHOWN:]]
    start = f"{more} more, then " if more > 0 else ""
    why = _WHY.get(figures.limited_by, f"{figures.limited_by} of build.ninja")
    return f"  What if: limited by {why}.\n  Longest chain: {start}{' -> '.join(names)}\n"


def _say_history(answer: Answer) -> str:
    known = answer.known
    return (
        f"  Seconds of steps: {known['history']:,} as builds here took, {known['log']:,} by the log "
        f"of this build tree, {known['rows']:,} by rows of step_costs.toml.\n"
        "  Ninja's part of a build from nothing: configuring, packaging and verifying come on top.\n"
    )
