"""Simulate a build under other conditions: the jobs of its graph, by rows and history."""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from torchbuild_tasks.catalog import GIB, Catalog
from torchbuild_tasks.catalog.match import memory_row
from torchbuild_tasks.catalog.rows import CacheRow, StepCostRow
from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.features.cluster.choose import FED, PIPES, jobs_away
from torchbuild_tasks.features.cluster.choose import NAME as DISTRIBUTED
from torchbuild_tasks.model.history import History
from torchbuild_tasks.ninja.build_file import BuildFile, Edge
from torchbuild_tasks.ninja.log import kind_of
from torchbuild_tasks.ninja.schedule import Job, Machine, Schedule, simulate
from torchbuild_tasks.ninja.step_times import CACHEABLE, costs, is_hit
from torchbuild_tasks.ninja.time_left import cost_row, scale_of_rows
from torchbuild_tasks.plan.jobs import job_size, usable_cores, usable_memory
from torchbuild_tasks.plan.names import FALSE_WORDS, TRUE_WORDS
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.plan.submodules import Needs
from torchbuild_tasks.text.words import did_you_mean
from torchbuild_tasks.values import replace

FLAG: Final = "--what-if"
# Each key with its smallest and largest value, and its meaning.
_KEYS: Final = {
    "cores": (1, 1_000_000, "how many cores this machine has"),
    "memory": (0.1, 1_000_000, "GiB that its jobs may take"),
    "cache": (0.0, 1.0, "the share of compiles that a compiler cache answers"),
    "servers": (0, 100_000, "how many machines compile for it"),
    "server_cores": (1, 1_000_000, "how many cores each of these has"),
}
_WHOLE: Final = ("cores", "servers", "server_cores")
_SWITCH: Final = re.compile(r"[A-Z][A-Z0-9_]*")
_TARGET: Final = "install"
_EXAMPLE: Final = f"Write for example: {FLAG} cores=64,cache=0.9,servers=8,USE_DISTRIBUTED=0"


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """The conditions of a build. `memory` is in GiB, None for no limit; `switches` those that change."""

    cores: int = 1
    memory: float | None = None
    cache: float = 0.0
    servers: int = 0
    server_cores: int = 1
    switches: Mapping[str, str] = msgspec.field(default_factory=dict)


