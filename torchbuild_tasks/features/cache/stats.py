"""Compute a cache's statistics of one build from its counters before and after, and format them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from torchbuild_tasks.model import CacheReport
from torchbuild_tasks.values import parse_json

# Below this share of hits a hint is given, if there were enough compilations to judge.
POOR: Final = 0.5
ENOUGH: Final = 20

# ccache's counters (--print-stats, CCACHE_STATSLOG) by their meaning.
_HITS: Final = ("direct_cache_hit", "preprocessed_cache_hit")
_MISS: Final = "cache_miss"
_SHARED: Final = "remote_storage_hit"
# Neither a hit, a miss nor a reason: counters of its levels and of the steps of a lookup.
_INNER: Final = ("local_storage_", "remote_storage_", "direct_cache_", "preprocessed_cache_", "primary_")
_NO_COMPILATION: Final = ("called_for_link", "called_for_preprocessing", "no_input_file", "disabled")
_ERRORS: Final = ("internal_error", "missing_cache_file", "error_hashing_extra_file")
_BY_LANGUAGE: Final = {".cu": "CUDA", ".c": "C/C++", ".cpp": "C/C++", ".cc": "C/C++", ".cxx": "C/C++"}
OTHER: Final = "other"
_SHOWN: Final = 5  # reasons why something was not kept
# A counter of recc's, or the time of a query ("recc.query_action_cache:71|ms"), which counts as one.
_COUNTER: Final = re.compile(r"recc\.(\w+):(\d{1,9})\|(c|ms)")


def sccache_report(before: str, after: str) -> CacheReport | None:
    """Return the difference of two outputs of `sccache --show-stats` in JSON; None if unreadable."""
    try:
        old, new = (parse_json(text)["stats"] for text in (before, after))
        return CacheReport(
            tool="sccache",
            hits=_subtract(new["cache_hits"]["counts"], old["cache_hits"]["counts"]),
            misses=_subtract(new["cache_misses"]["counts"], old["cache_misses"]["counts"]),
            not_cached=_subtract(new["not_cached"], old["not_cached"]),
            shared=_shared_hits(new) - _shared_hits(old),
            errors=_errors(new) - _errors(old),
            away=_subtract(new.get("dist_compiles") or {}, old.get("dist_compiles") or {}),
            given_back=int(new.get("dist_errors") or 0) - int(old.get("dist_errors") or 0),
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _subtract(new: Mapping[str, int], old: Mapping[str, int]) -> dict[str, int]:
    counts = {name: count - old.get(name, 0) for name, count in new.items()}
    return {name: count for name, count in counts.items() if count > 0}


def _shared_hits(stats: Mapping[str, Any]) -> int:
    levels = stats.get("multi_level") or []
    return sum(int(level.get("hits", 0)) for level in levels[1:])


def _errors(stats: Mapping[str, Any]) -> int:
    """Return the number of failed lookups and writes; after failed writes the cache does not fill."""
    counted = sum(stats["cache_errors"]["counts"].values())
    return int(counted) + int(stats.get("cache_write_errors", 0)) + int(stats.get("cache_timeouts", 0))


def recc_report(metrics: str) -> CacheReport:
    """Return the statistics in RECC_METRICS_FILE: lines of statsd, one process after the other."""
    counts = Counter[str]()
    for line in metrics.splitlines():
        if match := _COUNTER.fullmatch(line):
            counts[match[1]] += int(match[2]) if match[3] == "c" else 1
    hits = counts["action_cache_hit"]
    misses = counts["action_cache_miss"]
    links = counts["link_action_cache_hit"]
    answered = hits + misses + links + counts["link_action_cache_miss"]
    return CacheReport(
        tool="recc",
        hits={OTHER: hits} if hits else {},
        misses={OTHER: misses} if misses else {},
        shared=hits,
        errors=counts["query_action_cache"] - answered,
        links=links,
    )


def ccache_report(log: str) -> CacheReport:
    """Return the statistics in CCACHE_STATSLOG: for each command its source after `#`, then its counters."""
    hits = Counter[str]()
    misses = Counter[str]()
    others = Counter[str]()
    language = OTHER
    shared = 0
    errors = 0
    for line in log.splitlines():
        if line.startswith("#"):
            language = _language(line)
        elif line in _HITS:
            hits[language] += 1
        elif line == _MISS:
            misses[language] += 1
        elif line == _SHARED:
            shared += 1
        elif line in _ERRORS:
            errors += 1
        elif line and line not in _NO_COMPILATION and not line.startswith(_INNER):
            others[line.replace("_", " ")] += 1
    return CacheReport(
        tool="ccache", hits=hits, misses=misses, not_cached=others, shared=shared, errors=errors
    )


def ccache_difference(before: str, after: str) -> CacheReport:
    """Return the statistics from two outputs of `ccache --print-stats`, for versions before 4.3."""
    now = _counters(after)
    then = _counters(before)
    counts = _subtract(now, then)
    hits = sum(counts.get(name, 0) for name in _HITS)
    errors = sum(counts.get(name, 0) for name in _ERRORS)
    known = (*_HITS, _MISS, *_NO_COMPILATION, *_ERRORS)
    others = {
        name.replace("_", " "): count
        for name, count in counts.items()
        if name not in known and not name.startswith((*_INNER, "stats_", "cache_size", "files_", "cleanups"))
    }
    misses = counts.get(_MISS, 0)
    return CacheReport(
        tool="ccache",
        hits={OTHER: hits} if hits else {},
        misses={OTHER: misses} if misses else {},
        not_cached=others,
        shared=counts.get(_SHARED, 0),
        errors=errors,
    )


def _counters(text: str) -> dict[str, int]:
    pairs = (line.split("\t") for line in text.splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdecimal()}


def _language(line: str) -> str:
    name = line.removeprefix("#").strip().replace("\\", "/").rpartition("/")[2]
    return _BY_LANGUAGE.get("." + name.rpartition(".")[2].lower(), OTHER)


def add_reports(one: CacheReport, other: CacheReport) -> CacheReport:
    """Return the sum of two reports of one tool, for a server replaced during the build."""
    return CacheReport(
        tool=one.tool,
        hits=Counter(one.hits) + Counter(other.hits),
        misses=Counter(one.misses) + Counter(other.misses),
        not_cached=Counter(one.not_cached) + Counter(other.not_cached),
        shared=one.shared + other.shared,
        errors=one.errors + other.errors,
        away=Counter(one.away) + Counter(other.away),
        given_back=one.given_back + other.given_back,
        links=one.links + other.links,
    )


def hit_rate(report: CacheReport) -> float | None:
    """Return the share of hits among the lookups; None without lookups."""
    return report.found / report.looked if report.looked else None


def report_lines(report: CacheReport) -> tuple[str, ...]:
    """Return one cache's statistics as lines; empty without lookups."""
    rate = hit_rate(report)
    if rate is None and not report.not_cached and not report.errors:
        return ()
    line = f"{report.tool}: {report.found} hits, {report.looked - report.found} misses"
    line += f" ({rate:.0%})" if rate is not None else ""
    if len({*report.hits, *report.misses}) > 1:
        line += f" - {_by_language(report)}"
    if report.shared:
        line += f"; {report.shared} hits came from the shared cache"
    if report.links:
        line += f"; {report.links} links too"
    lines = [line]
    if report.away or report.given_back:
        lines.append(_servers_text(report))
    if report.not_cached:
        lines.append(f"{report.tool}: not kept: {_say_count(report.not_cached)}")
    if report.errors:
        lines.append(f"{report.tool}: {report.errors} of its own failures; none of them fails a build")
    return tuple(lines)


