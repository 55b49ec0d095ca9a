"""The build's report as one HTML page: no network, no framework, and every name escaped.

The tables are whole without JavaScript; the script draws the timeline, sorts and finds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from torchbuild_tasks.core import markup
from torchbuild_tasks.core.ninja_log import Step, kind_of
from torchbuild_tasks.core.progress import short_path
from torchbuild_tasks.core.step_history import Difference, is_hit
from torchbuild_tasks.core.timeline import Chain, Placed, alone, by_kind, slowest, wall
from torchbuild_tasks.templates import fill

_SLOWEST: Final = 25
_CHANGES: Final = 30
_SAME: Final = 0.1  # a change below a tenth, or below half a second, is noise
_LEAST: Final = 0.5
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


@dataclass(frozen=True, kw_only=True)
class Page:
    """The three files that a page is made of."""

    html: str
    style: str
    script: str


@dataclass(frozen=True, kw_only=True)
class Report:
    """All that the page shows. Times are seconds, memory is bytes.

    `stages` are the tool's own, with how each ended; `cache` rows are label and value; `memory` is the
    peak of a step of each kind; `differences` compare with the time before; `notes` are what a reader
    must know about what is missing.
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
    cache: Sequence[tuple[str, str]] = ()
    hits: int | None = None
    memory: Mapping[str, int] = field(default_factory=dict)
    differences: Sequence[Difference] = ()
    gone: Sequence[str] = ()
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
            "memory": _memory(report.memory),
            "cache": _cache(report),
            "changes": _changes(report),
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
                _shown(report, each.step.output),
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


def _shown(report: Report, output: str) -> str:
    """An output as a person knows it, from the checkout on."""
    return short_path(output).removeprefix(f"{report.source.replace(chr(92), '/').rstrip('/')}/")


def _figures(report: Report, steps: Sequence[Step]) -> str:
    whole, work = wall(steps), sum(step.seconds for step in steps)
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
    if report.hits:
        rows.append(("Cache hits", f"{report.hits:,}", f"{report.hits / len(steps):.0%} of the steps"))
    return "\n".join(
        f"<div><dt>{markup.text(name)}</dt><dd>{markup.text(value)}<small>{markup.text(more)}</small></dd></div>"
        for name, value, more in rows
    )


def _legend(steps: Sequence[Step]) -> str:
    return "\n".join(f"<span>{_swatch(each.kind)}{markup.text(each.kind)}</span>" for each in by_kind(steps))


def _swatch(kind: str) -> str:
    return f'<i style="background:var(--k{_COLOURS.get(kind, _OTHER_COLOUR)})"></i>'


def _stages(stages: Sequence[tuple[str, float, str]]) -> str:
    whole = sum(seconds for _, seconds, _ in stages)
    shown = [stage for stage in stages if stage[1] >= 0.05 or stage[2] != "ok"]
    if not whole or not shown:
        return ""
    parts = "".join(
        f'<span style="flex:{seconds:.3f};opacity:{(1, 0.45)[index % 2]}" title="{markup.text(name)}"></span>'
        for index, (name, seconds, _) in enumerate(shown)
    )
    rows = [
        (
            markup.name(name),
            markup.cell(result, "bad" if result != "ok" else ""),
            markup.seconds(seconds),
            markup.share(seconds / whole),
        )
        for name, seconds, result in shown
    ]
    stack = f'<div class="stack" aria-hidden="true">{parts}</div>'
    table = markup.table(("Stage", "Ended", "#Time", "Share"), rows)
    return markup.section("stages", "Stages", stack + table)


