"""Make the plan: request + facts + rows + settings -> choices, findings, commands and env files.

Pure: nothing is looked at and nothing is done. The choices are listed in decisions.py; a part that only some
builds have (CUDA) is imported where such a build is planned.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from torchbuild_tasks.catalog.match import entry_row
from torchbuild_tasks.features.cache.choose import check_cache, plan_cache
from torchbuild_tasks.features.companions.choose import (
    check_companions,
    check_development,
    wanted_companions,
)
from torchbuild_tasks.features.helpers.choose import check_helpers, helper_paths
from torchbuild_tasks.features.patches.choose import check_patches
from torchbuild_tasks.features.reproducible.choose import check_repeat
from torchbuild_tasks.model import (
    BuildPlan,
    Choice,
    Command,
    EnvOp,
    Finding,
    Freshness,
    Need,
    Preflight,
    verdict,
)
from torchbuild_tasks.plan.compiler import check_compilers
from torchbuild_tasks.plan.decisions import Decisions, decide_build
from torchbuild_tasks.plan.dependent import check_switches
from torchbuild_tasks.plan.env_files import check_env_files, plan_env_files
from torchbuild_tasks.plan.environment import check_python
from torchbuild_tasks.plan.expectations import expectations, promised_version
from torchbuild_tasks.plan.fit import check_machine_and_tree, check_windows
from torchbuild_tasks.plan.freshness import check_clean, check_running, compare, fingerprint
from torchbuild_tasks.plan.idle import check_idle
from torchbuild_tasks.plan.install import check_loop, choose_way
from torchbuild_tasks.plan.jobs import check_jobs, check_memory
from torchbuild_tasks.plan.linked import check_linked
from torchbuild_tasks.plan.linker import check_linker, plan_linker
from torchbuild_tasks.plan.machine_tools import check_log
from torchbuild_tasks.plan.names import PARALLEL_LEVEL, check_handed, check_overruled
from torchbuild_tasks.plan.packages import without_sudo
from torchbuild_tasks.plan.places import check_places
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.plan.toolset import check_toolset, load_toolset
from torchbuild_tasks.plan.trust import check_trust
from torchbuild_tasks.plan.variables import (
    check_variables,
    decide,
    is_cuda,
    unset_refused,
)
from torchbuild_tasks.values import replace


def make_plan(question: Question, *, templates: Mapping[str, str], writer: str) -> BuildPlan:
    """Decide everything about one build.

    Args:
        question: the flags, the machine and the tree (as they are or as a dump says), the rows, the settings.
        templates: text of the env-file template of each shell.
        writer: who writes the env files, for their first line ("torchbuild_tasks 0.1.0").

    Returns:
        The plan; its verdict is "refuse" when a finding is an error.
    """
    decisions = decide_build(question)
    inputs = fingerprint(decisions)
    ops = operations(decisions)
    freshness = compare(decisions, inputs)
    findings = (
        *_findings(decisions, ops, freshness.needs),
        *check_clean(question, freshness),
        *check_loop(decisions, freshness),
    )
    plan = BuildPlan(
        verdict=verdict(findings),
        findings=findings,
        choices=decisions.choices,
        source=question.facts.tree.root,
        build_dir=question.build_dir,
        era=question.era,
        mode=decisions.mode.value,
        environment=decisions.python.environment,
        artifacts=(*decisions.helpers.artifacts, *decisions.cuda.toolkit.artifacts),
        toolkit=decisions.cuda.toolkit.managed,
        patches=decisions.patches,
        preflight=_preflight(decisions, freshness),
        linker=plan_linker(
            question, decisions.linker, decisions.compilers, decisions.variables, freshness.needs
        ),
        companions=decisions.companions,
        cache=plan_cache(
            question, decisions.cache, decisions.variables, inputs["compiler"], decisions.distribution.plan
        ),
        jobserver=decisions.jobserver.serve,
        env=ops,
        env_files=plan_env_files(question, ops, templates, writer),
        freshness=freshness,
        inputs=inputs,
        way=choose_way(decisions, freshness, inputs),
        compile=_compile(decisions),
        expectations=expectations(decisions),
    )
    if not question.request.from_wheel:
        return plan
    from torchbuild_tasks.features.wheel_overlay.choose import plan_overlay  # a compile does without

    return plan_overlay(question, plan, {wanted.row.name for wanted in wanted_companions(question)})


def _findings(decisions: Decisions, ops: tuple[EnvOp, ...], needs: Need) -> tuple[Finding, ...]:
    question = decisions.question
    fit = check_machine_and_tree(decisions, needs)
    tree = (*check_trust(question.settings), *fit)
    if question.facts.tree.problem:
        return tree
    found = _fill_in_advice(
        question,
        *tree,
        *check_running(question),
        *check_places(decisions),
        *check_python(question, decisions.python),
        *_check_log(decisions, needs),
        *check_toolset(question, decisions.toolset, decisions.cuda.limits),
        *check_compilers(question, decisions.compilers, decisions.cuda.limits),
        *_cuda_findings(decisions),
        *check_patches(question),
        *check_windows(decisions),
        *check_helpers(question, decisions.helpers),
        *_check_offline(decisions),
        *check_cache(question, decisions.cache),
        *decisions.distribution.problems,
        *check_linker(question, decisions.linker),
        *check_companions(question, _capabilities(decisions), decisions.cuda.toolkit.version),
        *check_development(question, promised_version(decisions)),
        *check_jobs(question, decisions.jobs.value, decisions.build_type.value),
        *check_memory(question, decisions.build_type.value),
        *check_variables(question),
        *check_idle(question),
        *check_overruled(question, decisions.build_type.value),
        *check_handed(question, _all_variables(decisions)),
        *check_switches(question, decisions.blocked),
        *check_linked(question, decisions.unlinked),
        *decisions.blas.problems,
        *check_repeat(question, decisions.mode.value),
        *check_env_files(question, ops),
    )
    if question.facts.host.root:
        found = tuple(replace(each, fix=without_sudo(each.fix)) for each in found)
    return tuple(dict.fromkeys(found))  # four equal cards, and one sentence of what all four have


def _capabilities(decisions: Decisions) -> tuple[tuple[int, int], ...]:
    return tuple(arch.capability[:2] for arch in decisions.cuda.archs.archs)


def _check_log(decisions: Decisions, needs: Need) -> Iterable[Finding]:
    chosen = decisions.python
    if needs == "clean" or chosen.python is None or chosen.python.problem:  # all steps run in any case
        return ()
    return check_log(decisions.question, chosen.target, chosen.better)


def _check_offline(decisions: Decisions) -> tuple[Finding, ...]:
    if not decisions.question.given("offline"):
        return ()
    from torchbuild_tasks.plan.offline import check_parts

    return check_parts(decisions)


def _all_variables(decisions: Decisions) -> Mapping[str, str]:
    """Return the build variables, also by CMake's own names what is decided apart."""
    compilers, nvcc = decisions.compilers, decisions.variables.get("CUDACXX")
    apart = {
        "CMAKE_BUILD_TYPE": decisions.build_type,
        "CMAKE_C_COMPILER": compilers.cc,
        "CMAKE_CXX_COMPILER": compilers.cxx,
        "CMAKE_CUDA_HOST_COMPILER": compilers.host,
        "CMAKE_GENERATOR": decisions.generator,
    }
    own = {name: choice.value for name, choice in apart.items() if choice}
    return {**decisions.variables, **({"CMAKE_CUDA_COMPILER": nvcc} if nvcc else {}), **own}


