"""Decide whether the build takes its jobs from a jobserver that watches the memory, and why or why not.

With it no number of jobs is passed on; without it the number from `plan/jobs.py` is.
"""

from __future__ import annotations

import msgspec
from packaging.requirements import Requirement

from torchbuild_tasks.catalog import GIB
from torchbuild_tasks.catalog.match import admits, applies, memory_row
from torchbuild_tasks.catalog.rows import JobserverRow
from torchbuild_tasks.features.cache.choose import LAUNCHERS, ChosenCache
from torchbuild_tasks.model import Choice, Jobserver, Source, Tool
from torchbuild_tasks.plan.environment import ChosenPython
from torchbuild_tasks.plan.jobs import gib_of_job, usable_cores, usable_memory
from torchbuild_tasks.plan.machine_tools import ninja_of
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.plan.variables import decide


class ChosenJobserver(msgspec.Struct, frozen=True, kw_only=True):
    """The choice for printing, and the jobserver's parameters where it is on."""

    choice: Choice
    serve: Jobserver | None = None


def choose_jobserver(
    question: Question,
    python: ChosenPython,
    jobs: Choice,
    generator: str,
    cache: ChosenCache,
    *,
    build_type: str,
    away: bool = False,
) -> ChosenJobserver:
    """Decide it: on where the build program knows the protocol, the memory can be read and no number is set.

    Args:
        question: the request, the facts, the rows.
        python: the Python of the build, whose own ninja is found before others.
        jobs: the number of jobs and who decided it.
        generator: the CMake generator.
        cache: the compiler cache; sccache compiles in a server.
        build_type: CMake's, by which the largest job was measured.
        away: whether compiles are sent to other machines, whose memory is not ours.
    """
    given = question.given("jobserver")
    if given and given[0] == "off":
        return _off(given[2], given[1])
    if jobs.source != "default":
        return _off(f"you set a number of jobs ({jobs.because})", jobs.source)
    if (level := decide(question, "CMAKE_BUILD_PARALLEL_LEVEL")) and level.value:
        return _off(f"you set a number of jobs ({level.because})", level.source)
    if away:
        return _off("compiles are sent to other machines, as many as these have cores for")
    if reason := _cannot_watch(question, cache):
        return _off(reason)
    row = _row(question, generator)
    if row is None:
        return _off(f"CMake's generator {generator} does not support one")
    reason, program = _program(question, python, row)
    if reason:
        return _off(reason)
    cores, why = usable_cores(question.facts.cpu)
    because = f"{program} starts up to {cores} jobs ({why}), as the free memory permits"
    because += f", instead of {jobs.value}" if jobs.value != str(cores) else ""
    serve = Jobserver(
        cores=cores,
        reserve=int(memory_row(question.catalog, "reserve").gib * GIB),
        largest=int(gib_of_job(question, build_type) * GIB),
        program=row.program,
        version=row.version,
    )
    return ChosenJobserver(choice=Choice(name="jobserver", value="on", because=because), serve=serve)


def _off(because: str, source: Source = "default") -> ChosenJobserver:
    return ChosenJobserver(choice=Choice(name="jobserver", value="off", because=because, source=source))


def _cannot_watch(question: Question, cache: ChosenCache) -> str:
    """Say why the memory, or the compiles that take it, cannot be seen here; "" when they can."""
    if usable_memory(question.facts.memory) is None:
        return "the free memory is not known here"
    own = (decide(question, name) for names in LAUNCHERS.values() for name in names)
    if any(launcher and "sccache" in launcher.value for launcher in own):
        return "an sccache that this tool did not start compiles in a server that cannot be observed"
    if question.facts.host.os == "windows" and any(tool.name == "sccache" for tool in cache.tools):
        return "on Windows, the server in which sccache compiles cannot be observed"
    return ""


def _row(question: Question, generator: str) -> JobserverRow | None:
    for row in question.catalog.jobserver:
        asked = ((row.era, question.era), (row.generator, generator), (row.os, question.facts.host.os))
        # A reason of an old torch says nothing of one whose version is not known.
        guessed = row.off and row.torch and question.read_version is None
        fits = all(wanted in ("", here) for wanted, here in asked) and applies(row.torch, question.version)
        if fits and not guessed:
            return row
    return None


def _program(question: Question, python: ChosenPython, row: JobserverRow) -> tuple[str, str]:
    """Say why the build program takes no tokens, or "" and its name with the version."""
    if row.off:
        return row.off, ""
    own = python.target
    if any(Requirement(text).name == row.program for text in (*python.missing, *python.better)):
        return "", f"{row.program} from PyPI"
    makes = question.facts.tool(row.program) or Tool(name=row.program)
    tool = ninja_of(question, own) if row.program == "ninja" else makes
    where = tool.path or (f"of {own.executable}" if own and tool.version else "")
    if not where:
        return f"there is no {row.program}", ""
    named = f"{row.program} {tool.version or 'of an unknown version'} ({where})"
    if not admits(row.version, tool.version):
        return f"{named} supports none; {row.program}{row.version} does", ""
    return "", named
