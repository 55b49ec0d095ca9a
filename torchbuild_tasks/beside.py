"""The verbs beside a build: what surrounds it, what it left behind, what is shared between builds."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from torchbuild_tasks.build.work import Reporter
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.context import accepted, cache_words, checkout, decide, look, network, our_shelf, writer
from torchbuild_tasks.errors import VerifyFailed
from torchbuild_tasks.flow import built
from torchbuild_tasks.model import BuildPlan, CacheState, Cluster
from torchbuild_tasks.model.record import VerifyReport
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.system.signals import interruptible
from torchbuild_tasks.values import replace

if TYPE_CHECKING:
    from torchbuild_tasks.features.bisect.act import Found
    from torchbuild_tasks.features.develop.act import DebugConfig
    from torchbuild_tasks.features.helpers.choose import HelperReport
    from torchbuild_tasks.features.manifest.act import Replay
    from torchbuild_tasks.features.manifest.compare import Difference
    from torchbuild_tasks.features.report.act import ReportFiles
    from torchbuild_tasks.features.support.act import SupportFile
    from torchbuild_tasks.model.source import Answer, SourceReport
    from torchbuild_tasks.plan.versions import VersionLine
    from torchbuild_tasks.system.process import Sink

# What one verb alone needs is imported inside it, so that a build which finds nothing to do is quick.


def support(request: BuildRequest) -> SupportFile:
    """Write one archive for somebody else to look at; what cannot be had is noted in it."""
    from torchbuild_tasks.features.doctor.health import PATIENCE, bare, examined
    from torchbuild_tasks.features.support.act import Attempts, make_support

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
    from torchbuild_tasks.features.report.act import make_report

    sight = look(request)
    root, build_dir = Path(checkout(sight)), sight.facts.tree.build_dir
    out, trace = (Path(name).expanduser() if name else None for name in (request.out, request.trace))
    return make_report(root, Path(build_dir or root / "build"), sight.catalog, out, trace)


def helpers(request: BuildRequest, report: Reporter) -> HelperReport:
    """List, fetch, find, verify or prune the libraries and tools that builds download."""
    from torchbuild_tasks.features.helpers.act import fetched, proved, pruned, wanted

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
    from torchbuild_tasks.features.cache import act as cache_verbs
    from torchbuild_tasks.features.cluster.act import client_of

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
                away = client_of(caches.distribution)
                cache_verbs.serve_cache(caches, words, environ, root, report.note, wait, away)
                return ()
    return cache_verbs.cache_states(caches, environ)


def cluster(request: BuildRequest, report: Reporter) -> tuple[Cluster, ...]:
    """Run a scheduler or a server of distributed compiles until Ctrl-C, join one, or say how they are."""
    from torchbuild_tasks.features.cluster.act import (
        have_dist,
        join,
        refuse_windows,
        run_scheduler,
        run_server,
        states,
    )

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


def source(request: BuildRequest, report: Reporter) -> SourceReport:
    """Get, move on, describe, mend or mirror a checkout of PyTorch."""
    from torchbuild_tasks.checkout import named_checkout, source_task
    from torchbuild_tasks.features.source.act import run_source

    sight = look(request)
    with interruptible():
        return run_source(source_task(sight, report), named_checkout(sight))


def versions(request: BuildRequest) -> tuple[VersionLine, ...]:
    """The table of torch versions, each held against this machine; with --torch the row of that one."""
    from torchbuild_tasks.plan.torch_ref import read_word
    from torchbuild_tasks.plan.versions import version_lines

    sight = look(request)
    lines = version_lines(sight.catalog, sight.facts)
    if not request.torch:
        return lines
    row = read_word(request.torch, sight.catalog).row
    return tuple(line for line in lines if line.version == row.version)


def replay(request: BuildRequest, report: Reporter) -> tuple[Replay, VerifyReport | None]:
    """Plan a recorded build again here, with all that differs in spite of it; --yes also builds it."""
    from torchbuild_tasks.features.manifest import act as manifest
    from torchbuild_tasks.features.manifest import act as replay
    from torchbuild_tasks.features.manifest.verb import look_again

    name, catalog = str(request.manifest), load_catalog()
    recorded = replay.load(name)
    written = replay.write_diffs(recorded, Path(request.out).expanduser()) if request.out else ()
    with replay.variables_of(recorded, catalog):
        sight, made_plan = look_again(request, recorded, replay.source_of(recorded, request.source))
        asked = manifest.Asked(
            tool=writer(),
            request=sight.request,
            settings=sight.settings,
            facts=sight.facts,
            plan=made_plan,
        )
        found = replay.compare_plan(recorded, name, asked, catalog, written)
        if not request.yes:
            return found, None
        for line in found.lines:
            report.note(line)
        return found, built(sight, accepted(made_plan), report)[1]


def compare(request: BuildRequest) -> tuple[Difference, ...]:
    """What differs between two builds, each a manifest's file or the name of a build."""
    from torchbuild_tasks.context import named
    from torchbuild_tasks.features.manifest.act import load_named
    from torchbuild_tasks.features.manifest.compare import differences

    about = named(request)
    return differences(load_named(str(request.manifest), about), load_named(str(request.other), about))


