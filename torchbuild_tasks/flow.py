"""The whole tool on one page: every verb as the steps it takes. Read this first.

    request + facts + catalog -> plan -> stages -> record -> report

A verb returns a value and prints nothing; the fronts print it. What a verb says while
it works goes through the reporter that the front hands in.
"""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import TYPE_CHECKING

from torchbuild_tasks.core.env_files import encode
from torchbuild_tasks.core.question import Question
from torchbuild_tasks.core.table import VersionLine, version_lines
from torchbuild_tasks.core.torch_ref import read_word
from torchbuild_tasks.effects import files, lock
from torchbuild_tasks.effects.signals import interruptible
from torchbuild_tasks.errors import EnvFileError, PlanRefused
from torchbuild_tasks.model import BuildPlan, CacheState, Cluster, Facts, Reading
from torchbuild_tasks.record import VerifyReport
from torchbuild_tasks.request import BuildRequest
from torchbuild_tasks.sight import (
    accepted,
    at_hand,
    cache_words,
    checkout,
    decide,
    look,
    named,
    network,
    our_shelf,
    settled,
)
from torchbuild_tasks.stages import Reporter, run_stages
from torchbuild_tasks.stages.linker import place_linker
from torchbuild_tasks.verify.session import verify as run_verification

if TYPE_CHECKING:
    from torchbuild_tasks.core.helper_lines import HelperReport
    from torchbuild_tasks.effects.made import Removal
    from torchbuild_tasks.model.builds import Answer
    from torchbuild_tasks.stages.report import ReportFiles
    from torchbuild_tasks.stages.watch import Watch

# What one verb alone needs is imported inside it, so that a build which finds nothing to do is quick.


def doctor(request: BuildRequest) -> tuple[Facts, BuildPlan]:
    """Look at the machine and the tree; the plan carries what is wrong with them."""
    sight = look(request)
    return sight.facts, decide(sight)


def plan(request: BuildRequest) -> BuildPlan:
    """Decide everything and do nothing."""
    return decide(look(request))


