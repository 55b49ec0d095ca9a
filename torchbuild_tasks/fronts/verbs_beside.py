"""Runs the verbs beside a build and prints what they give."""

from __future__ import annotations

import sys
from collections.abc import Callable

from torchbuild_tasks import beside
from torchbuild_tasks.errors import ArchiveRefused, ClusterError, PlanRefused, UsageError
from torchbuild_tasks.features.bisect.verb import bisect_text
from torchbuild_tasks.features.cache.verb import cache_text
from torchbuild_tasks.features.cluster.verb import clusters_text
from torchbuild_tasks.features.develop.verb import Flushed, debug_text
from torchbuild_tasks.features.helpers.verb import helpers_text
from torchbuild_tasks.features.manifest.verb import compare_text, replay_text
from torchbuild_tasks.features.source.verb import source_text
from torchbuild_tasks.features.support.verb import support_text
from torchbuild_tasks.features.versions.verb import versions_text
from torchbuild_tasks.fronts.output import json_text, out
from torchbuild_tasks.fronts.reporter import ConsoleReporter
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.text import show


def _support(request: BuildRequest, report: ConsoleReporter) -> int:
    made = beside.support(request)
    out(json_text(made) if request.json else support_text(made))
    return 0


def _report(request: BuildRequest, report: ConsoleReporter) -> int:
    made = beside.report(request)
    if request.json:
        out(json_text({"page": str(made.page), "trace": made.trace and str(made.trace), "steps": made.steps}))
        return 0
    for note in made.notes:
        report.note(note)
    out("".join(f"wrote {path}\n" for path in (made.page, made.trace) if path))
    return 0


def _helpers(request: BuildRequest, report: ConsoleReporter) -> int:
    done = beside.helpers(request, report)
    out(json_text(done) if request.json else helpers_text(done))
    return ArchiveRefused.exit_code if any(finding.status == "error" for finding in done.findings) else 0


def _cache(request: BuildRequest, report: ConsoleReporter) -> int:
    states = beside.cache(request, report)
    if request.json:
        out(json_text({"action": request.action, "caches": states}))
    elif request.action == "stats":
        out(cache_text(states))
    return 0


def _cluster(request: BuildRequest, report: ConsoleReporter) -> int:
    clusters = beside.cluster(request, report)
    if request.json:
        out(json_text({"action": request.action, "clusters": clusters}))
    elif request.action in ("join", "status"):
        out(clusters_text(clusters))
    return ClusterError.exit_code if any(cluster.problem for cluster in clusters) else 0


def _versions(request: BuildRequest, report: ConsoleReporter) -> int:
    lines = beside.versions(request)
    out(json_text({"versions": lines}) if request.json else versions_text(lines, detail=bool(request.torch)))
    return 0


def _replay(request: BuildRequest, report: ConsoleReporter) -> int:
    found, verified = beside.replay(request, report)
    if request.json:
        out(json_text({"replay": found, "verify": verified}))
        return PlanRefused.exit_code if found.plan.verdict == "refuse" else 0
    for path in found.written:
        report.note(f"wrote {path}")
    if verified is not None:
        out(show.report_text(verified))
    elif not request.yes:
        out(show.plan_text(found.plan, verbose=request.verbose))
    out(replay_text(found))
    return PlanRefused.exit_code if found.plan.verdict == "refuse" else 0


def _compare(request: BuildRequest, report: ConsoleReporter) -> int:
    found = beside.compare(request)
    names = (str(request.manifest), str(request.other))
    out(
        json_text({"there": names[0], "here": names[1], "differences": found})
        if request.json
        else compare_text(found, names)
    )
    return 0


def _builds(request: BuildRequest, report: ConsoleReporter) -> int:
    answer = beside.builds(request, report)
    if request.json:
        out(json_text({"action": request.action, "answer": answer}))
    else:
        from torchbuild_tasks.features.builds.verb import builds_text

        out(builds_text(request, answer))
    return 0


def _source(request: BuildRequest, report: ConsoleReporter) -> int:
    done = beside.source(request, report)
    out(json_text(done) if request.json else source_text(done, dry_run=request.dry_run))
    return 0


def _debug_config(request: BuildRequest, report: ConsoleReporter) -> int:
    done = beside.debug_config(request)
    out(json_text(done) if request.json else debug_text(done, dry_run=request.dry_run))
    return UsageError.exit_code if any(file.problem for file in done.files) else 0


def _test(request: BuildRequest, report: ConsoleReporter) -> int:
    return _ended(request, beside.test(request, report, _through(request)))


def _bench(request: BuildRequest, report: ConsoleReporter) -> int:
    return _ended(request, beside.bench(request, report, _through(request)))


def _through(request: BuildRequest) -> Flushed:
    """Where another program's output goes: with --json to stderr, for stdout holds one object."""
    return Flushed((sys.stderr if request.json else sys.stdout).buffer)


def _ended(request: BuildRequest, code: int) -> int:
    if request.json:
        out(json_text({"exit_code": code}))
    return code


def _bisect(request: BuildRequest, report: ConsoleReporter) -> int:
    found = beside.bisect(request, report)
    if request.json:
        out(json_text({"bisect": found}))
    elif found is not None:
        out(bisect_text(found))
    return 0


VERBS: dict[str, Callable[[BuildRequest, ConsoleReporter], int]] = {
    "support": _support,
    "report": _report,
    "helpers": _helpers,
    "cache": _cache,
    "cluster": _cluster,
    "versions": _versions,
    "replay": _replay,
    "compare": _compare,
    "builds": _builds,
    "source": _source,
    "debug-config": _debug_config,
    "test": _test,
    "bench": _bench,
    "bisect": _bisect,
}
