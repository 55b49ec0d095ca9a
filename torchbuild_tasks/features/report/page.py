"""Format the report of a build as one HTML page, without network or framework; every name is escaped.

The tables are complete without JavaScript; the script draws the timeline, sorts and searches.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from torchbuild_tasks.catalog.templates import fill
from torchbuild_tasks.model import CacheReport
from torchbuild_tasks.model.history import PastBuild, Peak
from torchbuild_tasks.ninja.log import Step, kind_of
from torchbuild_tasks.ninja.progress import short_path
from torchbuild_tasks.ninja.step_times import Difference, is_hit
from torchbuild_tasks.ninja.timeline import Chain, LaneStep, by_kind, seconds_alone, slowest, wall_seconds
from torchbuild_tasks.text.show import took
from torchbuild_tasks.text.visible import visible, visible_value
from torchbuild_tasks.text.words import clock

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
_CHANGES: Final = 30
_SAME: Final = 0.1  # a change below a tenth, or below half a second, is noise
_LEAST: Final = 0.5


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """The three files that a page is made of."""

    html: str
    style: str
    script: str


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The content of the page. Times are in seconds, memory in bytes.

    `stages` are the tool's own, with how each ended; `caches` what each compiler cache did, `hits` the
    compiles that one must have answered, by their times; `peaks` are the largest processes;
    `differences` compare with the time before, `builds` are those before, the newest first; `notes` are
    notes about missing data.
    """

    torch: str
    result: str
    when: str
    machine: str
    source: str
    log: str
    timeline: Sequence[LaneStep]
    chain: Chain
    stages: Sequence[tuple[str, float, str]] = ()
    caches: Sequence[CacheReport] = ()
    hits: int = 0
    peaks: Sequence[Peak] = ()
    differences: Sequence[Difference] = ()
    gone: Sequence[str] = ()
    builds: Sequence[PastBuild] = ()
    notes: Sequence[str] = ()

    @property
    def part(self) -> bool:
        """Say whether the build did not run to its end, so that its figures are incomplete."""
        return self.result not in ("ok", "")


def render(page: Page, report: Report) -> str:
    """Return the page."""
    steps = [each.step for each in report.timeline]
    this = f"this one, {report.result}" if report.part else "this one"
    return fill(
        page.html,
        {
            "title": escape(f"Build of torch {report.torch}"),
            "style": page.style,
            "script": page.script,
            "heading": escape(f"Build of torch {report.torch}"),
            "under": escape(" · ".join(filter(None, (report.result, report.when, report.machine)))),
            "notes": "\n".join(f'<p class="warn">{escape(note)}</p>' for note in report.notes),
            "figures": _figures(report, steps),
            "stages": _stages(report.stages),
            "legend": _legend(steps),
            "slowest": _slowest(report, steps),
            "chain": _chain(report, wall_seconds(steps)),
            "kinds": _kinds(steps),
            "memory": memory_table(report.peaks),
            "cache": cache_table(report.caches, report.hits),
            "builds": builds_table(report.builds, steps, report.hits, this),
            "changes": changes_table(report.differences, len(report.gone), report.source),
            "footer": escape(f"Source: {report.source}. Times of steps: {report.log}."),
            "data": script_json(_payload(report)),
        },
    )


def _payload(report: Report) -> dict[str, Any]:
    kinds = [each.kind for each in by_kind([each.step for each in report.timeline])]
    chain = {step.output for step in report.chain.steps}
    before = {each.output: each.before for each in report.differences}
    zero = min((each.step.start for each in report.timeline), default=0.0)
    return {
        "kinds": kinds,
        "colours": [_COLOURS.get(kind, _OTHER_COLOUR) for kind in kinds],
        "lanes": max((each.lane for each in report.timeline), default=-1) + 1,
        "compares": any(each is not None for each in before.values()),
        "wall": round(wall_seconds([each.step for each in report.timeline]), 3),
        "steps": [
            [
                short_name(report.source, each.step.output),
                kinds.index(kind_of(each.step.output)),
                each.lane,
                round(each.step.start - zero, 3),
                round(each.step.seconds, 3),
                int(each.step.output in chain),
                before.get(each.step.output),
            ]
            for each in report.timeline
        ],
    }


