"""Runs a verb for either runner: the only `except TorchbuildError`, the only printing.

Results go to stdout, everything said on the way to stderr; with --json stdout holds one
JSON object and nothing else.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from torchbuild_tasks import beside, flow
from torchbuild_tasks.codec import dumps
from torchbuild_tasks.errors import (
    ArchiveRefused,
    ClusterError,
    PlanRefused,
    RequirementsError,
    TorchbuildError,
    UsageError,
    VerifyFailed,
)
from torchbuild_tasks.fronts import show
from torchbuild_tasks.fronts.paragraph import error_object, error_text
from torchbuild_tasks.fronts.reporter import ConsoleReporter
from torchbuild_tasks.fronts.show_bisect import bisect_text
from torchbuild_tasks.fronts.show_bootstrap import bootstrap_text
from torchbuild_tasks.fronts.show_cache import cache_text
from torchbuild_tasks.fronts.show_cluster import clusters_text
from torchbuild_tasks.fronts.show_debug import Flushed, debug_text
from torchbuild_tasks.fronts.show_diagnosis import reading_text
from torchbuild_tasks.fronts.show_helpers import helpers_text
from torchbuild_tasks.fronts.show_manifest import compare_text, replay_text
from torchbuild_tasks.fronts.show_source import source_text
from torchbuild_tasks.fronts.show_support import support_text
from torchbuild_tasks.fronts.show_versions import versions_text
from torchbuild_tasks.fronts.watching import watch
from torchbuild_tasks.request import BuildRequest


def run_verb(verb: str, request: BuildRequest) -> int:
    """Run one verb and print what it gives.

    Returns:
        The exit code: 0, or that of the error (errors.py).
    """
    report = ConsoleReporter(quiet=request.quiet, verbose=request.verbose, silent=request.json)
    try:
        with report:
            return _VERBS[verb](request, report)
    except TorchbuildError as error:
        show_error(error, as_json=request.json)
        return error.exit_code


def show_error(error: TorchbuildError, *, as_json: bool) -> None:
    """Print an error as a paragraph, or as one JSON object for a program."""
    if as_json:
        _out(_json(error_object(error)))
    else:
        sys.stderr.write(error_text(error))


def _doctor(request: BuildRequest, report: ConsoleReporter) -> int:
    facts, plan = flow.doctor(request, report)
    if request.json:
        _out(_json({"verdict": plan.verdict, "findings": plan.findings, "facts": facts}))
    else:
        _out(show.facts_text(facts, verbose=request.verbose) + show.findings_text(plan.findings))
    return PlanRefused.exit_code if plan.verdict == "refuse" else 0


def _bootstrap(request: BuildRequest, report: ConsoleReporter) -> int:
    made = flow.bootstrap(request, report)
    _out(_json(made) if request.json else bootstrap_text(made))
    return RequirementsError.exit_code if any(each.kind == "needed" for each in made.left) else 0


def _plan(request: BuildRequest, report: ConsoleReporter) -> int:
    plan = flow.plan(request)
    _out(_json(plan) if request.json else show.plan_text(plan, verbose=request.verbose))
    return PlanRefused.exit_code if plan.verdict == "refuse" else 0


def _env(request: BuildRequest, report: ConsoleReporter) -> int:
    plan = flow.env(request)
    _out(_json({"env_files": plan.env_files}) if request.json else show.env_text(plan, request.dry_run))
    return 0


def _build(request: BuildRequest, report: ConsoleReporter) -> int:
    return watch(request, report, _build_once) if request.watch else _build_once(request, report)


def _build_once(request: BuildRequest, report: ConsoleReporter) -> int:
    if request.dry_run:
        return _plan(request, report)
    plan, verified = flow.build(request, report)
    if request.json:
        _out(_json({"plan": plan, "verify": verified}))
    elif verified is not None:
        _out(show.report_text(verified))
    return 0


def _diagnose(request: BuildRequest, report: ConsoleReporter) -> int:
    reading = flow.diagnose(request)
    _out(_json(reading) if request.json else reading_text(reading))
    return 0


def _support(request: BuildRequest, report: ConsoleReporter) -> int:
    made = beside.support(request)
    _out(_json(made) if request.json else support_text(made))
    return 0


def _report(request: BuildRequest, report: ConsoleReporter) -> int:
    made = beside.report(request)
    if request.json:
        _out(_json({"page": str(made.page), "trace": made.trace and str(made.trace), "steps": made.steps}))
        return 0
    for note in made.notes:
        report.note(note)
    _out("".join(f"wrote {path}\n" for path in (made.page, made.trace) if path))
    return 0


def _verify(request: BuildRequest, report: ConsoleReporter) -> int:
    if request.closure:
        return _closure(request)
    verified = flow.verify(request, report)
    _out(_json(verified) if request.json else show.report_text(verified))
    failed = any(check.outcome == "failed" for check in verified.checks)
    return VerifyFailed.exit_code if failed else 0


def _closure(request: BuildRequest) -> int:
    from torchbuild_tasks.fronts.show_closure import closure_text

    closure = flow.closure(request)
    _out(_json(closure) if request.json else closure_text(closure))
    broken = closure.problem or any(found.status == "error" for found in closure.breaks)
    return VerifyFailed.exit_code if broken else 0


def _clean(request: BuildRequest, report: ConsoleReporter) -> int:
    removal = flow.clean(request, report)
    if request.json:
        _out(_json(removal))
    elif not request.dry_run and removal.files:
        _out(f"Removed {len(removal.files)} files and {len(removal.folders)} folders.\n")
    return 0


def _helpers(request: BuildRequest, report: ConsoleReporter) -> int:
    done = beside.helpers(request, report)
    _out(_json(done) if request.json else helpers_text(done))
    return ArchiveRefused.exit_code if any(finding.status == "error" for finding in done.findings) else 0


def _cache(request: BuildRequest, report: ConsoleReporter) -> int:
    states = beside.cache(request, report)
    if request.json:
        _out(_json({"action": request.action, "caches": states}))
    elif request.action == "stats":
        _out(cache_text(states))
    return 0


def _cluster(request: BuildRequest, report: ConsoleReporter) -> int:
    clusters = beside.cluster(request, report)
    if request.json:
        _out(_json({"action": request.action, "clusters": clusters}))
    elif request.action in ("join", "status"):
        _out(clusters_text(clusters))
    return ClusterError.exit_code if any(cluster.problem for cluster in clusters) else 0


def _versions(request: BuildRequest, report: ConsoleReporter) -> int:
    lines = beside.versions(request)
    _out(_json({"versions": lines}) if request.json else versions_text(lines, detail=bool(request.torch)))
    return 0


def _replay(request: BuildRequest, report: ConsoleReporter) -> int:
    found, verified = beside.replay(request, report)
    if request.json:
        _out(_json({"replay": found, "verify": verified}))
        return PlanRefused.exit_code if found.plan.verdict == "refuse" else 0
    for path in found.written:
        report.note(f"wrote {path}")
    if verified is not None:
        _out(show.report_text(verified))
    elif not request.yes:
        _out(show.plan_text(found.plan, verbose=request.verbose))
    _out(replay_text(found))
    return PlanRefused.exit_code if found.plan.verdict == "refuse" else 0


def _compare(request: BuildRequest, report: ConsoleReporter) -> int:
    found = beside.compare(request)
    names = (str(request.manifest), str(request.other))
    _out(
        _json({"there": names[0], "here": names[1], "differences": found})
        if request.json
        else compare_text(found, names)
    )
    return 0


def _builds(request: BuildRequest, report: ConsoleReporter) -> int:
    answer = beside.builds(request, report)
    if request.json:
        _out(_json({"action": request.action, "answer": answer}))
    else:
        from torchbuild_tasks.fronts.show_builds import builds_text

        _out(builds_text(request, answer))
    return 0


def _source(request: BuildRequest, report: ConsoleReporter) -> int:
    done = beside.source(request, report)
    _out(_json(done) if request.json else source_text(done, dry_run=request.dry_run))
    return 0


def _debug_config(request: BuildRequest, report: ConsoleReporter) -> int:
    done = beside.debug_config(request)
    _out(_json(done) if request.json else debug_text(done, dry_run=request.dry_run))
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
        _out(_json({"exit_code": code}))
    return code


def _bisect(request: BuildRequest, report: ConsoleReporter) -> int:
    found = beside.bisect(request, report)
    if request.json:
        _out(_json({"bisect": found}))
    elif found is not None:
        _out(bisect_text(found))
    return 0


_VERBS: dict[str, Callable[[BuildRequest, ConsoleReporter], int]] = {
    "doctor": _doctor,
    "bootstrap": _bootstrap,
    "plan": _plan,
    "env": _env,
    "build": _build,
    "diagnose": _diagnose,
    "support": _support,
    "report": _report,
    "clean": _clean,
    "verify": _verify,
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


def _json(value: object) -> str:
    """JSON that any program can read, also from a pipe on Windows, which is no UTF-8 there."""
    return dumps(value, ascii=(sys.stdout.encoding or "").lower() not in ("utf-8", "utf8"))


def _out(text: str) -> None:
    """Print a result; a letter that the code page of a pipe lacks is escaped."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
    sys.stdout.flush()
