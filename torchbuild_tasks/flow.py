"""A build on one page, from the first look at the machine to the verification. Read this first.

    request + facts + catalog -> plan -> stages -> manifest -> report

`look` (context.py) gathers the input of the decision, `decide` makes the plan (plan/make.py), and the
stages below carry it out. A stage takes the present state of the build (build/work.py) and returns the
next; none decides anything. A stage that fails raises, and the manifest is written in any case: a build is
resumed by planning again. Nothing here prints: a verb returns a value, and stages report progress to the
reporter.

Before it: fronts/parsing.py makes the request of the flags; fronts/run.py calls the verb, and the verb
(fronts/build_verbs.py) `build`. The compile: build/compile.py, by the route of build/install/inner_loop.py.
"""

from __future__ import annotations

import contextlib
import importlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from torchbuild_tasks.checkout import fetch_checkout, use_stored_checkout
from torchbuild_tasks.context import (
    accept,
    cache_addresses,
    decide,
    fetching_of,
    hold_named_build,
    look,
    require_checkout,
    settle_linker,
    writer,
)
from torchbuild_tasks.errors import NotBuilt, PlanRefused
from torchbuild_tasks.features.patches.choose import PATCH_RECORD
from torchbuild_tasks.features.reproducible.choose import is_reproducible
from torchbuild_tasks.model import BuildPlan
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.plan.decisions import in_last_mode
from torchbuild_tasks.plan.machine_tools import describe_brought
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.system import files, lock
from torchbuild_tasks.system.signals import interruptible
from torchbuild_tasks.values import replace

if TYPE_CHECKING:
    from torchbuild_tasks.build.work import Reporter, Work
    from torchbuild_tasks.model.record import Built, Removal, VerifyReport


class Stage(NamedTuple):
    """One stage: its title, "module:function", which is imported at its turn, and when it has to run."""

    title: str
    run: str
    when: Callable[[Work], object] = lambda work: True


def is_patched(work: Work) -> bool:
    """Say whether patches are planned, or an earlier build has applied some."""
    return bool(work.plan.patches) or has_patches(work.plan)


STAGES: Final = (
    Stage("try the patches", "features.patches.act:try_patches", is_patched),
    Stage("fetch helpers", "features.helpers.act:fetch_helpers", lambda work: work.plan.artifacts),
    Stage(
        "fetch companions",
        "features.companions.act:fetch_companions",
        lambda work: work.plan.companions,
    ),
    Stage(
        "assemble the CUDA toolkit", "features.toolkit.act:assemble_toolkit", lambda work: work.plan.toolkit
    ),
    Stage("write env files", "build.prepare:write_env_files"),
    Stage(
        "write what CMake reads first",
        "features.reproducible.act:write_cmake_file",
        lambda work: is_reproducible(work.plan),
    ),
    Stage("source the env file", "build.prepare:source_env_file"),
    Stage(
        "start the compiler cache",
        "build.compiler_cache:begin_cache",
        # Where Ninja may find nothing to do, it is started once something is (build/compile.py).
        lambda work: work.plan.way.name != "install",
    ),
    Stage("try the compilers", "build.preflight:preflight", lambda work: work.plan.preflight),
    Stage("check the build tree", "build.prepare:refresh_tree"),
    Stage("prepare Python", "build.prepare:prepare_python"),
    Stage("patch the source", "features.patches.act:apply_patches", is_patched),
    Stage("build one target", "build.target:build_target", lambda work: work.request.target),
    Stage("compile", "build.compile:build_torch"),
    Stage("remove what is stale", "build.clean:remove_stale"),
    Stage("finish the wheel", "features.provenance.act:finish_wheel", lambda work: work.plan.mode == "wheel"),
    Stage("install the wheel", "build.finish:install_wheel", lambda work: work.plan.mode == "wheel"),
    Stage("keep the built torch", "build.prepare:keep_torch"),
    Stage("stop the compiler cache", "build.compiler_cache:stop_cache", lambda work: not work.up_to_date),
    Stage("verify", "build.finish:verify_torch"),
    Stage("build companions", "features.companions.act:build_companions", lambda work: work.plan.companions),
)


