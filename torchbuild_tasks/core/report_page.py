"""The build's report as one HTML page: no network, no framework, and every name escaped.

The tables are whole without JavaScript; the script draws the timeline, sorts and finds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from torchbuild_tasks.catalog.templates import fill
from torchbuild_tasks.core import markup
from torchbuild_tasks.core.report_parts import builds_table, cache_table, changes_table, memory_table, shown
from torchbuild_tasks.features.cache.stats import hit_rate
from torchbuild_tasks.model import CacheReport
from torchbuild_tasks.model.facts import PastBuild, Peak
from torchbuild_tasks.ninja.log import Step, kind_of
from torchbuild_tasks.ninja.timeline import Chain, Difference, Placed, alone, by_kind, slowest, wall

_SLOWEST: Final = 25
# The colours of page.css by kind: one accent in three strengths, and greys.
_COLOURS: Final = {
    "C++": 0,
    "C": 1,
    "assembler": 1,
    "object": 1,
    "CUDA": 2,
    "HIP": 2,
    "link": 3,
    "codegen": 4,
}
_OTHER_COLOUR: Final = 5
_FIND: Final = (
    '<label class="find" hidden>Find a step <input type="search" id="find" autocomplete="off"></label>'
)


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """The three files that a page is made of."""

    html: str
    style: str
    script: str


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """All that the page shows. Times are seconds, memory is bytes.

    `stages` are the tool's own, with how each ended; `caches` what each compiler cache did, `hits` the
    compiles that one must have answered, by their times; `peaks` are the largest processes;
    `differences` compare with the time before, `builds` are those before, the newest first; `notes` are
    what a reader must know about what is missing.
    """

    torch: str
    result: str
    when: str
    machine: str
    source: str
    log: str
    placed: Sequence[Placed]
    chain: Chain
    stages: Sequence[tuple[str, float, str]] = ()
    caches: Sequence[CacheReport] = ()
    hits: int = 0
    peaks: Sequence[Peak] = ()
    differences: Sequence[Difference] = ()
    gone: Sequence[str] = ()
    builds: Sequence[PastBuild] = ()
    notes: Sequence[str] = ()


def render(page: Page, report: Report) -> str:
    """The page's whole text."""
    steps = [each.step for each in report.placed]
    return fill(
        page.html,
        {
            "title": markup.text(f"Build of torch {report.torch}"),
            "style": page.style,
            "script": page.script,
            "heading": markup.text(f"Build of torch {report.torch}"),
            "under": markup.text(" · ".join(filter(None, (report.result, report.when, report.machine)))),
            "notes": "\n".join(f'<p class="warn">{markup.text(note)}</p>' for note in report.notes),
            "figures": _figures(report, steps),
            "stages": _stages(report.stages),
            "legend": _legend(steps),
            "slowest": _slowest(report, steps),
            "chain": _chain(report, wall(steps)),
            "kinds": _kinds(steps),
            "memory": memory_table(report.peaks),
            "cache": cache_table(report.caches, report.hits),
            "builds": builds_table(report.builds, steps, report.hits),
            "changes": changes_table(report.differences, len(report.gone), report.source),
            "footer": markup.text(f"Source: {report.source}. Times of steps: {report.log}."),
            "data": markup.embed(_payload(report)),
        },
    )


def _payload(report: Report) -> dict[str, Any]:
    kinds = [each.kind for each in by_kind([each.step for each in report.placed])]
    chain = {step.output for step in report.chain.steps}
    before = {each.output: each.before for each in report.differences}
    zero = min((each.step.start for each in report.placed), default=0.0)
    return {
        "kinds": kinds,
        "colours": [_COLOURS.get(kind, _OTHER_COLOUR) for kind in kinds],
        "lanes": max((each.lane for each in report.placed), default=-1) + 1,
        "compares": any(each is not None for each in before.values()),
        "wall": round(wall([each.step for each in report.placed]), 3),
        "steps": [
            [
                shown(report.source, each.step.output),
                kinds.index(kind_of(each.step.output)),
                each.lane,
                round(each.step.start - zero, 3),
                round(each.step.seconds, 3),
                int(each.step.output in chain),
                before.get(each.step.output),
            ]
            for each in report.placed
        ],
    }


def _figures(report: Report, steps: Sequence[Step]) -> str:
    whole = wall(steps)
    work = sum(step.seconds for step in steps)
    lanes = max((each.lane for each in report.placed), default=-1) + 1
    rows = [
        ("Steps", f"{len(steps):,}", f"at most {lanes} at once" if lanes > 1 else "one at a time"),
        (
            "Wall time",
            markup.took(whole),
            f"of {markup.took(sum(row[1] for row in report.stages))} in all" if report.stages else "",
        ),
        ("Work", markup.took(work), f"{work / whole:.1f} at once on average" if whole else ""),
        (
            "Longest chain",
            markup.took(report.chain.seconds),
            f"{report.chain.seconds / whole:.0%} of the wall time" if whole else "",
        ),
        ("One step alone", markup.took(alone(steps)), "more cores would not help here"),
    ]
    if hits := _hits(report, len(steps)):
        rows.append(hits)
    if report.builds:
        before = report.builds[0].seconds
        said = f"{whole / before:.2f} of it now" if before else ""
        rows.append(("The build before", markup.took(before), said))
    return "\n".join(
        f"<div><dt>{markup.text(name)}</dt><dd>{markup.text(value)}<small>{markup.text(more)}</small></dd></div>"
        for name, value, more in rows
    )