def _figures(report: Report, steps: Sequence[Step]) -> str:
    total = wall_seconds(steps)
    part = report.part
    work = sum(step.seconds for step in steps)
    lanes = max((each.lane for each in report.timeline), default=-1) + 1
    rows = [
        ("Steps", f"{len(steps):,}", f"at most {lanes} at once" if lanes > 1 else "one at a time"),
        ("Wall time", took(total), _of_all(report)),
        ("Work", took(work), f"{work / total:.1f} at once on average" if total else ""),
        (
            "Longest chain",
            took(report.chain.seconds),
            f"{report.chain.seconds / total:.0%} of the wall time" if total else "",
        ),
        ("One step alone", took(seconds_alone(steps)), "" if part else "more cores would not help here"),
    ]
    if hits := _hits(report, len(steps)):
        rows.append(hits)
    if report.builds:
        before = report.builds[0].seconds
        ratio = f"{total / before:.2f} of it now" if before and not part else ""
        rows.append(("The build before", took(before), ratio))
    return "\n".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}<small>{escape(more)}</small></dd></div>"
        for name, value, more in rows
    )


def _of_all(report: Report) -> str:
    """Return the stages that the wall time includes, as text; unfinished ones are not recorded."""
    if report.part:
        return f"of a part: {report.result}"
    return f"of {took(sum(row[1] for row in report.stages))} in all" if report.stages else ""


def _hits(report: Report, steps: int) -> tuple[str, str, str] | None:
    """Return the caches' own hits, else those estimated from the times."""
    if lookups := sum(each.looked for each in report.caches):
        hits = sum(each.found for each in report.caches)
        return ("Cache hits", f"{hits / lookups:.0%}", f"{hits:,} of {lookups:,} compiles")
    if not report.hits:
        return None
    return ("Cache hits", f"{report.hits:,}", f"{report.hits / steps:.0%} of the steps")


def _legend(steps: Sequence[Step]) -> str:
    return "\n".join(f"<span>{_swatch(each.kind)}{escape(each.kind)}</span>" for each in by_kind(steps))


def _swatch(kind: str) -> str:
    return f'<i style="background:var(--k{_COLOURS.get(kind, _OTHER_COLOUR)})"></i>'


def _stages(stages: Sequence[tuple[str, float, str]]) -> str:
    total = sum(seconds for _, seconds, _ in stages)
    listed = [stage for stage in stages if stage[1] >= 0.05 or stage[2] != "ok"]
    if not total or not listed:
        return ""
    parts = "".join(
        f'<span style="flex:{seconds:.3f};opacity:{(1, 0.45)[index % 2]}" title="{escape(name)}"></span>'
        for index, (name, seconds, _) in enumerate(listed)
    )
    rows = [
        (
            name_cell(name),
            cell(result, "bad" if result != "ok" else ""),
            seconds_cell(seconds),
            share(seconds / total),
        )
        for name, seconds, result in listed
    ]
    stack = f'<div class="stack" aria-hidden="true">{parts}</div>'
    table = html_table(("Stage", "Ended", "#Time", "Share"), rows)
    return section("stages", "Stages", stack + table)


def _slowest(report: Report, steps: Sequence[Step]) -> str:
    before = {each.output: each.before for each in report.differences if each.before is not None}
    zero = min((step.start for step in steps), default=0.0)
    rows = [
        (
            name_cell(short_name(report.source, step.output)),
            cell(kind_of(step.output)),
            number(clock(round(step.start - zero)), step.start - zero),
            seconds_cell(step.seconds),
            *((seconds_cell(before.get(step.output)),) if before else ()),
        )
        for step in slowest(steps, _SLOWEST)
    ]
    heads = ("Step", "Kind", "#Began", "#Time", *(("#Before",) if before else ()))
    note = f"The {len(rows)} that took longest, of {len(steps):,}." if len(steps) > len(rows) else ""
    table = html_table(heads, rows, sorts="slowest", by=3)
    return section("slow", "Slowest steps", paragraph(note) + table, control=_FIND)


def _chain(report: Report, total: float) -> str:
    chain = report.chain
    which = f"this part of the build ({report.result})" if report.part else "this build"
    if chain.by == "graph":
        note = (
            "Each step needs what the one before it made (as Ninja's graph says). However many cores there "
            f"are, {which} takes {took(chain.seconds)} at least; it took {took(total)}."
        )
    else:
        note = (
            "Read from the times, because Ninja's graph could not be read: each step began when the one "
            "before it ended. It may have waited for that step, or only for a free core."
        )
    listed = [step for step in chain.steps if step.seconds >= 0.01]
    longest = max((step.seconds for step in listed), default=1.0)
    rows = [
        (
            name_cell(short_name(report.source, step.output)),
            cell(kind_of(step.output)),
            seconds_cell(step.seconds),
            share(step.seconds / longest),
        )
        for step in listed
    ]
    table = html_table(("Step", "Kind", "#Time", "Length"), rows)
    return section("chain", "Longest chain", paragraph(note) + table)