def _same(*titles: str) -> tuple[Stage, ...]:
    """Return the stages of `STAGES` with these titles."""
    by_title = {stage.title: stage for stage in STAGES}
    return tuple(by_title[title] for title in titles)


# For a wheel for one of several Pythons: it is installed in a clean venv only.
CLEAN_STAGES: Final = (
    *(each for each in STAGES if each.title not in ("install the wheel", "keep the built torch", "verify")),
    Stage("try the wheel in a clean venv", "features.pythons.act:try_wheel"),
)
_FIND_WHEEL: Final = Stage("find the wheel", "features.wheel_overlay.find:find_wheel")
_LAY_WHEEL: Final = Stage("lay the wheel over the checkout", "features.wheel_overlay.act:lay_wheel")
# With --from-wheel torch is not compiled.
WHEEL_STAGES: Final = (
    _FIND_WHEEL,
    *_same("fetch companions", "prepare Python"),
    _LAY_WHEEL,
    *_same("keep the built torch", "verify", "build companions"),
)
# With --target, too, something is compiled against the wheel's libraries.
MIXED_STAGES: Final = (
    _FIND_WHEEL,
    *_same(
        "fetch helpers",
        "assemble the CUDA toolkit",
        "write env files",
        "source the env file",
        "try the compilers",
        "check the build tree",
        "prepare Python",
    ),
    _LAY_WHEEL,
    *_same("start the compiler cache"),
    Stage("compile against the wheel", "features.wheel_overlay.mixed:compile_against"),
    *_same("stop the compiler cache", "keep the built torch", "verify"),
)


def preview_build(request: BuildRequest) -> BuildPlan:
    """Return the plan as it is shown: its patches were tried in memory, its wheel was looked for.

    Nothing is changed or downloaded.
    """
    question = use_stored_checkout(look(request, everything=False))
    plan = decide(question)
    elsewhere = request.facts and not request.source
    if plan.verdict == "refuse" or elsewhere:
        return plan
    if plan.patches or has_patches(plan):
        from torchbuild_tasks.features.patches.act import require_fit

        require_fit(plan)
    if request.from_wheel:
        from torchbuild_tasks.features.wheel_overlay.preview import preview

        return preview(question, plan)
    return _with_target_looked_for(plan, request.target)


def _with_target_looked_for(plan: BuildPlan, target: str | None) -> BuildPlan:
    """Return the plan, refused where its configured tree has no such target."""
    if not target or plan.way.configure is not None:
        return plan
    from torchbuild_tasks.build.target import check_target

    wrong = tuple(check_target(Path(plan.build_dir), target))
    return replace(plan, verdict="refuse", findings=(*plan.findings, *wrong)) if wrong else plan


def changes_what_ninja_reads(plan: BuildPlan) -> bool:
    """Say whether a stage before the compile may change it, so that Ninja's early answer does not count."""
    brings = plan.patches or plan.artifacts or plan.toolkit or has_patches(plan) or is_reproducible(plan)
    return bool(brings) or plan.way.name != "install"


def has_patches(plan: BuildPlan) -> bool:
    """Say whether an earlier build has applied patches to the checkout."""
    return (Path(plan.source) / files.STATE_DIR / PATCH_RECORD).exists()


def write_env(request: BuildRequest) -> BuildPlan:
    """Write the env files of the plan, unless --dry-run."""
    from torchbuild_tasks.build.preflight import place_linker
    from torchbuild_tasks.build.prepare import write_envs

    question = use_stored_checkout(look(request, everything=False))
    if (running := question.facts.tree.running) and not request.dry_run:  # which reads these files
        raise lock.busy(Path(question.facts.tree.root), running)
    plan = accept(decide(question))
    if not request.dry_run:
        require_checkout(question)
        place_linker(plan)
        write_envs(plan)
        if is_reproducible(plan):
            from torchbuild_tasks.features.reproducible.act import write_cmake

            write_cmake(plan)
    return plan


