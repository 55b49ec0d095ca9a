"""`plan --what-if`: simulate the build of this tree under other conditions; nothing is run or written."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from torchbuild_tasks.build.history import NINJA_LOG, read_build_file, read_ninja_log, recall
from torchbuild_tasks.catalog import GIB
from torchbuild_tasks.context import decide, look, require_checkout
from torchbuild_tasks.errors import NotBuilt
from torchbuild_tasks.features.whatif.choose import (
    Answer,
    Figures,
    Scenario,
    Tree,
    answer,
    parse_scenario,
    scenario_here,
)
from torchbuild_tasks.model import BuildPlan
from torchbuild_tasks.model.history import History
from torchbuild_tasks.ninja.log import last_run
from torchbuild_tasks.ninja.progress import short_path
from torchbuild_tasks.ninja.step_times import compiler_of
from torchbuild_tasks.ninja.timeline import wall_seconds
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.text.show import columns, took
from torchbuild_tasks.verbs import Outcome

# Ninja 1.12 writes logs of version 6, and is the first to start steps on the critical path first.
_BY_CHAINS: Final = 6
_SHOWN: Final = 5
_WHY: Final = {
    "critical path": "the critical path: more machines do not help",
    "cores": "the cores of this machine",
    "jobs": "the number of jobs that this machine can feed",
    "servers": "the cores of the servers",
    "memory": "memory; with memory=GIB it is another",
}


def foresee(request: BuildRequest, text: str) -> Outcome:
    """Simulate the build as it is, and under the named conditions.

    `text` is the value of --what-if.
    """
    question = look(request, everything=False)
    parse_scenario(text, scenario_here(question))  # report a wrong word before a missing tree
    root = require_checkout(question)
    plan = decide(question)
    result = answer(question, read_tree(question, plan, root), plan.decided, text)
    return Outcome({"what_if": result}, answer_text(result))


def read_tree(question: Question, plan: BuildPlan, root: Path) -> Tree:
    """Return the input of a simulation from the build tree of a plan.

    Raises:
        NotBuilt: it was not configured, or not for Ninja, or its build.ninja is damaged.
    """
    folder = Path(plan.build_dir)
    store = question.facts.store
    compiler = compiler_of(plan.decided)
    history = recall(Path(store.folder if store else root), root, compiler)
    try:
        file = read_build_file(folder)
    except (OSError, ValueError, RecursionError) as problem:
        why = f"{problem.filename}: {problem.strerror}" if isinstance(problem, OSError) else str(problem)
        raise NotBuilt(
            f"There is no graph of Ninja to simulate: {why}.",
            looked=(f"what the build consists of: {folder / 'build.ninja'}", *_say_remembered(history)),
            next_step="Building one small target makes it: torchbuild build --target c10",
        ) from None
    if not (folder / NINJA_LOG).exists():
        return Tree(file=file, history=history)
    log = read_ninja_log(folder)
    last = last_run(log)
    wall = wall_seconds(last.steps) if last else 0.0
    return Tree(
        file=file,
        history=history,
        logged={name: step.seconds for run in log.runs for step in run.steps for name in step.outputs},
        at_once=sum(step.seconds for step in last.steps) / wall if last and wall else 0.0,
        chains=log.version >= _BY_CHAINS,
    )


def _say_remembered(history: History) -> tuple[str, ...]:
    """Return the history of builds as text, without a graph for a simulation."""
    return tuple(
        f"the builds before: {build.steps:,} steps in {took(build.seconds)}, together {took(build.work)}"
        for build in history.builds[:1]
    )


# ---------------- the result as text


def answer_text(answer: Answer) -> str:
    """Return both builds side by side, the longest chain of the second, and the sources of the figures."""
    pairs = zip(_rows(answer.here, answer.now), _rows(answer.what_if, answer.then), strict=True)
    rows = [("", "as it is", "what if"), *((name, here, there) for (name, here), (_, there) in pairs)]
    notes = "".join(f"  {note}\n" for note in answer.notes)
    return f"{columns(rows)}{_chain(answer.then)}{_say_history(answer)}{notes}"


def _rows(scenario: Scenario, figures: Figures) -> list[tuple[str, str]]:
    servers = f"{scenario.servers} of {scenario.server_cores} cores" if scenario.servers else "none"
    return [
        ("cores", f"{scenario.cores:,}"),
        ("servers", servers),
        ("memory", "no limit" if scenario.memory is None else f"{scenario.memory:.1f} GiB"),
        ("compiles from a cache", f"{figures.hits:,} ({scenario.cache:.0%})"),
        ("compiles sent away", f"{figures.sent:,}"),
        ("steps", f"{figures.steps:,}, {figures.jobs:,} at once"),
        ("wall time", took(figures.wall_seconds)),
        ("critical path", took(figures.critical_path_seconds)),
        ("all steps together", took(figures.work_seconds)),
        ("memory, at most", f"{figures.memory_peak_bytes / GIB:.1f} GiB"),
        ("limited by", figures.limited_by),
    ]


def _chain(figures: Figures) -> str:
    more = len(figures.chain) - _SHOWN
    names = [short_path(name) or name for name in figures.chain[-_SHOWN:]]
    start = f"{more} more, then " if more > 0 else ""
    why = _WHY.get(figures.limited_by, f"{figures.limited_by} of build.ninja")
    return f"  What if: limited by {why}.\n  Longest chain: {start}{' -> '.join(names)}\n"


def _say_history(answer: Answer) -> str:
    known = answer.known
    return (
        f"  Seconds of steps: {known['history']:,} as builds here took, {known['log']:,} by the log "
        f"of this build tree, {known['rows']:,} by rows of step_costs.toml.\n"
        "  Ninja's part of a build from nothing: configuring, packaging and verifying come on top.\n"
    )