def _kinds(steps: Sequence[Step]) -> str:
    rows = [
        (
            f"<td>{_swatch(each.kind)}{escape(each.kind)}</td>",
            number(f"{each.count:,}", each.count),
            number(took(each.total), round(each.total, 3)),
            seconds_cell(each.median),
            seconds_cell(each.longest),
        )
        for each in by_kind(steps)
    ]
    table = html_table(("Kind", "#Steps", "#Total", "#Median", "#Longest"), rows)
    return section("kinds", "By kind", table)


def short_name(source: str, output: str) -> str:
    """Return an output's path for display, relative to the checkout."""
    return short_path(output).removeprefix(f"{source.replace(chr(92), '/').rstrip('/')}/")


def memory_table(peaks: Sequence[Peak]) -> str:
    """Return the table of the largest process of each kind."""
    rows = [
        (cell(peak.kind), number(_size(peak.bytes), peak.bytes), number(f"{peak.count:,}", peak.count))
        for peak in sorted(peaks, key=lambda each: -each.bytes)
    ]
    note = "The largest process of each kind; those that ended within a fraction of a second were not seen."
    table = html_table(("Kind", "#Largest", "#Seen"), rows)
    return section("memory", "Peak memory", paragraph(note) + table) if rows else ""


def _size(size: int) -> str:
    return f"{size / 2**30:.2f} GiB" if size >= 2**30 else f"{size / 2**20:.0f} MiB"


def cache_table(caches: Sequence[CacheReport], hits: int) -> str:
    """Return the table of the compiler caches' statistics, else the estimate from the times."""
    rows = [row for report in caches for row in _cache_rows(report)]
    if rows:
        table = html_table(("What", "#Hits", "#Misses"), rows)
        return section("cache", "Compiler cache", table)
    if not hits:
        return ""
    note = (
        f"{hits:,} compiles took less than a tenth of their usual time here, so a compiler cache "
        "answered them. The record has no figures of the cache itself."
    )
    return section("cache", "Compiler cache", paragraph(note))


def _cache_rows(report: CacheReport) -> list[tuple[str, ...]]:
    """Return rows by language, then rows for compiles that were not cached, by reason."""
    rows = []
    for language in sorted({*report.hits, *report.misses}):
        hits = report.hits.get(language, 0)
        misses = report.misses.get(language, 0)
        rows.append((f"{report.tool}, {language}", f"{hits:,}", f"{misses:,}"))
    if report.shared:
        rows.append((f"{report.tool}, of these from the shared cache", f"{report.shared:,}", ""))
    for reason, count in sorted(report.not_cached.items(), key=lambda each: -each[1]):
        rows.append((f"{report.tool}, not kept: {reason}", "", f"{count:,}"))
    if report.errors:
        rows.append((f"{report.tool}, failures of its own", "", f"{report.errors:,}"))
    return [(cell(row[0]), *(number(each, each) for each in row[1:])) for row in rows]


def builds_table(builds: Sequence[PastBuild], steps: Sequence[Step], hits: int, this: str) -> str:
    """Return the table of this build and the ones before it on this machine, the newest first."""
    if not builds:
        return ""
    work = sum(step.seconds for step in steps)
    now = PastBuild(finished=this, seconds=wall_seconds(steps), steps=len(steps), work=work, hits=hits)
    rows = [
        (
            cell(build.finished.replace("T", " ").replace("+00:00", " UTC")),
            number(f"{build.steps:,}", build.steps),
            number(took(build.seconds), build.seconds),
            # A history of an older version has none.
            number(took(build.work) if build.work else "", build.work),
            number(f"{build.hits:,}" if build.hits else "", build.hits),
        )
        for build in (now, *builds)
    ]
    heads = ("Ended", "#Steps", "#Wall time", "#Work", "#Cache hits")
    columns = 5 if any(build.hits for build in (now, *builds)) else 4
    table = html_table(heads[:columns], (row[:columns] for row in rows))
    return section("builds", "Builds before", table)


