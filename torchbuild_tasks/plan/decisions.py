"""Every choice of a build, made once, in the order in which `plan` prints them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import msgspec

from torchbuild_tasks.features.cache.choose import ChosenCache, choose_cache
from torchbuild_tasks.features.cluster.choose import ChosenDistribution, choose_distribution
from torchbuild_tasks.features.companions.choose import (
    choose_companions,
    companion_choices,
    companion_requires,
)
from torchbuild_tasks.features.helpers.choose import (
    Helpers,
    choose_helpers,
    helper_choices,
    helper_decisions,
    join_launchers,
)
from torchbuild_tasks.features.patches.choose import choose_patches
from torchbuild_tasks.features.reproducible.choose import forced_flags, repeat_choices
from torchbuild_tasks.model import Choice, Companion, Patch
from torchbuild_tasks.options import MODES
from torchbuild_tasks.plan.blas import ChosenBlas, choose_blas, conda_prefix
from torchbuild_tasks.plan.compiler import Compilers, choose_compilers, choose_flags
from torchbuild_tasks.plan.cuda.values import ChosenCuda
from torchbuild_tasks.plan.dependent import Blocked, settle_switches
from torchbuild_tasks.plan.environment import ChosenPython, choose_python
from torchbuild_tasks.plan.install import editable_variables, mixed_variables
from torchbuild_tasks.plan.jobs import choose_heavy_jobs, choose_jobs
from torchbuild_tasks.plan.jobserver import ChosenJobserver, choose_jobserver
from torchbuild_tasks.plan.linked import Unlinked, find_unlinked, say_unlinked
from torchbuild_tasks.plan.linker import ChosenLinker, choose_linker
from torchbuild_tasks.plan.machine_tools import CACHE, brought_choice, keep_ninja
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.plan.toolset import ChosenToolset, choose_toolset, toolset_variables
from torchbuild_tasks.plan.torch_ref import is_stored, wanted_torch
from torchbuild_tasks.plan.variables import (
    MAKEFILES,
    choose_build_type,
    decide,
    decide_all,
    is_cuda,
    is_off,
)
from torchbuild_tasks.values import replace


class Decisions(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The choices as values; `variables` are the build variables by name."""

    question: Question
    python: ChosenPython
    preset: Choice
    build_type: Choice
    mode: Choice
    jobs: Choice
    heavy_jobs: Choice | None
    jobserver: ChosenJobserver
    cuda: ChosenCuda
    toolset: ChosenToolset
    compilers: Compilers
    generator: Choice
    helpers: Helpers
    cache: ChosenCache
    distribution: ChosenDistribution
    linker: ChosenLinker
    patches: tuple[Patch, ...]
    companions: tuple[Companion, ...]
    blas: ChosenBlas
    variable_choices: tuple[Choice, ...]
    blocked: tuple[Blocked, ...] = ()
    unlinked: tuple[Unlinked, ...] = ()

    @cached_property
    def variables(self) -> Mapping[str, str]:
        """The decided build variables, name to value."""
        return {choice.name: choice.value for choice in self.variable_choices}

    @property
    def choices(self) -> tuple[Choice, ...]:
        """All of them for printing: what is built, then how, then the variables."""
        tools = (self.cuda.toolkit.choice, self.toolset.choice, self.compilers.cxx, self.compilers.cc)
        found = tuple(choice for choice in (*tools, self.blas.choice) if choice)
        jobs = filter(None, (self.jobs, self.heavy_jobs, self.jobserver.choice))
        how = (self.preset, self.build_type, self.mode, *jobs, *found, self.generator)
        helpers = helper_decisions(self.question, self.helpers)
        distribution = filter(None, (self.distribution.choice,))
        companions = companion_choices(self.question, self.companions)
        how = (*how, *helpers, self.cache.choice, *distribution, self.linker.choice, *companions)
        cache = next(
            (h.artifact.id for h in self.helpers.chosen if h.artifact.optional and h.row.name == CACHE), ""
        )
        brought = filter(None, (brought_choice(self.question, self.python.better, cache),))
        return (*_subject(self.question), self.python.choice, *brought, *how, *self.variable_choices)