def build(request: BuildRequest, report: Reporter, *, clean_venv: bool = False) -> Built:
    """Plan, build, record and verify.

    Outside of a checkout --torch means one in our store, which is fetched first.

    Args:
        clean_venv: a wheel is verified in a clean venv alone, and installed nowhere else.

    Raises:
        PlanRefused: the build cannot work; nothing was written.
        TorchbuildError: that of the stage that failed.
    """
    with hold_named_build(request, report):
        question = fetch_checkout(look(request, everything=False, keeps=True), report)
        if request.auto:
            from torchbuild_tasks.features.wheel_overlay.preview import settle_auto

            question = settle_auto(question, decide, fetching_of(question).store, report)
        plan = accept(decide(question))
        if request.sign:
            from torchbuild_tasks.features.provenance.act import require_key

            require_key(request.sign, plan.mode, "Add --mode wheel.")
        return build_plan(question, plan, report, clean_venv=clean_venv)


def build_plan(question: Question, plan: BuildPlan, report: Reporter, *, clean_venv: bool = False) -> Built:
    """Run the stages of an accepted plan, alone in its checkout."""
    if changes_what_ninja_reads(plan):
        from torchbuild_tasks.build.install.early import stop_asking

        stop_asking()
    with interruptible(), lock.hold(Path(plan.source), "build", report.note):
        tell_warnings(plan, report)
        if brought := describe_brought(question, plan):
            report.note(brought)
        question, plan = settle_helpers(question, plan, report)
        plan = settle_linker(question, plan, report)
        return run_stages(question, plan, report, CLEAN_STAGES if clean_venv else ())


def tell_warnings(plan: BuildPlan, report: Reporter) -> None:
    """Note the plan's warnings, with their fixes, before hours are spent."""
    for finding in plan.told:
        report.note(f"Warning: {finding.text}")
        report.note(f"  -> {finding.fix}")


def settle_helpers(question: Question, plan: BuildPlan, report: Reporter) -> tuple[Question, BuildPlan]:
    """Fetch optional helpers; plan again without those that are not available, and their variables."""
    from torchbuild_tasks.features.helpers.choose import artifact_id, list_optional, refuse_helper

    rows = list_optional(question, plan)
    for row in rows:
        from torchbuild_tasks.features.helpers.act import why_missing

        artifact = next(each for each in plan.artifacts if each.id == artifact_id(row))
        if reason := why_missing(artifact, fetching_of(question), report):
            report.note(f"{reason}; planned again without it")
            question = refuse_helper(question, row, reason)
    return question, accept(decide(question)) if rows else plan


def run_stages(
    question: Question, plan: BuildPlan, report: Reporter, stages: tuple[Stage, ...] = ()
) -> Built:
    """Run every stage, time it, and update the manifest in the build tree after each.

    `stages`: others than those of the request.

    Raises:
        TorchbuildError: the error of the stage that failed; the manifest says which.
        VerifyFailed: all stages ran and a check failed.
    """
    from torchbuild_tasks.build.ledger import Ledger, now
    from torchbuild_tasks.build.notify import notify_when_over
    from torchbuild_tasks.build.outputs import outputs_of_both_eras, recordable_outputs
    from torchbuild_tasks.build.work import Work
    from torchbuild_tasks.features.manifest.act import complete_manifest, redact, start_manifest
    from torchbuild_tasks.verify.judge import require_passed

    request = question.request
    root = Path(plan.source)
    list_outputs = outputs_of_both_eras if request.from_wheel else recordable_outputs
    outputs = list_outputs(question.catalog, plan.era)
    manifest = start_manifest(question, plan, writer(), started=now())
    ledger = Ledger(manifest, root, Path(plan.build_dir), outputs, redact)
    work = Work(
        question=question,
        plan=plan,
        report=report,
        ledger=ledger,
        fetching=fetching_of(question),
        cache_addresses=cache_addresses(question),
    )
    ledger.epilogue = lambda: complete_manifest(work)
    with notify_when_over(request, report, root), ledger, work.background:
        for stage in stages or _stages(request):
            report.stage(stage.title)
            with ledger.stage(stage.title):
                if stage.when(work):
                    work = load_stage(stage)(work)
    require_passed(work.verified, f"Every check is in the manifest: {ledger.manifest_path}")
    if plan.mode == "wheel":
        from torchbuild_tasks.features.provenance.act import write_statement

        write_statement(root, work)
    return _sum_up(work)