class Tree(msgspec.Struct, frozen=True, kw_only=True):
    """The input of a simulation: the graph, this machine's history, the times in the tree's log.

    `at_once` is how many steps ran at once in that log; `chains` says how this Ninja sorts.
    """

    file: BuildFile
    history: History
    logged: Mapping[str, float] = msgspec.field(default_factory=dict)
    at_once: float = 0.0
    chains: bool = True


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a simulation; memory is an upper bound: each job counts as the largest of its kind.

    `limited_by` is the longest of the bounds, `chain` has the outputs along the longest chain.
    """

    wall_seconds: float
    critical_path_seconds: float
    work_seconds: float
    memory_peak_bytes: int
    limited_by: str
    steps: int
    hits: int
    sent: int
    jobs: int
    bounds_seconds: Mapping[str, float]
    chain: tuple[str, ...] = ()


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """Both simulated builds; `known` counts the steps by the source of their times."""

    here: Scenario
    what_if: Scenario
    now: Figures
    then: Figures
    known: Mapping[str, int]
    notes: tuple[str, ...] = ()


# ---------------- scenarios


def scenario_here(question: Question) -> Scenario:
    """Return the conditions of a full build on this machine without a cache."""
    cores = usable_cores(question.facts.cpu)[0]
    room = usable_memory(question.facts.memory)
    cluster = question.facts.cluster
    each = cluster.cpus // cluster.servers if cluster and cluster.servers else cores
    return Scenario(cores=cores, memory=room and room[0] / GIB, server_cores=max(1, each))


def parse_scenario(text: str, here: Scenario) -> Scenario:
    """Return the named conditions; others are as on this machine.

    Raises:
        UsageError: a word, a value, or one thing twice.
    """
    values: dict[str, Any] = {}
    switches: dict[str, str] = {}
    for item in text.split(","):
        if not item.strip():
            raise _wrong(
                "there is nothing before or behind one of its commas" if "," in text else "it is empty"
            )
        key, equals, value = (part.strip() for part in item.partition("="))
        if not equals or not key:
            raise _wrong(f"{item.strip()!r} names no value")
        if key in values or key in switches:
            raise _wrong(f"{key} is named twice")
        if key in _KEYS:
            values[key] = _number(key, value)
        elif not _SWITCH.fullmatch(key):
            raise _wrong(f"{key} is not one of {', '.join(_KEYS)}{did_you_mean(key, _KEYS)}")
        elif value.upper() not in TRUE_WORDS | FALSE_WORDS:
            raise _wrong(f"{key}={value}: only what is switched on or off can be foreseen, so 1 or 0")
        else:
            switches[key] = "0" if value.upper() in FALSE_WORDS else "1"
    if "server_cores" in values and not values.get("servers"):
        raise _wrong("server_cores are those of servers, and none are named")
    return replace(here, **values, switches=switches)


def _number(key: str, value: str) -> float:
    least, most, what = _KEYS[key]
    try:
        number = int(value) if key in _WHOLE else float(value)
    except ValueError:
        number = math.nan
    if not least <= number <= most:
        kind = "a whole number" if key in _WHOLE else "a number"
        raise _wrong(f"{key}={value}: {what} is {kind} from {least:g} to {most:,}")
    return number


def _wrong(what: str) -> UsageError:
    return UsageError(f"{FLAG}: {what}", next_step=_EXAMPLE)


# ---------------- simulation


class Build(msgspec.Struct, frozen=True, kw_only=True):
    """All steps of a build, each after its inputs; `sizes` are bytes by kind of step."""

    edges: tuple[Edge, ...]
    order: tuple[int, ...]
    before: tuple[tuple[int, ...], ...]
    seconds: tuple[float, ...]
    sizes: Mapping[str, int]


def answer(question: Question, tree: Tree, choices: Mapping[str, str], text: str) -> Answer:
    """Return the simulations of a full build here, and under other conditions.

    Args:
        question: the request, the facts, the rows.
        tree: what is known of the build.
        choices: of the plan, by name.
        text: the value of the flag.
    """
    here = scenario_here(question)
    what_if = parse_scenario(text, here)
    order = tree.file.find_needed_edges(targets(tree.file, question.request.target))
    edges = tuple(tree.file.edges[each] for each in order)
    producers = {output: at for at, edge in enumerate(edges) for output in edge.outputs}
    cores = math.inf if choices.get(DISTRIBUTED, "none") != "none" else here.cores
    seconds, known = step_seconds(edges, tree, question.catalog.step_cost, cores)
    build = Build(
        edges=edges,
        order=tuple(order),
        before=tuple(
            tuple(
                {producers[name] for name in edge.inputs if producers.get(name, at) < at}
            )  # the graph has no cycle; Ninja refuses one
            for at, edge in enumerate(edges)
        ),
        seconds=seconds,
        sizes=_sizes(question, edges, choices.get("build type", "")),
    )
    out, notes = find_skipped_steps(question, build, what_if.switches)
    now = _figures(question, tree, choices, build, here, frozenset())
    then = _figures(question, tree, choices, build, what_if, out)
    if then.jobs > PIPES:
        notes += (
            f"Ninja keeps a pipe open for each job: `ulimit -n` must be well above {then.jobs:,} there",
        )
    return Answer(here=here, what_if=what_if, now=now, then=then, known=known, notes=notes)


def targets(file: BuildFile, named: str | None) -> tuple[str, ...]:
    """Return the targets of the build: the named one, else `install`, else Ninja's default."""
    outputs = {output for edge in file.edges for output in edge.outputs}
    if named and named not in outputs:
        raise UsageError(
            f"Nothing in build.ninja makes {named}{did_you_mean(named, outputs)}",
            next_step="Name a target of this build tree, or leave --target out for the whole build.",
        )
    if named or _TARGET in outputs:
        return (named or _TARGET,)
    return file.targets