def _servers_text(report: CacheReport) -> str:
    """Return the servers that compiled for this machine, without ports."""
    each = ", ".join(f"{count} by {address.rpartition(':')[0]}" for address, count in report.away.items())
    line = f"compiled on other machines: {sum(report.away.values())}" + (f" ({each})" if each else "")
    return line + (f"; {report.given_back} more were compiled here instead" if report.given_back else "")


def _by_language(report: CacheReport) -> str:
    names = sorted({*report.hits, *report.misses})
    each = ((n, report.hits.get(n, 0), report.misses.get(n, 0)) for n in names)
    return ", ".join(f"{name} {hits} of {hits + misses}" for name, hits, misses in each)


def _say_count(counts: Mapping[str, int]) -> str:
    ordered = sorted(counts.items(), key=lambda item: -item[1])
    return ", ".join(f"{count} x {name}" for name, count in ordered[:_SHOWN])


def hint(report: CacheReport, *, first: bool, drifted: bool, complete: bool = True) -> str:
    """Return a hint about a low hit rate; "" for none.

    Args:
        report: one cache's.
        first: no build with these settings has used the folder before.
        drifted: a setting that it compares has changed (reported before the build).
        complete: all of torch was compiled in this run; of a part nothing follows.
    """
    rate = hit_rate(report)
    passed = sum(report.not_cached.values())
    if passed > ENOUGH and passed > report.looked:
        reason = max(report.not_cached.items(), key=lambda item: item[1])[0]
        return f"Most commands were passed on by {report.tool}, which cannot keep them: {reason}."
    if rate is None or rate >= POOR or report.looked < ENOUGH or drifted or not complete:
        return ""
    if first:
        return (
            f"This build has filled {report.tool}: the next clean build, also in another checkout, is fast."
        )
    return (
        f"Few hits, though {report.tool} was used with these settings before: the sources, the flags or the "
        "build type differ from what was built then, or what that made has been evicted (--cache-size)."
    )