def _fill_in_advice(question: Question, *findings: Finding) -> tuple[Finding, ...]:
    """Fill in the CUDA toolkit that findings advise."""
    if not is_cuda(question):
        return findings
    from torchbuild_tasks.plan.cuda.advice import advise  # a CPU build does without

    return advise(question, findings)


def _cuda_findings(decisions: Decisions) -> tuple[Finding, ...]:
    question = decisions.question
    if not is_cuda(question):
        return ()
    from torchbuild_tasks.plan.cuda.choose import check_cuda  # a CPU build does without

    return check_cuda(question, decisions.cuda, decisions.compilers)


def _preflight(decisions: Decisions, freshness: Freshness) -> Preflight | None:
    if decisions.cuda.toolkit.choice is None:
        return None
    from torchbuild_tasks.plan.preflight import choose_preflight  # a CPU build does without

    return choose_preflight(decisions, freshness)


def _compile(decisions: Decisions) -> Command:
    question, python = decisions.question, decisions.python.environment.python
    row = entry_row(question.catalog, question.era, decisions.mode.value, question.version)
    unread = question.facts.tree.depends is None  # then the build itself fetches what torch asks for
    words = (word for word in row.argv if not (unread and word == "--no-deps"))
    argv = tuple(word.replace("{python}", python) for word in words)
    return Command(argv=argv, cwd=question.facts.tree.root, because=row.because)


