"""Runs a verb for either runner: the only `except TorchbuildError`.

Results go to stdout, everything said on the way to stderr; with --json stdout holds one
JSON object and nothing else.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from torchbuild_tasks import flow
from torchbuild_tasks.errors import PlanRefused, RequirementsError, TorchbuildError, VerifyFailed
from torchbuild_tasks.fronts.output import error_object, error_text, json_text, out
from torchbuild_tasks.fronts.reporter import ConsoleReporter
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.text import show


def run_verb(verb: str, request: BuildRequest) -> int:
    """Run one verb and print what it gives.

    Returns:
        The exit code: 0, or that of the error (errors.py).
    """
    report = ConsoleReporter(quiet=request.quiet, verbose=request.verbose, silent=request.json)
    try:
        with report:
            return _run(verb)(request, report)
    except TorchbuildError as error:
        show_error(error, as_json=request.json)
        return error.exit_code


def _run(verb: str) -> Callable[[BuildRequest, ConsoleReporter], int]:
    """What runs a verb; those beside a build are read only where one is asked for."""
    if verb in _VERBS:
        return _VERBS[verb]
    from torchbuild_tasks.fronts.verbs_beside import VERBS

    return VERBS[verb]


def show_error(error: TorchbuildError, *, as_json: bool) -> None:
    """Print an error as a paragraph, or as one JSON object for a program."""
    if as_json:
        out(json_text(error_object(error)))
    else:
        sys.stderr.write(error_text(error))


def _doctor(request: BuildRequest, report: ConsoleReporter) -> int:
    facts, plan = flow.doctor(request, report)
    if request.json:
        out(json_text({"verdict": plan.verdict, "findings": plan.findings, "facts": facts}))
    else:
        out(show.facts_text(facts, verbose=request.verbose) + show.findings_text(plan.findings))
    return PlanRefused.exit_code if plan.verdict == "refuse" else 0


def _bootstrap(request: BuildRequest, report: ConsoleReporter) -> int:
    from torchbuild_tasks.features.bootstrap.verb import bootstrap_text

    made = flow.bootstrap(request, report)
    out(json_text(made) if request.json else bootstrap_text(made))
    return RequirementsError.exit_code if any(each.kind == "needed" for each in made.left) else 0


def _plan(request: BuildRequest, report: ConsoleReporter) -> int:
    plan = flow.plan(request)
    out(json_text(plan) if request.json else show.plan_text(plan, verbose=request.verbose))
    return PlanRefused.exit_code if plan.verdict == "refuse" else 0


def _env(request: BuildRequest, report: ConsoleReporter) -> int:
    plan = flow.env(request)
    out(json_text({"env_files": plan.env_files}) if request.json else show.env_text(plan, request.dry_run))
    return 0


def _build(request: BuildRequest, report: ConsoleReporter) -> int:
    if not request.watch:
        return _build_once(request, report)
    from torchbuild_tasks.features.watch.verb import watch

    return watch(request, report, _build_once)


def _build_once(request: BuildRequest, report: ConsoleReporter) -> int:
    if request.dry_run:
        return _plan(request, report)
    plan, verified = flow.build(request, report)
    if request.json:
        out(json_text({"plan": plan, "verify": verified}))
    elif verified is not None:
        out(show.report_text(verified))
    return 0


def _diagnose(request: BuildRequest, report: ConsoleReporter) -> int:
    from torchbuild_tasks.features.diagnosis.show import reading_text

    reading = flow.diagnose(request)
    out(json_text(reading) if request.json else reading_text(reading))
    return 0


def _verify(request: BuildRequest, report: ConsoleReporter) -> int:
    if request.closure:
        return _closure(request)
    verified = flow.verify(request, report)
    out(json_text(verified) if request.json else show.report_text(verified))
    failed = any(check.outcome == "failed" for check in verified.checks)
    return VerifyFailed.exit_code if failed else 0


def _closure(request: BuildRequest) -> int:
    from torchbuild_tasks.features.closure.verb import closure_text

    closure = flow.closure(request)
    out(json_text(closure) if request.json else closure_text(closure))
    broken = closure.problem or any(found.status == "error" for found in closure.breaks)
    return VerifyFailed.exit_code if broken else 0


def _clean(request: BuildRequest, report: ConsoleReporter) -> int:
    removal = flow.clean(request, report)
    if request.json:
        out(json_text(removal))
    elif not request.dry_run and removal.files:
        out(f"Removed {len(removal.files)} files and {len(removal.folders)} folders.\n")
    return 0


_VERBS: dict[str, Callable[[BuildRequest, ConsoleReporter], int]] = {
    "doctor": _doctor,
    "bootstrap": _bootstrap,
    "plan": _plan,
    "env": _env,
    "build": _build,
    "diagnose": _diagnose,
    "clean": _clean,
    "verify": _verify,
}