def _hits(report: Report, steps: int) -> tuple[str, str, str] | None:
    """What the caches say of themselves, or else what the times say."""
    rates = [rate for each in report.caches if (rate := hit_rate(each)) is not None]
    if rates:
        found = sum(sum(each.hits.values()) for each in report.caches)
        asked = found + sum(sum(each.misses.values()) for each in report.caches)
        return ("Cache hits", f"{found / asked:.0%}", f"{found:,} of {asked:,} compiles")
    return (
        ("Cache hits", f"{report.hits:,}", f"{report.hits / steps:.0%} of the steps") if report.hits else None
    )


def _legend(steps: Sequence[Step]) -> str:
    return "\n".join(f"<span>{_swatch(each.kind)}{markup.text(each.kind)}</span>" for each in by_kind(steps))


def _swatch(kind: str) -> str:
    return f'<i style="background:var(--k{_COLOURS.get(kind, _OTHER_COLOUR)})"></i>'


def _stages(stages: Sequence[tuple[str, float, str]]) -> str:
    whole = sum(seconds for _, seconds, _ in stages)
    told = [stage for stage in stages if stage[1] >= 0.05 or stage[2] != "ok"]
    if not whole or not told:
        return ""
    parts = "".join(
        f'<span style="flex:{seconds:.3f};opacity:{(1, 0.45)[index % 2]}" title="{markup.text(name)}"></span>'
        for index, (name, seconds, _) in enumerate(told)
    )
    rows = [
        (
            markup.name_cell(name),
            markup.cell(result, "bad" if result != "ok" else ""),
            markup.seconds_cell(seconds),
            markup.share(seconds / whole),
        )
        for name, seconds, result in told
    ]
    stack = f'<div class="stack" aria-hidden="true">{parts}</div>'
    table = markup.html_table(("Stage", "Ended", "#Time", "Share"), rows)
    return markup.section("stages", "Stages", stack + table)


def _slowest(report: Report, steps: Sequence[Step]) -> str:
    before = {each.output: each.before for each in report.differences if each.before is not None}
    zero = min((step.start for step in steps), default=0.0)
    rows = [
        (
            markup.name_cell(shown(report.source, step.output)),
            markup.cell(kind_of(step.output)),
            markup.number(markup.clock(step.start - zero), step.start - zero),
            markup.seconds_cell(step.seconds),
            *((markup.seconds_cell(before.get(step.output)),) if before else ()),
        )
        for step in slowest(steps, _SLOWEST)
    ]
    heads = ("Step", "Kind", "#Began", "#Time", *(("#Before",) if before else ()))
    note = f"The {len(rows)} that took longest, of {len(steps):,}." if len(steps) > len(rows) else ""
    table = markup.html_table(heads, rows, sorts="slowest", by=3)
    return markup.section("slow", "Slowest steps", markup.paragraph(note) + table, beside=_FIND)


def _chain(report: Report, whole: float) -> str:
    chain = report.chain
    if chain.by == "graph":
        note = (
            "Each step needs what the one before it made (as Ninja's graph says). However many cores there "
            f"are, this build takes {markup.took(chain.seconds)} at least; it took {markup.took(whole)}."
        )
    else:
        note = (
            "Read from the times, because Ninja's graph could not be asked: each step began when the one "
            "before it ended. It may have waited for that step, or only for a free core."
        )
    told = [step for step in chain.steps if step.seconds >= 0.01]
    longest = max((step.seconds for step in told), default=1.0)
    rows = [
        (
            markup.name_cell(shown(report.source, step.output)),
            markup.cell(kind_of(step.output)),
            markup.seconds_cell(step.seconds),
            markup.share(step.seconds / longest),
        )
        for step in told
    ]
    table = markup.html_table(("Step", "Kind", "#Time", "Length"), rows)
    return markup.section("chain", "Longest chain", markup.paragraph(note) + table)


def _kinds(steps: Sequence[Step]) -> str:
    rows = [
        (
            f"<td>{_swatch(each.kind)}{markup.text(each.kind)}</td>",
            markup.number(f"{each.count:,}", each.count),
            markup.number(markup.took(each.total), round(each.total, 3)),
            markup.seconds_cell(each.median),
            markup.seconds_cell(each.longest),
        )
        for each in by_kind(steps)
    ]
    table = markup.html_table(("Kind", "#Steps", "#Total", "#Median", "#Longest"), rows)
    return markup.section("kinds", "By kind", table)
