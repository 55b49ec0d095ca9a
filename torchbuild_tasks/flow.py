"""A build on one page, from the first look to the proof, every verb as the steps it takes. Read this first.

    request + facts + catalog -> plan -> stages -> record -> report

A verb returns a value and prints nothing; the fronts print it. What a verb says while
it works goes through the reporter that the front hands in. `beside.py` has the other verbs.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from torchbuild_tasks.build.linker import place_linker
from torchbuild_tasks.build.run import run_stages
from torchbuild_tasks.build.work import Reporter
from torchbuild_tasks.checkout import have_source, here
from torchbuild_tasks.context import (
    Sight,
    accepted,
    at_hand,
    cache_words,
    checkout,
    decide,
    look,
    network,
    settled,
    writer,
)
from torchbuild_tasks.errors import EnvFileError, PlanRefused
from torchbuild_tasks.features.patches.act import fit
from torchbuild_tasks.model import BuildPlan, Facts, Reading
from torchbuild_tasks.model.record import VerifyReport
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.plan.env_files import encode
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.system import files, lock
from torchbuild_tasks.system.signals import interruptible
from torchbuild_tasks.values import replace
from torchbuild_tasks.verify.session import verify as run_verification

if TYPE_CHECKING:
    from torchbuild_tasks.build.owned import Removal
    from torchbuild_tasks.features.bootstrap.choose import Bootstrap
    from torchbuild_tasks.features.watch.act import Watch
    from torchbuild_tasks.model.closure import Closure

# What one verb alone needs is imported inside it, so that a build which finds nothing to do is quick.


def doctor(request: BuildRequest, report: Reporter) -> tuple[Facts, BuildPlan]:
    """Look at the machine, the tree and their surroundings; the plan carries what is wrong with them.

    With --fix what can be put right safely is, and everything is looked at again.
    """
    sight, made_plan = _examined(request)
    if request.fix and not request.facts:
        from torchbuild_tasks.features.doctor.act import repair
        from torchbuild_tasks.features.doctor.choose import repairs

        question = Question(sight.request, sight.facts, sight.catalog, sight.settings)
        with interruptible():
            done = repair(repairs(question, made_plan), report, yes=request.yes)
        if done:
            sight, made_plan = _examined(request)
    return sight.facts, made_plan


def _examined(request: BuildRequest) -> tuple[Sight, BuildPlan]:
    """What the doctor sees, and the plan with all its findings."""
    from torchbuild_tasks.features.doctor.choose import diagnosed
    from torchbuild_tasks.features.doctor.health import PATIENCE, examined

    sight = look(request, patience=PATIENCE)
    made_plan = decide(sight)
    if not request.facts:
        sight = examined(sight, made_plan)
    question = Question(sight.request, sight.facts, sight.catalog, sight.settings)
    return sight, diagnosed(question, made_plan)


def bootstrap(request: BuildRequest, report: Reporter) -> Bootstrap:
    """Say what the machine lacks and which commands bring it; --yes runs them and looks again."""
    from torchbuild_tasks.features.bootstrap.choose import plan_bootstrap, require_commands
    from torchbuild_tasks.features.doctor.health import is_administrator

    def planned() -> Bootstrap:
        sight = look(request)
        question = Question(sight.request, sight.facts, sight.catalog, sight.settings)
        return plan_bootstrap(question, administrator=is_administrator())

    made = planned()
    if not request.yes or not made.missing or request.facts:
        return made
    from torchbuild_tasks.features.bootstrap.act import install

    require_commands(made)
    with interruptible():
        install(made, report)
    return replace(made, ran=True, left=planned().missing)


def plan(request: BuildRequest) -> BuildPlan:
    """Decide everything and do nothing; patches are tried in memory."""
    made_plan = decide(here(look(request)))
    if made_plan.verdict != "refuse" and not request.facts:
        fit(made_plan)
    return made_plan


def env(request: BuildRequest) -> BuildPlan:
    """Write the env files of the plan, unless --dry-run."""
    sight = here(look(request))
    made_plan = accepted(decide(sight))
    if not request.dry_run:
        checkout(sight)
        place_linker(made_plan)
        for env_file in made_plan.env_files:
            data = encode(env_file.shell, env_file.text)
            files.write_atomic(Path(env_file.path), data, error=EnvFileError)
    return made_plan


def build(request: BuildRequest, report: Reporter) -> tuple[BuildPlan, VerifyReport | None]:
    """Plan, build, record and verify; --dry-run stops after the plan.

    Outside of a checkout --torch means one of ours, which is got first.

    Returns:
        The plan, and the verification's report (None when nothing had to be built).
    """
    with at_hand(request, report):
        return _build(request, report)


def _build(request: BuildRequest, report: Reporter) -> tuple[BuildPlan, VerifyReport | None]:
    sight = look(request, everything=False)
    if not request.dry_run:
        sight = have_source(sight, report)
    made_plan = accepted(decide(sight))
    if request.dry_run:
        fit(made_plan)
        return made_plan, None
    return built(sight, made_plan, report)


def built(sight: Sight, made_plan: BuildPlan, report: Reporter) -> tuple[BuildPlan, VerifyReport | None]:
    """Run the stages of an accepted plan, alone in its checkout."""
    with interruptible(), lock.hold(Path(made_plan.source), "build"):
        made_plan = settled(sight, made_plan, report)
        return made_plan, run_stages(
            sight.request,
            sight.facts,
            made_plan,
            sight.catalog,
            report,
            network(sight),
            cache_words=cache_words(sight),
            settings=sight.settings,
            writer=writer(),
        )


def watch(request: BuildRequest) -> Watch:
    """The saves in the checkout from now on, each of which is worth a build."""
    from torchbuild_tasks.features.watch.act import Watch

    sight = look(request)
    return Watch(Path(checkout(sight)), sight.facts.tree, sight.catalog)


def verify(request: BuildRequest, report: Reporter) -> VerifyReport:
    """Hold the torch that is installed to what the plan of this request promises."""
    sight = here(look(request))
    made_plan = decide(sight)
    if sight.settings.seen_from:
        checkout(sight)
    if made_plan.environment.python == "":
        raise PlanRefused("No Python was found to verify.", findings=made_plan.findings)
    report.stage("verify")
    with interruptible():
        return run_verification(
            python=made_plan.environment.python, expectations=made_plan.expectations, environ=os.environ
        )


def closure(request: BuildRequest) -> Closure:
    """Every library that `import torch` loads and where it is found, without loading one."""
    from torchbuild_tasks.features.closure.act import find_closure

    with interruptible():
        return find_closure(decide(look(request)).environment.python, os.environ)


def diagnose(request: BuildRequest) -> Reading:
    """Find the first real error of a log, and the causes that the rows know for this machine."""
    from torchbuild_tasks.catalog.failures import FailureBook
    from torchbuild_tasks.features.diagnosis.act import diagnose_log
    from torchbuild_tasks.features.diagnosis.choose import Machine

    sight = look(request)
    machine = Machine(sight.facts, decide(sight), sight.catalog, built=False)
    with interruptible():
        return diagnose_log(request.log or "", FailureBook(sight.catalog.failure), machine)


def clean(request: BuildRequest, report: Reporter) -> Removal:
    """Remove what the build made, and nothing else; lists first, --dry-run stops there.

    With --patches it undoes the source patches instead, and removes nothing.
    """
    from torchbuild_tasks.build.clean import remove_build, remove_patches

    sight = look(request)
    root = Path(checkout(sight))
    with interruptible(), lock.hold(root, "clean"):
        if request.patches:
            return remove_patches(root, report, request.dry_run)
        return remove_build(request, sight.facts, sight.catalog, report)
