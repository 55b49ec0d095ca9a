"""Decide what the verification expects of the built torch: rows of checks.toml, filled from the plan."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from torchbuild_tasks.catalog.rows import CheckRow
from torchbuild_tasks.model import Environment, Expectation
from torchbuild_tasks.plan.cuda.values import Arch
from torchbuild_tasks.plan.decisions import Decisions
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.plan.variables import is_off


def expectations(decisions: Decisions) -> tuple[Expectation, ...]:
    """Return one expectation a row that applies to this plan."""
    question, variables = decisions.question, decisions.variables
    if question.facts.tree.problem:  # nothing can be promised of what is not there
        return ()
    if question.request.target and not question.request.mixed:  # it is not installed, so nothing is imported
        return ()
    build_type, environment = decisions.build_type.value, decisions.python.environment
    cuda = decisions.cuda.toolkit.version
    promises = {
        "folder": question.facts.tree.root
        if decisions.mode.value == "develop"
        else _site_of(question, environment),
        "version": promised_version(decisions),
        "commit": question.facts.tree.commit or "",
        "debug": str(build_type == "Debug"),
        "build_type": build_type,
        "cuda": str(cuda or ""),
        "blas": decisions.blas.info,
        "arch_list": arch_words(decisions.cuda.archs.archs),
        "places": "\n".join(_places(decisions)),
    }
    companions = {"", *(companion.name for companion in decisions.companions)}
    rows = (row for row in question.catalog.check if row.companion in companions)
    lost = {each.choice.name: each.rows[0].name for each in decisions.unlinked if each.is_off}
    found = (_expectation(question, row, promises, variables, lost) for row in rows)
    return tuple(expectation for expectation in found if expectation)


def _places(decisions: Decisions) -> tuple[str, ...]:
    """Return the checkout, then the folders that libraries may come from: toolkit and variables."""
    question = decisions.question
    apart = ";" if question.facts.host.os == "windows" else "[;:]"
    words = {word for value in decisions.variables.values() for word in re.split(apart, value)}
    named = [word for word in words if word[:1] == "/" != word or word[1:3] in (":\\", ":/")]
    return (question.facts.tree.root, *filter(None, (decisions.cuda.toolkit.root,)), *sorted(named))


def promised_version(decisions: Decisions) -> str:
    """Return the version that the built torch will say it has, without what its commit adds.

    PYTORCH_BUILD_VERSION has .postN from build number 2 on (tools/generate_torch_version.py).
    """
    version = decisions.variables.get("PYTORCH_BUILD_VERSION")
    if not version:
        return str(decisions.question.facts.tree.version)
    number = decisions.variables.get("PYTORCH_BUILD_NUMBER", "1")
    return f"{version}.post{number}" if number.isdecimal() and int(number) > 1 else version


def arch_words(archs: Iterable[Arch]) -> str:
    """Say how torch.cuda.get_arch_list() spells them: 8.6 and 9.0+PTX are "sm_86 sm_90 compute_90".

    Source: the readable list of cuda_select_nvcc_arch_flags in PyTorch's select_compute_arch.cmake.
    """
    words = []
    for arch in archs:
        number = str(arch.capability).replace(".", "")
        words += [f"sm_{number}", *([f"compute_{number}"] if arch.ptx else [])]
    return " ".join(words)


def _spell(row: CheckRow, value: str) -> str:
    """Say how torch reports a planned value."""
    return dict(pair.split("=", 1) for pair in row.spelled).get(value, value)


def _site_of(question: Question, environment: Environment) -> str:
    """Return the environment of a wheel: the interpreter's prefix, else two folders above it."""
    known = question.facts.python_at(environment.python)
    if known is not None and known.prefix:
        return known.prefix
    return environment.python.rsplit(question.separator, 2)[0]


def _expectation(
    question: Question,
    row: CheckRow,
    promises: Mapping[str, str],
    variables: Mapping[str, str],
    lost: Mapping[str, str],
) -> Expectation | None:
    if row.when and (is_off(variables.get(row.when, "0")) or not variables[row.when]):
        return None
    if row.variable and row.variable not in variables:
        return None
    wanted = _spell(row, variables[row.variable]) if row.variable else row.wanted.format_map(promises)
    if row.key and not wanted:
        return None
    skip = row.sample if question.facts.tree.sample else ""
    if row.unless and is_off(variables.get(row.unless)):
        skip = f"{row.unless} is off in the plan"
    if name := next((each for each in (row.variable, row.unless) if each in lost), ""):
        skip = f"CMake turns {name} off: {lost[name]} was not found"
    return Expectation(check=row.check, key=row.key, wanted=wanted, because=row.because, skip=skip)
