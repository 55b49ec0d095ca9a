"""The verbs of a build itself: `plan`, `env`, `build` and `clean`; `verify` has flags of its own."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import time
from typing import TYPE_CHECKING

from torchbuild_tasks.errors import (
    BuildFailed,
    Interrupted,
    PlanRefused,
    TorchbuildError,
    UsageError,
    VerifyFailed,
)
from torchbuild_tasks.options import BuildRequest, flag_name
from torchbuild_tasks.verbs import Outcome

if TYPE_CHECKING:
    from torchbuild_tasks.build.work import Reporter
    from torchbuild_tasks.model import BuildPlan

# Imports for running a verb are inside it, because this module is also imported for the flags alone.


def plan(request: BuildRequest, report: Reporter) -> Outcome:
    """Show every decision of a build with its reason; write nothing."""
    if request.what_if is not None:
        from torchbuild_tasks.features.whatif.verb import foresee

        return foresee(request, request.what_if)
    from torchbuild_tasks import flow

    several = request.python and "," in request.python and not pathlib.Path(request.python).exists()
    planned = _plan_each(request) if several else None
    return _show_plan(request, planned or flow.preview_build(request))


def _plan_each(request: BuildRequest) -> BuildPlan | None:
    """Plan for each Python of a list; return the first, with what is found of the others, of wheels alone."""
    from torchbuild_tasks import flow
    from torchbuild_tasks.features.pythons.choose import split_pythons, with_others

    first, *others = split_pythons(request.python)
    planned = flow.preview_build(dataclasses.replace(request, python=first))
    if planned.mode != "wheel":
        return None
    each = {name: flow.preview_build(dataclasses.replace(request, python=name)) for name in others}
    return with_others(planned, first, each)


def _show_plan(request: BuildRequest, build_plan: BuildPlan) -> Outcome:
    from torchbuild_tasks.text.show import plan_text

    code = PlanRefused.exit_code if build_plan.verdict == "refuse" else 0
    return Outcome(build_plan, plan_text(build_plan, verbose=request.verbose), code)


def env(request: BuildRequest, report: Reporter) -> Outcome:
    """Write the env files of the plan."""
    from torchbuild_tasks import flow
    from torchbuild_tasks.text.show import env_text

    build_plan = flow.write_env(request)
    return Outcome({"env_files": build_plan.env_files}, env_text(build_plan, request.dry_run))


def build(request: BuildRequest, report: Reporter) -> Outcome:
    """Build, record and verify torch; with --watch after every save."""
    return (_watch if request.watch else _build)(request, report)


def _build(request: BuildRequest, report: Reporter) -> Outcome:
    from torchbuild_tasks import flow
    from torchbuild_tasks.text.show import built_text

    if "," in (request.python or ""):
        return _build_each(request, report)
    if request.dry_run:
        return _show_plan(request, flow.preview_build(request))
    began = time.monotonic()
    built = flow.build(request, report)
    seconds = time.monotonic() - began
    target = None if request.mixed else request.target
    text = built_text(built, seconds, windows=os.name == "nt", verbose=request.verbose, target=target)
    return Outcome({"plan": built.plan, "verify": built.verified}, text)


def _build_each(request: BuildRequest, report: Reporter) -> Outcome:
    """Build a wheel for each Python of a list, one after the other in the same build tree.

    All are planned before the first is built, so that a missing Python is reported at once.
    """
    from torchbuild_tasks import flow
    from torchbuild_tasks.features.pythons.act import made_wheel
    from torchbuild_tasks.features.pythons.choose import require_wheels, split_pythons, summary_text

    names = split_pythons(request.python)
    each = {name: dataclasses.replace(request, python=name) for name in names}
    others = tuple(
        flag_name(name) for name in ("watch", "target", "from_wheel", "auto") if getattr(request, name)
    )
    plans = {name: flow.preview_build(one) for name, one in each.items()}
    require_wheels(plans[names[0]].mode, str(request.python), others)
    for name, planned in plans.items():
        if request.dry_run or planned.verdict == "refuse":
            return _show_plan(each[name], planned)
    wheels = []
    for number, (name, one) in enumerate(each.items()):
        report.note(f"Python {name}, {number + 1} of {len(each)}", alone=True)
        began = time.time()
        one = dataclasses.replace(one, clean=one.clean and number == 0)
        wheels.append(made_wheel(flow.build(one, report, clean_venv=True), name, began))
    return Outcome({"wheels": wheels}, summary_text(wheels))


def _watch(request: BuildRequest, report: Reporter) -> Outcome:
    """Build now and after every save, until Ctrl-C.

    What is wrong from the start ends it; a failed build is shown, and the next save waited for.
    """
    from torchbuild_tasks.build.watch import watch_sources
    from torchbuild_tasks.context import look, require_checkout
    from torchbuild_tasks.text.words import first_few

    for name in ("json", "dry_run"):
        if getattr(request, name):
            raise UsageError(f"--watch keeps building, and {flag_name(name)} shows one thing and ends")
    question = look(request, everything=False)
    watched = watch_sources(require_checkout(question), question)
    _build_once(request, report, first=True)
    again = dataclasses.replace(request, clean=False)
    while True:
        try:
            saved = watched.wait(lambda: report.note("Waiting for a save; Ctrl-C ends this.", alone=True))
        except Interrupted:
            return Outcome(None)
        report.note(f"saved: {first_few(saved, 4)}", alone=True)
        _build_once(again, report)


def _build_once(request: BuildRequest, report: Reporter, *, first: bool = False) -> None:
    from torchbuild_tasks.fronts.output import err, error_text
    from torchbuild_tasks.fronts.run import show_outcome

    try:
        outcome = _build(request, report)
        report.stream()  # removes the live line, where the text is printed
        show_outcome(outcome, as_json=False)
    except Interrupted:
        raise
    except TorchbuildError as error:
        if first and not isinstance(error, BuildFailed | VerifyFailed):
            raise
        report.note("Not built:", alone=True)
        err(error_text(error))


def clean(request: BuildRequest, report: Reporter) -> Outcome:
    """Remove what the build made, and nothing else."""
    from torchbuild_tasks import flow
    from torchbuild_tasks.text.show import removal_text
    from torchbuild_tasks.text.words import counted

    removal = flow.clean(request, report)
    text = ""
    if request.dry_run and (removal.patches or not request.patches):
        text = removal_text(removal)
    elif removal.files:
        folders = counted(len(removal.folders), "folder")
        text = f"Removed {counted(len(removal.files), 'file')} and {folders}.\n"
    elif removal.uninstall:
        text = f"Uninstalled {removal.uninstall.because.removeprefix('the ')}.\n"
    return Outcome(removal, text)
