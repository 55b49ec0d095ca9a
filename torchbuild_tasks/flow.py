"""The whole tool on one page: every verb as the steps it takes. Read this first.

    request + facts + catalog -> plan -> stages -> record -> report

A verb returns a value and prints nothing; the fronts print it. What a verb says while
it works goes through the reporter that the front hands in.
"""

from __future__ import annotations

import os
from pathlib import Path

from torchbuild_tasks.core.build_type import choose_build_type
from torchbuild_tasks.core.cache.choose import HOW
from torchbuild_tasks.core.cuda.check_toolkit import check_toolkit
from torchbuild_tasks.core.cuda.toolkit import choose_toolkit
from torchbuild_tasks.core.env_files import encode
from torchbuild_tasks.core.helper_lines import HelperReport, check_helpers, helper_lines, part_lines
from torchbuild_tasks.core.helpers import choose_helpers
from torchbuild_tasks.core.question import Question
from torchbuild_tasks.core.table import VersionLine, version_lines
from torchbuild_tasks.effects import files, lock, made
from torchbuild_tasks.effects.signals import interruptible
from torchbuild_tasks.errors import EnvFileError, PlanRefused, UsageError
from torchbuild_tasks.model import BuildPlan, CacheState, Cluster, Facts
from torchbuild_tasks.record import VerifyReport
from torchbuild_tasks.request import BuildRequest
from torchbuild_tasks.sight import (
    accepted,
    cache_words,
    checkout,
    decide,
    look,
    network,
    our_shelf,
    settled,
)
from torchbuild_tasks.stages import Reporter, run_stages
from torchbuild_tasks.stages.cache_verbs import (
    cache_environ,
    cache_states,
    clear_caches,
    no_cache,
    serve_cache,
    until_interrupted,
)
from torchbuild_tasks.stages.clean import remove_build
from torchbuild_tasks.stages.cluster import join, run_scheduler, run_server, states
from torchbuild_tasks.stages.cluster_program import have_dist, refuse_windows
from torchbuild_tasks.stages.helpers import fetched, proved, pruned
from torchbuild_tasks.stages.linker import place_linker
from torchbuild_tasks.stages.patches import undo_patches
from torchbuild_tasks.stages.report import ReportFiles, make_report
from torchbuild_tasks.stages.watch import Watch
from torchbuild_tasks.verify.session import verify as run_verification


def doctor(request: BuildRequest) -> tuple[Facts, BuildPlan]:
    """Look at the machine and the tree; the plan carries what is wrong with them."""
    sight = look(request)
    return sight.facts, decide(sight)


def plan(request: BuildRequest) -> BuildPlan:
    """Decide everything and do nothing."""
    return decide(look(request))


def env(request: BuildRequest) -> BuildPlan:
    """Write the env files of the plan, unless --dry-run."""
    made_plan = accepted(decide(look(request)))
    if not request.dry_run:
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
    sight = look(request)
    return Watch(Path(checkout(sight)), sight.facts.tree, sight.catalog)


def verify(request: BuildRequest, report: Reporter) -> VerifyReport:
    """Hold the torch that is installed to what the plan of this request promises."""
    made_plan = decide(look(request))
    if made_plan.environment.python == "":
        raise PlanRefused("No Python was found to verify.", findings=made_plan.findings)
    report.stage("verify")
    with interruptible():
        return run_verification(
            python=made_plan.environment.python, expectations=made_plan.expectations, environ=os.environ
        )


def report(request: BuildRequest) -> ReportFiles:
    """Write the report of the last build: one HTML page, with --trace also a timeline for Perfetto."""
    sight = look(request)
    root, build_dir = Path(checkout(sight)), sight.facts.tree.build_dir
    out, trace = (Path(name).expanduser() if name else None for name in (request.out, request.trace))
    return make_report(root, Path(build_dir or root / "build"), sight.catalog, out, trace)


def clean(request: BuildRequest, report: Reporter) -> made.Removal:
    """Remove what the build made, and nothing else; lists first, --dry-run stops there.

    With --patches it undoes the source patches instead, and removes nothing.
    """
    sight = look(request)
    root = Path(checkout(sight))
    with interruptible(), lock.hold(root, "clean"):
        if request.patches:
            undo_patches(root, report, request.dry_run)
            return made.Removal(root=str(root), files=(), folders=(), kept=(), planned=0)
        return remove_build(request, sight.facts, sight.catalog, report)


def helpers(request: BuildRequest, report: Reporter) -> HelperReport:
    """List, fetch, find, verify or prune the libraries and tools that builds download."""
    sight = look(request)
    question = Question(sight.request, sight.facts, sight.catalog, sight.settings)
    toolkit = choose_toolkit(question)
    chosen = choose_helpers(question, choose_build_type(question).value, toolkit.version)
    checked = (
        *check_helpers(question, chosen),
        *(check_toolkit(question, toolkit) if toolkit.problem else ()),
    )
    if errors := tuple(finding for finding in checked if finding.status == "error"):
        raise PlanRefused("These helpers cannot be had.", findings=errors)
    fetching, artifacts = network(sight), (*chosen.artifacts, *toolkit.artifacts)
    lines = (*helper_lines(question, chosen), *part_lines(question, toolkit.artifacts))
    made_report = HelperReport(action=str(request.action), lines=lines)
    with interruptible():
        match request.action:
            case "fetch":
                return fetched(made_report, artifacts, fetching, request, report)
            case "verify":
                return proved(made_report, question, fetching)
            case "prune":
                keep = {artifact.id for artifact in artifacts} | toolkit.kept
                return pruned(made_report, keep, fetching, request, report)
    return made_report


def cache(request: BuildRequest, report: Reporter) -> tuple[CacheState, ...]:
    """Tell how full the compiler caches of a build are, empty them, or serve one for builds by hand.

    Returns:
        The caches as they are; after clear as they were before; after serve none.
    """
    sight = look(request)
    made_plan = decide(sight)
    if made_plan.cache is None:
        raise UsageError(f"This build takes no compiler cache: {no_cache(made_plan)}.", next_step=f"{HOW}.")
    environ = cache_environ(made_plan, os.environ)
    with interruptible():
        match request.action:
            case "clear":
                return clear_caches(
                    made_plan.cache, environ, lambda ask: request.yes or report.confirm(ask), report.note
                )
            case "serve":
                root, words = Path(checkout(sight)), cache_words(sight)
                serve_cache(made_plan.cache, words, environ, root, report.note, until_interrupted)
                return ()
    return cache_states(made_plan.cache, environ)


def cluster(request: BuildRequest, report: Reporter) -> tuple[Cluster, ...]:
    """Run a scheduler or a server of distributed compiles until Ctrl-C, join one, or say how they are."""
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
    """The table of torch versions, each held against this machine."""
    sight = look(request)
    return version_lines(sight.catalog, sight.facts)