def step_seconds(
    edges: Sequence[Edge], tree: Tree, rows: Sequence[StepCostRow], cores: float
) -> tuple[tuple[float, ...], dict[str, int]]:
    """Return the time of a real run of each step, and the number of steps by source of their time.

    Where more steps ran at once than there are cores, each had only its share of one.
    """
    last = tree.history.builds[0] if tree.history.builds else None
    share = min(1.0, cores * last.seconds / last.work) if last and last.work else 1.0
    history = {name: each * share for name, each in costs(tree.history).items()}
    share = min(1.0, cores / tree.at_once) if tree.at_once else 1.0
    logged = {name: each * share for name, each in tree.logged.items()}
    scale = scale_of_rows({**logged, **history}, rows)
    seconds = []
    known = dict.fromkeys(("history", "log", "rows"), 0)
    for edge in edges:
        name = next((each for each in edge.outputs if each in history or each in logged), edge.outputs[0])
        source = "history" if name in history else "log" if name in logged else "rows"
        row = cost_row(name, rows)
        guessed = row.seconds * scale if row else 0.0
        seconds.append(0.0 if edge.phony else history.get(name, logged.get(name, guessed)))
        known[source] += not edge.phony
    return tuple(seconds), known


def _sizes(question: Question, edges: Iterable[Edge], build_type: str) -> dict[str, int]:
    """Return the bytes of the largest job of each kind; unknown for steps that only write files."""
    sizes = {}
    for kind in {kind_of(edge.outputs[0]) for edge in edges}:
        row = "nvcc" if kind in ("CUDA", "HIP") else "c++"
        counts = kind in CACHEABLE or kind == "link"
        sizes[kind] = int(job_size(question, row, build_type).gib * GIB) if counts else 0
    return sizes


def find_skipped_steps(
    question: Question, build: Build, switches: Mapping[str, str]
) -> tuple[frozenset[int], tuple[str, ...]]:
    """Return the steps that the changed switches leave out, by rows, and notes."""
    notes = []
    out = set[int]()
    for name, value in switches.items():
        skipped = _find_reached_steps(question, build, name) if value == "0" else set[int]()
        out |= skipped
        if value != "0":
            notes.append(
                f"{name}={value}: what it would add is not in this graph, so nothing is reckoned for it"
            )
        elif name not in (known := _list_switches(question.catalog)):
            near = did_you_mean(name, known)
            notes.append(f"{name}=0: no row says which sources that takes away, so all are kept{near}")
        else:
            count = sum(not build.edges[each].phony for each in skipped)
            notes.append(
                f"{name}=0: {count} steps that rows know are left out; #if in other files is not seen"
            )
    return frozenset(out), tuple(notes)


def _find_reached_steps(question: Question, build: Build, name: str) -> set[int]:
    root = question.facts.tree.root.replace("\\", "/").rstrip("/") + "/"
    now = Needs(question, {})
    then = Needs(question, {name: "0"})
    paths = {row.path for row in question.catalog.submodule}
    unneeded = {(f"{path}/", "") for path in paths if now.why(path) and not then.why(path)}
    unneeded |= {(row.path, row.kind) for row in question.catalog.switch_source if row.variable == name}
    producers = {output: at for at, edge in enumerate(build.edges) for output in edge.outputs}
    out: set[int] = set()
    for at, edge in enumerate(build.edges):
        kind = kind_of(edge.outputs[0])
        explicit = edge.inputs[: edge.explicit]
        if kind in CACHEABLE and explicit:
            source = explicit[0].removeprefix(root)
            leaves = any(which in ("", kind) and source.startswith(path) for path, which in unneeded)
        else:
            objects = [producers[name] for name in explicit if name in producers]
            leaves = kind == "link" and bool(objects) and out.issuperset(objects)
        if leaves and not edge.phony:
            out.add(at)
    return out


def _list_switches(catalog: Catalog) -> set[str]:
    named = {name for row in catalog.submodule for name in (*row.needs, *row.any)}
    return named | {row.variable for row in catalog.switch_source}