def changes_table(differences: Sequence[Difference], gone: int, source: str) -> str:
    """Return the table of steps whose time changed since their last real run."""
    known = [(each, each.before, each.now) for each in differences if each.before is not None]
    new = len(differences) - len(known)
    answered = [row for row in known if is_hit(row[0].output, row[2], row[1])]
    known = [row for row in known if row not in answered]
    if not known:
        return ""
    changed = [row for row in known if abs(row[2] - row[1]) >= max(_LEAST, _SAME * row[1])]
    slower = sum(now > before for _, before, now in changed)
    then = sum(row[1] for row in known)
    since = sum(row[2] for row in known)
    note = (
        f"{len(known):,} of these steps ran before and now: {took(then)} of work then, "
        f"{took(since)} now. {slower:,} took longer by more than a tenth and half a second, "
        f"{len(changed) - slower:,} less; {new:,} are new" + (f", {gone:,} are gone." if gone else ".")
    )
    rows = [
        (
            name_cell(short_name(source, each.output)),
            seconds_cell(before),
            seconds_cell(now),
            number(f"{now - before:+.1f} s", now - before, "bad" if now > before else ""),
        )
        for each, before, now in changed[:_CHANGES]
    ]
    table = html_table(("Step", "#Before", "#Now", "#Change"), rows, sorts="changes") if rows else ""
    return section("changes", "Against the time before", paragraph(note) + table)


# ---------------- HTML: every name goes through `escape`


def script_json(value: object) -> str:
    """Return JSON that is safe in a script element."""
    data = json.dumps(visible_value(value), separators=(",", ":"))
    return data.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def escape(words: str) -> str:
    """Escape text for an HTML element or attribute."""
    return html.escape(visible(words), quote=True)


def section(id: str, title: str, inside: str, control: str = "") -> str:
    """Return a section with its heading; `inside` and `control` (right of the heading) are HTML."""
    head = f'<h2 id="h-{id}">{escape(title)}</h2>'
    head = f'<div class="bar">{head}{control}</div>' if control else head
    return f'<section aria-labelledby="h-{id}">\n{head}\n{inside}\n</section>'


def html_table(heads: Sequence[str], rows: Iterable[Sequence[str]], *, sorts: str = "", by: int = -1) -> str:
    """Return a table of cells.

    Args:
        heads: words; one that begins with # is of a column of numbers.
        rows: cells, made by the functions below.
        sorts: the table's id when its heads sort it; "" when they do not.
        by: the column that it is sorted by as it comes, downwards.
    """
    cells = "".join(_head(each, column == by) for column, each in enumerate(heads))
    body = "\n".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    kind = f' id="{sorts}" class="sorts"' if sorts else ""
    head = f"<thead><tr>{cells}</tr></thead>"
    return f'<div class="scroll"><table{kind}>{head}\n<tbody>\n{body}\n</tbody></table></div>'


def paragraph(words: str) -> str:
    """Return a grey paragraph; empty for no text."""
    return f'<p class="note">{escape(words)}</p>' if words else ""


def cell(words: str, kind: str = "") -> str:
    """Return a cell of words."""
    return f'<td class="{kind}">{escape(words)}</td>' if kind else f"<td>{escape(words)}</td>"


def name_cell(path: str) -> str:
    """Return a cell with a path: its folder in grey, the file's name in bold."""
    folder, slash, file = path.rpartition("/")
    return f'<td class="name"><span>{escape(folder + slash)}</span><b>{escape(file)}</b></td>'


def number(words: str, value: object, kind: str = "") -> str:
    """Return a cell with a number: its text, and its value for sorting."""
    return f'<td class="{f"num {kind}".strip()}" data-value="{escape(str(value))}">{escape(words)}</td>'


def seconds_cell(value: float | None) -> str:
    """Return a cell with a time, the same unit in all rows; empty for None."""
    return number("", -1) if value is None else number(f"{value:,.2f} s", round(value, 3))


def share(part: float) -> str:
    """Return a cell with a bar: 1 is all of it."""
    return f'<td class="share"><span style="width:{100 * part:.1f}%"></span></td>'


def _head(head: str, is_sorted: bool) -> str:
    kind = ' class="num"' if head.startswith("#") else ""
    order = ' aria-sort="descending"' if is_sorted else ""
    return f'<th scope="col"{kind}{order}>{escape(head.lstrip("#"))}</th>'