def _slowest(report: Report, steps: Sequence[Step]) -> str:
    before = {each.output: each.before for each in report.differences if each.before is not None}
    zero = min((step.start for step in steps), default=0.0)
    rows = [
        (
            markup.name(_shown(report, step.output)),
            markup.cell(kind_of(step.output)),
            markup.number(markup.clock(step.start - zero), step.start - zero),
            markup.seconds(step.seconds),
            *((markup.seconds(before.get(step.output)),) if before else ()),
        )
        for step in slowest(steps, _SLOWEST)
    ]
    heads = ("Step", "Kind", "#Began", "#Time", *(("#Before",) if before else ()))
    note = f"The {len(rows)} that took longest, of {len(steps):,}." if len(steps) > len(rows) else ""
    table = markup.table(heads, rows, sorts="slowest", by=3)
    return markup.section("slow", "Slowest steps", markup.note(note) + table, beside=_FIND)


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
    shown = [step for step in chain.steps if step.seconds >= 0.01]
    longest = max((step.seconds for step in shown), default=1.0)
    rows = [
        (
            markup.name(_shown(report, step.output)),
            markup.cell(kind_of(step.output)),
            markup.seconds(step.seconds),
            markup.share(step.seconds / longest),
        )
        for step in shown
    ]
    table = markup.table(("Step", "Kind", "#Time", "Length"), rows)
    return markup.section("chain", "Longest chain", markup.note(note) + table)


def _kinds(steps: Sequence[Step]) -> str:
    rows = [
        (
            f"<td>{_swatch(each.kind)}{markup.text(each.kind)}</td>",
            markup.number(f"{each.count:,}", each.count),
            markup.number(markup.took(each.total), round(each.total, 3)),
            markup.seconds(each.median),
            markup.seconds(each.longest),
        )
        for each in by_kind(steps)
    ]
    table = markup.table(("Kind", "#Steps", "#Total", "#Median", "#Longest"), rows)
    return markup.section("kinds", "By kind", table)


def _memory(memory: Mapping[str, int]) -> str:
    rows = [
        (markup.cell(kind), markup.number(f"{size / 2**30:.2f} GiB", size)) for kind, size in memory.items()
    ]
    table = markup.table(("Kind", "#Peak"), rows)
    return markup.section("memory", "Peak memory of a step", table) if rows else ""


def _cache(report: Report) -> str:
    rows = [(markup.cell(label), markup.number(value, value)) for label, value in report.cache]
    if rows:
        return markup.section("cache", "Compiler cache", markup.table(("What", "#In this build"), rows))
    if not report.hits:
        return ""
    note = (
        f"{report.hits:,} compiles took less than a tenth of their usual time here, so a compiler cache "
        "answered them. The record has no figures of the cache itself."
    )
    return markup.section("cache", "Compiler cache", markup.note(note))


def _changes(report: Report) -> str:
    both = [(each, each.before, each.now) for each in report.differences]
    known = [(each, before, now) for each, before, now in both if before is not None and now is not None]
    new = sum(before is None for _, before, _ in both)
    answered = [row for row in known if is_hit(row[0].output, row[2], row[1])]
    known = [row for row in known if row not in answered]
    if not known:
        return ""
    changed = [row for row in known if abs(row[2] - row[1]) >= max(_LEAST, _SAME * row[1])]
    slower = sum(now > before for _, before, now in changed)
    then, since = sum(row[1] for row in known), sum(row[2] for row in known)
    note = (
        f"{len(known):,} of these steps ran before and now: {markup.took(then)} of work then, "
        f"{markup.took(since)} now. {slower:,} took longer by more than a tenth and half a second, "
        f"{len(changed) - slower:,} less; {new:,} are new"
        + (f", {len(report.gone):,} are gone." if report.gone else ".")
    )
    rows = [
        (
            markup.name(_shown(report, each.output)),
            markup.seconds(before),
            markup.seconds(now),
            markup.number(f"{now - before:+.1f} s", now - before, "bad" if now > before else ""),
        )
        for each, before, now in changed[:_CHANGES]
    ]
    table = markup.table(("Step", "#Before", "#Now", "#Change"), rows, sorts="changes") if rows else ""
    return markup.section("changes", "Against the time before", markup.note(note) + table)