def builds(request: BuildRequest, report: Reporter) -> Answer:
    """List the named builds, show or enter one, hold two against one another, or remove one."""
    from torchbuild_tasks.context import named
    from torchbuild_tasks.features.builds import act as stage
    from torchbuild_tasks.features.builds.choose import differences

    about = named(replace(request, name=None))
    match request.action:
        case "show":
            return stage.details(about.settings, str(request.name), about.main)
        case "use":
            return stage.entering(about.settings, request, about.main)
        case "remove":
            with interruptible():
                return stage.removed(about.settings, request, about.main, report)
        case "diff":
            one, other = (decide(look(replace(request, name=n))) for n in (request.name, request.second))
            return differences(one, other)
    return stage.listed(about.settings, about.main)


def debug_config(request: BuildRequest) -> DebugConfig:
    """Write entries for VS Code's debuggers, link compile_commands.json, check what a debugger needs."""
    from torchbuild_tasks.features.develop.act import write_debug_config
    from torchbuild_tasks.features.develop.verb import debugging

    sight = look(request)
    root, python = Path(checkout(sight)), decide(sight).environment.python
    return write_debug_config(root, debugging(sight, python), dry_run=request.dry_run)


def test(request: BuildRequest, report: Reporter, out: Sink) -> int:
    """Run upstream's own tests with the Python that got torch, what they say to `out`; their exit code."""
    from torchbuild_tasks.features.develop.act import run_tests

    sight = look(request)
    with interruptible():
        root, python = Path(checkout(sight)), decide(sight).environment.python
        return run_tests(root, python, request.only, request.words, out, report.note)


def bench(request: BuildRequest, report: Reporter, out: Sink) -> int:
    """Run upstream's operator benchmarks the same way; their exit code."""
    from torchbuild_tasks.features.develop.act import run_benchmarks

    sight = look(request)
    with interruptible():
        root, python = Path(checkout(sight)), decide(sight).environment.python
        return run_benchmarks(root, python, request.only, request.words, out, report.note)


def bisect(request: BuildRequest, report: Reporter) -> Found | None:
    """Build one commit after the other in a worktree and let a command judge; None after --reset."""
    from torchbuild_tasks.features.bisect import act as bisect
    from torchbuild_tasks.system import lock
    from torchbuild_tasks.system.git.fetch import way_for
    from torchbuild_tasks.system.git.transfer import settings

    sight = look(request)
    fetching = network(sight)
    config, offline = settings(fetching.git_mirrors), fetching.net.offline
    ground = bisect.ground_of(Path(checkout(sight)), config)
    way = way_for(ground.tree.folder, report, config=config, store=fetching.store, offline=offline)
    with interruptible(), lock.hold(ground.folder, "bisect"):
        if request.reset:
            bisect.reset(ground, report)
            return None
        memory = bisect.memory_of(ground, request)
        flags = bisect.flags_of(memory, request, ground, sight.settings.path)
        return bisect.run(ground, memory, lambda: _try_build(flags, request.yes, report), report, way)


def _try_build(flags: BuildRequest, agreed: bool, report: Reporter) -> BuildPlan:
    """Build what a bisect has checked out; what the verification says is left to the bisect's command."""
    from torchbuild_tasks.features.bisect.act import require_own_python

    sight = look(flags)
    made_plan = accepted(decide(sight))
    require_own_python(made_plan, agreed)
    try:
        built(sight, made_plan, report)
    except VerifyFailed as error:
        report.note(f"{error.what} The command decides.")
    return made_plan