# Not the sum with the memory that is free just now: the same plan writes the same file.
JOBS = "parallel compile jobs; `plan` shows the calculation"
HEAVY_JOBS = "the heaviest kernels at once; `plan` shows the calculation"


def operations(decisions: Decisions) -> tuple[EnvOp, ...]:
    """Return the operations of the env file in order: unset, prepend to PATH, set, load the toolset."""
    question = decisions.question
    python = decisions.python.environment.python
    fixed = [choice for choice in (decisions.compilers.cc, decisions.compilers.cxx) if choice]
    fixed.append(decisions.generator)
    ops = list(unset_refused(question))
    if python:
        ops += [
            EnvOp(
                op="prepend", name="PATH", value=folder, because="the Python that gets torch, and its tools"
            )
            for folder in reversed(program_folders(question, python))
        ]
    ops += decisions.cuda.path
    paths = helper_paths(question, decisions.helpers)
    ops += [path for path in paths if path.name not in decisions.variables]
    ops += [_set(choice) for choice in fixed]
    ops += _build_type(decisions)
    ops.append(EnvOp(op="set", name="MAX_JOBS", value=decisions.jobs.value, because=JOBS))
    if decide(question, PARALLEL_LEVEL):  # from 2.14 on it, and not MAX_JOBS, reaches the build
        ops.append(EnvOp(op="set", name=PARALLEL_LEVEL, value=decisions.jobs.value, because=JOBS))
    if heavy := decisions.heavy_jobs:
        ops.append(EnvOp(op="set", name=heavy.name, value=heavy.value, because=HEAVY_JOBS))
    ops += [_set(choice) for choice in decisions.variable_choices]
    ops += [path for path in paths if path.name in decisions.variables]  # in front of what was just set
    ops += load_toolset(question, decisions.toolset)
    return tuple(ops)


def program_folders(question: Question, python: str) -> tuple[str, ...]:
    """Return an environment's folders of programs: the interpreter's, and Scripts in conda on Windows."""
    folder = python.rpartition(question.separator)[0]
    known = question.facts.python_at(python)
    scripts = known.scripts if known else None
    return tuple(dict.fromkeys(filter(None, (folder, scripts))))


def _set(choice: Choice) -> EnvOp:
    return EnvOp(op="set", name=choice.name, value=choice.value, because=choice.because)


def _build_type(decisions: Decisions) -> tuple[EnvOp, ...]:
    """Return the build type by the variable that each era reads.

    setup.py reads CMAKE_BUILD_TYPE before DEBUG; scikit-build-core passes its own setting
    to CMake, and PyTorch's metadata (torch.version.debug) follows DEBUG.
    """
    value, because = decisions.build_type.value, decisions.build_type.because
    if decisions.question.era == "setuptools":
        return (EnvOp(op="set", name="CMAKE_BUILD_TYPE", value=value, because=because),)
    debug = "1" if value == "Debug" else "0"
    ops = [
        EnvOp(op="set", name="SKBUILD_CMAKE_BUILD_TYPE", value=value, because=because),
        EnvOp(op="set", name="CMAKE_BUILD_TYPE", value=value, because=because),
        EnvOp(op="set", name="DEBUG", value=debug, because="torch.version.debug follows it"),
    ]
    if decisions.question.facts.tree.build_dir is None:
        folder = decisions.question.build_dir
        ops.append(
            EnvOp(op="set", name="SKBUILD_BUILD_DIR", value=folder, because="a build tree that persists")
        )
    return tuple(ops)