def env(request: BuildRequest) -> BuildPlan:
    """Write the env files of the plan, unless --dry-run."""
    sight = look(request)
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

    Returns:
        The plan, and the verification's report (None when nothing had to be built).
    """
    with at_hand(request, report):
        return _build(request, report)


def _build(request: BuildRequest, report: Reporter) -> tuple[BuildPlan, VerifyReport | None]:
    sight = look(request)
    made_plan = accepted(decide(sight))
    if request.dry_run:
        return made_plan, None
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
        )


def watch(request: BuildRequest) -> Watch:
    """The saves in the checkout from now on, each of which is worth a build."""
    from torchbuild_tasks.stages.watch import Watch

    sight = look(request)
    return Watch(Path(checkout(sight)), sight.facts.tree, sight.catalog)


def verify(request: BuildRequest, report: Reporter) -> VerifyReport:
    """Hold the torch that is installed to what the plan of this request promises."""
    sight = look(request)
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


def diagnose(request: BuildRequest) -> Reading:
    """Find the first real error of a log, and the causes that the rows know for this machine."""
    from torchbuild_tasks.core.diagnosis.machine import Machine
    from torchbuild_tasks.core.diagnosis.rows import FailureBook
    from torchbuild_tasks.stages.diagnosis import diagnose_log

    sight = look(request)
    machine = Machine(sight.facts, decide(sight), sight.catalog, built=False)
    with interruptible():
        return diagnose_log(request.log or "", FailureBook(sight.catalog.failure), machine)


def report(request: BuildRequest) -> ReportFiles:
    """Write the report of the last build: one HTML page, with --trace also a timeline for Perfetto."""
    from torchbuild_tasks.stages.report import make_report

    sight = look(request)
    root, build_dir = Path(checkout(sight)), sight.facts.tree.build_dir
    out, trace = (Path(name).expanduser() if name else None for name in (request.out, request.trace))
    return make_report(root, Path(build_dir or root / "build"), sight.catalog, out, trace)


def clean(request: BuildRequest, report: Reporter) -> Removal:
    """Remove what the build made, and nothing else; lists first, --dry-run stops there.

    With --patches it undoes the source patches instead, and removes nothing.
    """
    from torchbuild_tasks.stages.clean import remove_build, remove_patches

    sight = look(request)
    root = Path(checkout(sight))
    with interruptible(), lock.hold(root, "clean"):
        if request.patches:
            return remove_patches(root, report, request.dry_run)
        return remove_build(request, sight.facts, sight.catalog, report)


def helpers(request: BuildRequest, report: Reporter) -> HelperReport:
    """List, fetch, find, verify or prune the libraries and tools that builds download."""
    from torchbuild_tasks.stages.helpers import fetched, proved, pruned, wanted

    sight = look(request)
    question = Question(sight.request, sight.facts, sight.catalog, sight.settings)
    listed, artifacts, kept = wanted(question, str(request.action))
    with interruptible():
        match request.action:
            case "fetch":
                return fetched(listed, artifacts, network(sight), request, report)
            case "verify":
                return proved(listed, question, network(sight))
            case "prune":
                return pruned(listed, kept, network(sight), request, report)
    return listed


def cache(request: BuildRequest, report: Reporter) -> tuple[CacheState, ...]:
    """Tell how full the compiler caches of a build are, empty them, or serve one for builds by hand.

    Returns:
        The caches as they are; after clear as they were before; after serve none.
    """
    from torchbuild_tasks.stages import cache_verbs

    sight = look(request)
    made_plan = decide(sight)
    caches = cache_verbs.caches_of(made_plan)
    environ = cache_verbs.cache_environ(made_plan, os.environ)
    with interruptible():
        match request.action:
            case "clear":
                return cache_verbs.clear_caches(
                    caches, environ, lambda ask: request.yes or report.confirm(ask), report.note
                )
            case "serve":
                root, words, wait = Path(checkout(sight)), cache_words(sight), cache_verbs.until_interrupted
                cache_verbs.serve_cache(caches, words, environ, root, report.note, wait)
                return ()
    return cache_verbs.cache_states(caches, environ)


def cluster(request: BuildRequest, report: Reporter) -> tuple[Cluster, ...]:
    """Run a scheduler or a server of distributed compiles until Ctrl-C, join one, or say how they are."""
    from torchbuild_tasks.stages.cluster import join, run_scheduler, run_server, states
    from torchbuild_tasks.stages.cluster_program import have_dist, refuse_windows

    sight = look(request)
    shelf = our_shelf(sight.facts)
    if request.action == "status":
        return states(shelf, request)
    refuse_windows(sight.facts)
    if request.action == "join":
        return (join(shelf, request, report.note),)
    question = Question(sight.request, sight.facts, sight.catalog, sight.settings)
    with interruptible():
        dist = have_dist(question, network(sight), report)
        (run_scheduler if request.action == "scheduler" else run_server)(shelf, dist, request, report.note)
    return ()


def versions(request: BuildRequest) -> tuple[VersionLine, ...]:
    """The table of torch versions, each held against this machine; with --torch the row of that one."""
    sight = look(request)
    lines = version_lines(sight.catalog, sight.facts)
    if not request.torch:
        return lines
    row = read_word(request.torch, sight.catalog).row
    return tuple(line for line in lines if line.version == row.version)


def builds(request: BuildRequest, report: Reporter) -> Answer:
    """List the named builds, show or enter one, hold two against one another, or remove one."""
    from torchbuild_tasks.core.build_diff import differences
    from torchbuild_tasks.stages import builds as stage

    about = named(dataclasses.replace(request, name=None))
    match request.action:
        case "show":
            return stage.details(about.settings, str(request.name), about.main)
        case "use":
            return stage.entering(about.settings, request, about.main)
        case "remove":
            with interruptible():
                return stage.removed(about.settings, request, about.main, report)
        case "diff":
            one, other = (
                decide(look(dataclasses.replace(request, name=n))) for n in (request.name, request.second)
            )
            return differences(one, other)
    return stage.listed(about.settings, about.main)