def _stages(request: BuildRequest) -> tuple[Stage, ...]:
    if request.mixed:
        return MIXED_STAGES
    return WHEEL_STAGES if request.from_wheel else STAGES


def _sum_up(work: Work) -> Built:
    """Return the result of the stages."""
    from torchbuild_tasks.build.work import built_wheel
    from torchbuild_tasks.model.record import Built

    manifest = work.ledger.manifest
    wheel = built_wheel(work.root)
    return Built(
        plan=work.plan,
        verified=work.verified,
        up_to_date=work.up_to_date,
        stages=manifest.stages,
        caches=manifest.caches,
        wheel=str(wheel) if wheel and work.plan.mode == "wheel" else "",
        log=str(work.ledger.log.path) if "log" in vars(work.ledger) else "",
    )


def load_stage(stage: Stage) -> Callable[[Work], Work]:
    """Return the function of a stage."""
    module, _, name = stage.run.partition(":")
    run: Callable[[Work], Work] = getattr(importlib.import_module(f"torchbuild_tasks.{module}"), name)
    return run


def plan_of_built(request: BuildRequest) -> tuple[Question, BuildPlan]:
    """Return the plan by which the torch of this request was built.

    Raises:
        PlanRefused: no Python was found.
        UsageError: the named build is not there.
        NotBuilt: nothing was built yet.
    """
    question = in_last_mode(use_stored_checkout(look(request, everything=False)))
    plan = decide(question)
    if question.settings.seen_from:
        require_checkout(question)
    if plan.environment.python == "":
        raise PlanRefused("No Python was found whose torch could be verified.", findings=plan.findings)
    if not Path(plan.environment.python).exists():
        raise NotBuilt(
            f"Nothing was built here yet: there is no {plan.environment.python}.",
            next_step="Build it: torchbuild build, or name the Python that has a torch: --python PATH",
        )
    return question, plan


def verify(request: BuildRequest, report: Reporter) -> VerifyReport:
    """Compare the installed torch with what the plan of this request promises."""
    from torchbuild_tasks.verify import session

    question, plan = plan_of_built(request)
    if running := question.facts.tree.running:
        report.note(running.said)
    report.stage("verify")
    expectations = plan.expectations
    previous = question.facts.tree.previous
    if previous and "wheel" in previous.inputs:
        from torchbuild_tasks.features.wheel_overlay.choose import wheel_expectations

        expectations = wheel_expectations(question, expectations, previous.inputs)
    with interruptible():
        found = session.verify(python=plan.environment.python, expectations=expectations, environ=os.environ)
    changes = plan.freshness.changes
    if changes and found.failed:
        from torchbuild_tasks.text.words import first_few

        names = first_few([change.name for change in changes], 4)
        report.note(f"The last build had other inputs ({names}). Where it had flags, give `verify` the same.")
    return found


def clean(request: BuildRequest, report: Reporter) -> Removal:
    """Remove what the build made, or with --patches undo the source patches; --dry-run only lists."""
    from torchbuild_tasks.build.clean import remove_build, remove_patches

    question = look(request, everything=False)
    root = require_checkout(question)
    if request.dry_run and (running := question.facts.tree.running):
        report.note(running.said)
    # A dry run needs no lock, and reports a running command.
    alone = contextlib.nullcontext() if request.dry_run else lock.hold(root, "clean", report.note)
    with interruptible(), alone:
        if request.patches:
            return remove_patches(root, report, request.dry_run)
        return remove_build(question, report)