def decide_build(question: Question) -> Decisions:
    """Make every choice."""
    build_type = choose_build_type(question)
    generator = choose_generator(question)
    mode = choose_mode(question)
    cuda = _choose_cuda(question)
    has_toolkit = cuda.toolkit.choice is not None
    toolset = choose_toolset(question, cuda.limits)
    compilers = choose_compilers(question, toolset, cuda.limits)
    linker = choose_linker(question, compilers)
    helpers = choose_helpers(question, build_type.value, cuda.toolkit.version, cuda.archs)
    cache = choose_cache(
        question,
        cuda=has_toolkit,
        toolkit=cuda.toolkit.version,
        helpers=helpers,
        compiler=compilers.tool,
    )
    requires = () if question.request.from_wheel and not question.request.mixed else helpers.requires
    python = choose_python(question, (*requires, *companion_requires(question)))
    jobs = choose_jobs(question, build_type.value)
    distribution = choose_distribution(
        question,
        launcher=cache.tool_of("c++"),
        compiler=compilers.tool.path or "" if compilers.tool else "",
        generator=generator.value,
        jobs=jobs,
    )
    away = distribution.plan is not None
    decisive = (*cuda.variables, *filter(None, (compilers.host, conda_prefix(question, python))))
    blas = choose_blas(question, helpers)
    repeated = repeat_choices(question, python.python, cuda.toolkit.root, compilers.cc)
    lower = (
        *toolset_variables(question, toolset, generator.value, cuda=has_toolkit),
        *cuda.open_variables,
        *join_launchers(helper_choices(question, helpers), (*cache.choices, *distribution.choices)),
        *blas.variables,
        *editable_variables(question, python.target, mode.value),
        *repeated,
    )
    kept = keep_ninja(question, python.target)
    flags = (*linker.choices, *choose_flags(question, compilers.tool), *forced_flags(repeated), *kept)
    settled = settle_switches(
        question, _merge(lower, decide_all(question), decisive, flags, mixed_variables(question))
    )
    unlinked = find_unlinked(question, cuda.toolkit, settled.choices)
    return Decisions(
        question=question,
        python=python,
        preset=question.preset,
        build_type=build_type,
        mode=mode,
        jobs=jobs,
        heavy_jobs=choose_heavy_jobs(question, build_type.value),
        jobserver=choose_jobserver(
            question, python, jobs, generator.value, cache, build_type=build_type.value, away=away
        ),
        cuda=cuda,
        toolset=toolset,
        compilers=compilers,
        generator=generator,
        helpers=helpers,
        cache=cache,
        distribution=distribution,
        linker=linker,
        patches=choose_patches(question),
        companions=choose_companions(question, python.environment.python),
        blas=blas,
        variable_choices=say_unlinked(settled.choices, unlinked),
        blocked=settled.blocked,
        unlinked=unlinked,
    )


def _choose_cuda(question: Question) -> ChosenCuda:
    if not is_cuda(question):
        return ChosenCuda()
    from torchbuild_tasks.plan.cuda.choose import choose_cuda  # a CPU build does without

    return choose_cuda(question)


def _merge(*layers: tuple[Choice, ...]) -> tuple[Choice, ...]:
    """Return one choice a name, those of a later layer replacing those before, sorted by name."""
    by_name = {choice.name: choice for layer in layers for choice in layer}
    return tuple(by_name[name] for name in sorted(by_name))


def choose_mode(question: Question) -> Choice:
    """Decide the mode: an editable install unless a wheel is asked for."""
    return question.choose("mode", "mode", "develop", "an editable install, for working on PyTorch")


def in_last_mode(question: Question) -> Question:
    """Return the question with the mode of the last build where none is asked for: a wheel lies elsewhere."""
    previous = question.facts.tree.previous
    mode = previous.inputs.get("mode") if previous and previous.result == "ok" else None
    if mode not in MODES or question.given("mode"):
        return question
    return replace(question, request=replace(question.request, mode=mode))


def choose_generator(question: Question) -> Choice:
    """Decide the CMake generator: Ninja unless a layer names another, or USE_NINJA=0 asks for Make."""
    because = "the generator that PyTorch is built with"
    asked = decide(question, "CMAKE_GENERATOR")
    ninja = decide(question, "USE_NINJA")
    if asked and asked.value:
        return asked
    # setup.py lets CMAKE_GENERATOR win over USE_NINJA, so that a generator that we name must obey it.
    if ninja and is_off(ninja.value) and question.era == "setuptools" and question.facts.windows is None:
        because = f"USE_NINJA={ninja.value}: {ninja.because}"
        return Choice(name="CMAKE_GENERATOR", value=MAKEFILES, because=because, source=ninja.source)
    return Choice(name="CMAKE_GENERATOR", value="Ninja", because=because)


def _subject(question: Question) -> tuple[Choice, ...]:
    """Return what is built; facts rather than choices, shown first so that a wrong folder is seen."""
    tree = question.facts.tree
    given = question.given("source")
    commit = f", commit {tree.commit[:10]}" if tree.commit else ""
    kind = "the sample that comes with torchbuild_tasks" if tree.sample else "PyTorch"
    told_by = next((name for name in ("version.txt", "setup.py") if name in tree.digests), "version.txt")
    source = given[1] if given else "default"
    because = given[2] if given else "the current folder"
    if (file := question.request.facts) and source != "flag":
        source, because = "default", f"the checkout of the machine in {file}"
    elif build := question.settings.build:
        seen = question.settings.seen_from
        because = f"the build {build.name}" + (
            f"; its worktree is not there yet, seen from {seen}" if seen else ""
        )
    elif is_stored(question):
        source, because = "default", "our checkout of the torch that is asked for"
    return (
        Choice(name="source", value=tree.root, because=because, source=source),
        _torch(question, f"{told_by} of {kind}{commit}"),
        Choice(name="era", value=question.era, because=f"build-backend {tree.backend or 'none, setup.py'}"),
    )


def _torch(question: Question, because: str) -> Choice:
    """Return what the checkout is; where there is none, what would be built."""
    version = question.facts.tree.version
    wanted = None if version else wanted_torch(question)
    if wanted is None:
        return Choice(name="torch", value=str(version), because=because)
    return Choice(name="torch", value=wanted.ref.ref, because=wanted.because, source=wanted.source)
