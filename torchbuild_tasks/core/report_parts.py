"""Parts of the report's page that stand beside the timeline: memory, caches, and the builds before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from torchbuild_tasks.core import markup
from torchbuild_tasks.model import CacheReport
from torchbuild_tasks.model.facts import PastBuild, Peak
from torchbuild_tasks.ninja.log import Step
from torchbuild_tasks.ninja.progress import short_path
from torchbuild_tasks.ninja.timeline import Difference, is_hit, wall

_CHANGES: Final = 30
_SAME: Final = 0.1  # a change below a tenth, or below half a second, is noise
_LEAST: Final = 0.5


def shown(source: str, output: str) -> str:
    """An output as a person knows it, from the checkout on."""
    return short_path(output).removeprefix(f"{source.replace(chr(92), '/').rstrip('/')}/")


def memory_table(peaks: Sequence[Peak]) -> str:
    """The most memory that one process of each kind had."""
    rows = [
        (
            markup.cell(peak.kind),
            markup.number(_size(peak.bytes), peak.bytes),
            markup.number(f"{peak.count:,}", peak.count),
        )
        for peak in sorted(peaks, key=lambda each: -each.bytes)
    ]
    note = "The largest process of each kind; those that ended within a fraction of a second were not seen."
    table = markup.html_table(("Kind", "#Largest", "#Seen"), rows)
    return markup.section("memory", "Peak memory", markup.paragraph(note) + table) if rows else ""


def _size(size: int) -> str:
    return f"{size / 2**30:.2f} GiB" if size >= 2**30 else f"{size / 2**20:.0f} MiB"


def cache_table(caches: Sequence[CacheReport], hits: int) -> str:
    """What the compiler caches did in this build; without their word, what the times show."""
    rows = [row for report in caches for row in _cache_rows(report)]
    if rows:
        table = markup.html_table(("What", "#Hits", "#Misses"), rows)
        return markup.section("cache", "Compiler cache", table)
    if not hits:
        return ""
    note = (
        f"{hits:,} compiles took less than a tenth of their usual time here, so a compiler cache "
        "answered them. The record has no figures of the cache itself."
    )
    return markup.section("cache", "Compiler cache", markup.paragraph(note))


def _cache_rows(report: CacheReport) -> list[tuple[str, ...]]:
    """By language; then what was not kept, with the reason, which has one number only."""
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
    return [(markup.cell(row[0]), *(markup.number(each, each) for each in row[1:])) for row in rows]


def builds_table(builds: Sequence[PastBuild], steps: Sequence[Step], hits: int) -> str:
    """This build and the ones before it on this machine, the newest first."""
    if not builds:
        return ""
    work = sum(step.seconds for step in steps)
    now = PastBuild(finished="this one", seconds=wall(steps), steps=len(steps), work=work, hits=hits)
    rows = [
        (
            markup.cell(build.finished.replace("T", " ").replace("+00:00", " UTC")),
            markup.number(f"{build.steps:,}", build.steps),
            markup.number(markup.took(build.seconds), build.seconds),
            # A history of an older version has none.
            markup.number(markup.took(build.work) if build.work else "", build.work),
            markup.number(f"{build.hits:,}" if build.hits else "", build.hits),
        )
        for build in (now, *builds)
    ]
    heads = ("Ended", "#Steps", "#Wall time", "#Work", "#Cache hits")
    columns = 5 if any(build.hits for build in (now, *builds)) else 4
    table = markup.html_table(heads[:columns], (row[:columns] for row in rows))
    return markup.section("builds", "Builds before", table)


def changes_table(differences: Sequence[Difference], gone: int, source: str) -> str:
    """Which steps took longer or less than the last time that they really ran.

    Args:
        differences: of each step, the greatest change first.
        gone: how many steps there were before that nothing makes any more.
        source: the checkout.
    """
    both = [(each, each.before, each.now) for each in differences]
    known = [(each, before, now) for each, before, now in both if before is not None and now is not None]
    new = sum(before is None for _, before, _ in both)
    answered = [row for row in known if is_hit(row[0].output, row[2], row[1])]
    known = [row for row in known if row not in answered]
    if not known:
        return ""
    changed = [row for row in known if abs(row[2] - row[1]) >= max(_LEAST, _SAME * row[1])]
    slower = sum(now > before for _, before, now in changed)
    then = sum(row[1] for row in known)
    since = sum(row[2] for row in known)
    note = (
        f"{len(known):,} of these steps ran before and now: {markup.took(then)} of work then, "
        f"{markup.took(since)} now. {slower:,} took longer by more than a tenth and half a second, "
        f"{len(changed) - slower:,} less; {new:,} are new" + (f", {gone:,} are gone." if gone else ".")
    )
    rows = [
        (
            markup.name_cell(shown(source, each.output)),
            markup.seconds_cell(before),
            markup.seconds_cell(now),
            markup.number(f"{now - before:+.1f} s", now - before, "bad" if now > before else ""),
        )
        for each, before, now in changed[:_CHANGES]
    ]
    table = markup.html_table(("Step", "#Before", "#Now", "#Change"), rows, sorts="changes") if rows else ""
    return markup.section("changes", "Against the time before", markup.paragraph(note) + table)
