"""The environment of the build, as operations on names, each with its reason."""

from __future__ import annotations

from torchbuild_tasks.features.helpers.choose import helper_paths
from torchbuild_tasks.model import Choice, EnvOp
from torchbuild_tasks.plan.decisions import Decisions
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.plan.toolset import load_toolset
from torchbuild_tasks.plan.variables import unset_refused

# Not the sum with the memory that is free just now: the same plan writes the same file.
JOBS = "parallel compile jobs; `plan` shows how they were reckoned"
HEAVY_JOBS = "the heaviest kernels at once; `plan` shows how they were reckoned"


def operations(decisions: Decisions) -> tuple[EnvOp, ...]:
    """Return what the env file does, in its order: take out, put on the path, set, load the toolset."""
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
    if heavy := decisions.heavy_jobs:
        ops.append(EnvOp(op="set", name=heavy.name, value=heavy.value, because=HEAVY_JOBS))
    ops += [_set(choice) for choice in decisions.variable_choices]
    ops += [path for path in paths if path.name in decisions.variables]  # in front of what was just set
    ops += load_toolset(question, decisions.toolset)
    return tuple(ops)


def program_folders(question: Question, python: str) -> tuple[str, ...]:
    """Return an environment's folders of programs: the interpreter's, and Scripts in conda on Windows."""
    folder = python.rpartition(question.separator)[0]
    known = next((p for p in question.facts.pythons if p.executable == python), None)
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
        folder = decisions.question.join("build")
        ops.append(
            EnvOp(op="set", name="SKBUILD_BUILD_DIR", value=folder, because="a build tree that persists")
        )
    return tuple(ops)
