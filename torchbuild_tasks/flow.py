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

from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.core.env_files import encode
from torchbuild_tasks.core.question import Question
from torchbuild_tasks.effects import files, lock
from torchbuild_tasks.effects.signals import interruptible
from torchbuild_tasks.errors import EnvFileError, PlanRefused
from torchbuild_tasks.model import BuildPlan, CacheState, Cluster, Facts, Reading
from torchbuild_tasks.record import VerifyReport
from torchbuild_tasks.request import BuildRequest
from torchbuild_tasks.sight import (
    PATIENCE,
    Sight,
    accepted,
    bare,
    cache_words,
    checkout,
    decide,
    examined,
    is_administrator,
    look,
    look_again,
    network,
    our_shelf,
    settled,
    writer,
)
from torchbuild_tasks.stages import Reporter, run_stages
from torchbuild_tasks.stages.linker import place_linker
from torchbuild_tasks.verify.session import verify as run_verification

if TYPE_CHECKING:
    from torchbuild_tasks.core.bootstrap import Bootstrap
    from torchbuild_tasks.core.helper_lines import HelperReport
    from torchbuild_tasks.core.manifest.compare import Difference
    from torchbuild_tasks.core.table import VersionLine
    from torchbuild_tasks.effects.made import Removal
    from torchbuild_tasks.stages.replay import Replay
    from torchbuild_tasks.stages.report import ReportFiles
    from torchbuild_tasks.stages.support import SupportFile
    from torchbuild_tasks.stages.watch import Watch

# What one verb alone needs is imported inside it, so that a build which finds nothing to do is quick.


def doctor(request: BuildRequest, report: Reporter) -> tuple[Facts, BuildPlan]:
    """Look at the machine, the tree and their surroundings; the plan carries what is wrong with them.

    With --fix what can be put right safely is, and everything is looked at again.
    """
    sight, made_plan = _examined(request)
    if request.fix and not request.facts:
        from torchbuild_tasks.core.doctor.repairs import repairs
        from torchbuild_tasks.stages.doctor import repair

        question = Question(sight.request, sight.facts, sight.catalog, sight.settings)
        with interruptible():
            done = repair(repairs(question, made_plan), report, yes=request.yes)
        if done:
            sight, made_plan = _examined(request)
    return sight.facts, made_plan


def _examined(request: BuildRequest) -> tuple[Sight, BuildPlan]:
    """What the doctor sees, and the plan with all its findings."""
    from torchbuild_tasks.core.doctor.checks import diagnosed

    sight = look(request, patience=PATIENCE)
    made_plan = decide(sight)
    if not request.facts:
        sight = examined(sight, made_plan)
    question = Question(sight.request, sight.facts, sight.catalog, sight.settings)
    return sight, diagnosed(question, made_plan)


def bootstrap(request: BuildRequest, report: Reporter) -> Bootstrap:
    """Say what the machine lacks and which commands bring it; --yes runs them and looks again."""
    from torchbuild_tasks.core.bootstrap import plan_bootstrap, require_commands

    def planned() -> Bootstrap:
        sight = look(request)
        question = Question(sight.request, sight.facts, sight.catalog, sight.settings)
        return plan_bootstrap(question, administrator=is_administrator())

    made = planned()
    if not request.yes or not made.missing or request.facts:
        return made
    from torchbuild_tasks.stages.bootstrap import install

    require_commands(made)
    with interruptible():
        install(made, report)
    return dataclasses.replace(made, ran=True, left=planned().missing)


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
    sight = look(request, everything=False)
    made_plan = accepted(decide(sight))
    if request.dry_run:
        return made_plan, None
    return _built(sight, made_plan, report)


def _built(sight: Sight, made_plan: BuildPlan, report: Reporter) -> tuple[BuildPlan, VerifyReport | None]:
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
    from torchbuild_tasks.stages.watch import Watch

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


def diagnose(request: BuildRequest) -> Reading:
    """Find the first real error of a log, and the causes that the rows know for this machine."""
    from torchbuild_tasks.core.diagnosis.machine import Machine
    from torchbuild_tasks.core.diagnosis.rows import FailureBook
    from torchbuild_tasks.stages.diagnosis import diagnose_log

    sight = look(request)
    machine = Machine(sight.facts, decide(sight), sight.catalog, built=False)
    with interruptible():
        return diagnose_log(request.log or "", FailureBook(sight.catalog.failure), machine)


def support(request: BuildRequest) -> SupportFile:
    """Write one archive for somebody else to look at; what cannot be had is noted in it."""
    from torchbuild_tasks.stages.support import Attempts, make_support

    attempts = Attempts()
    seen = attempts("look", lambda: look(request, patience=PATIENCE))
    seen = seen or attempts("look without flags and settings", lambda: bare(request))
    if seen is None:
        return make_support(request, None, None, load_catalog(), attempts, writer=writer())
    sight = seen
    made_plan = attempts("plan", lambda: decide(sight))
    if made_plan is not None:
        sight = attempts("doctor", lambda: examined(seen, made_plan)) or seen
    return make_support(request, sight.facts, made_plan, sight.catalog, attempts, writer=writer())


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
    from torchbuild_tasks.core.table import version_lines
    from torchbuild_tasks.core.torch_ref import read_word

    sight = look(request)
    lines = version_lines(sight.catalog, sight.facts)
    if not request.torch:
        return lines
    row = read_word(request.torch, sight.catalog).row
    return tuple(line for line in lines if line.version == row.version)


def replay(request: BuildRequest, report: Reporter) -> tuple[Replay, VerifyReport | None]:
    """Plan a recorded build again here, with all that differs in spite of it; --yes also builds it."""
    from torchbuild_tasks.catalog import load_catalog
    from torchbuild_tasks.stages import manifest, replay

    name, catalog = str(request.manifest), load_catalog()
    recorded = replay.load(name)
    written = replay.take_out(recorded, Path(request.out).expanduser()) if request.out else ()
    with replay.variables_of(recorded, catalog):
        sight, made_plan = look_again(request, recorded, replay.source_of(recorded, request.source))
        asked = manifest.Asked(writer(), sight.request, sight.settings, sight.facts, made_plan)
        found = replay.compared(recorded, name, asked, catalog, written)
        if not request.yes:
            return found, None
        for line in found.lines:
            report.note(line)
        return found, _built(sight, accepted(made_plan), report)[1]


def compare(request: BuildRequest) -> tuple[Difference, ...]:
    """What differs between the manifests of two builds."""
    from torchbuild_tasks.core.manifest.compare import differences
    from torchbuild_tasks.stages.replay import load

    return differences(load(str(request.manifest)), load(str(request.other)))