def _figures(
    question: Question,
    tree: Tree,
    choices: Mapping[str, str],
    build: Build,
    scenario: Scenario,
    out: frozenset[int],
) -> Figures:
    edges = build.edges
    kept = [at for at, edge in enumerate(edges) if at not in out and not edge.phony]
    compiles = [at for at in kept if kind_of(edges[at].outputs[0]) in CACHEABLE]
    hits = choose_hits(compiles, edges, scenario.cache)
    sent = set(compiles) - hits if scenario.servers else set[int]()
    answered = _Hit(question.catalog.cache, tree.history, scenario, choices)
    jobs = []
    for at, edge in enumerate(edges):
        left_out = at in out
        seconds = build.seconds[at]
        here = answered.seconds(edge, seconds) if at in hits else seconds / FED if at in sent else seconds
        jobs.append(
            Job(
                name=edge.outputs[0],
                order=build.order[at],
                before=build.before[at],
                here=0.0 if left_out else here,
                away=seconds if at in sent else 0.0,
                memory=0
                if left_out or edge.phony or at in hits or at in sent
                else build.sizes[kind_of(edge.outputs[0])],
                pool=edge.pool,
                phony=left_out or edge.phony,
            )
        )
    machine = _machine(question, tree, scenario)
    return _sum_up(simulate(jobs, machine), jobs, machine, len(hits), len(sent))


def choose_hits(compiles: Iterable[int], edges: Sequence[Edge], share: float) -> set[int]:
    """Return the compiles that are cache hits: a fixed choice, of which a larger share is a superset."""
    ranked = sorted(compiles, key=lambda at: (zlib.crc32(edges[at].outputs[0].encode(errors="replace")), at))
    return set(ranked[: round(share * len(ranked))])


class _Hit:
    """The time of a hit: as measured here before, else the row's share of the compile."""

    def __init__(
        self, rows: Sequence[CacheRow], history: History, scenario: Scenario, choices: Mapping[str, str]
    ) -> None:
        launcher = choices.get("CMAKE_CXX_COMPILER_LAUNCHER", "")
        tool = "sccache" if scenario.servers or "sccache" in launcher else "ccache"
        self._rows = {row.language: row for row in rows if row.tool == tool and row.warm}
        self._steps = history.steps

    def seconds(self, edge: Edge, usual: float) -> float:
        times = [time for name in edge.outputs for time in self._steps.get(name, ())]
        for time in times:
            if is_hit(edge.outputs[0], time, max(times)):
                return time
        row = self._rows["cuda" if kind_of(edge.outputs[0]) in ("CUDA", "HIP") else "c++"]
        return min(usual, max(row.least, row.warm * usual))


def _machine(question: Question, tree: Tree, scenario: Scenario) -> Machine:
    """Return the simulated machine; with servers it has the jobs of `--distribute`."""
    away = scenario.servers * scenario.server_cores
    jobs = jobs_away(scenario.cores, scenario.cores, scenario.servers, away)
    reserve = memory_row(question.catalog, "reserve").gib
    limit = None if scenario.memory is None else int(max(scenario.memory - reserve, 0.1) * GIB)
    return Machine(
        cores=scenario.cores,
        jobs=jobs if scenario.servers else scenario.cores,
        servers=away,
        memory=limit,
        depths=tree.file.depths,
        chains=tree.chains,
    )


def _sum_up(schedule: Schedule, jobs: Sequence[Job], machine: Machine, hits: int, sent: int) -> Figures:
    bounds = schedule.bounds
    return Figures(
        wall_seconds=round(schedule.wall, 3),
        critical_path_seconds=round(bounds["critical path"], 3),
        work_seconds=round(sum(job.seconds for job in jobs), 3),
        memory_peak_bytes=schedule.memory,
        limited_by=max(bounds, key=lambda name: bounds[name]),
        steps=sum(not job.phony for job in jobs),
        hits=hits,
        sent=sent,
        jobs=machine.jobs,
        bounds_seconds={name: round(value, 3) for name, value in bounds.items()},
        chain=tuple(jobs[at].name for at in schedule.chain),
    )
