"""Decide which BLAS and LAPACK torch will have, as PyTorch's CMake files do; and conda's folder for CMake.

MKL where it is found, else the first of the others that can be linked; a BLAS that is named is found or CMake
stops. Without any, torch imports well, and its linear algebra on the CPU fails.
"""

from __future__ import annotations

import msgspec

from torchbuild_tasks.catalog.match import applies
from torchbuild_tasks.catalog.rows import BlasRow
from torchbuild_tasks.features.helpers.choose import Helpers
from torchbuild_tasks.model import Choice, Finding, Library
from torchbuild_tasks.plan.artifacts import offers_helper
from torchbuild_tasks.plan.environment import ChosenPython, first_python
from torchbuild_tasks.plan.packages import install_line
from torchbuild_tasks.plan.question import PREFIX_PATH, SEARCHED, Question, say_unseen
from torchbuild_tasks.plan.variables import decide
from torchbuild_tasks.values import replace

LABEL = "BLAS library"
NO_BLAS = "none"


class ChosenBlas(msgspec.Struct, frozen=True, kw_only=True):
    """The choice, its name in torch's own configuration (`info`), the variables to set, and its problems.

    `choice` is None where the variable BLAS already names one, `info` is empty where it is not certain.
    """

    choice: Choice | None = None
    info: str = ""
    variables: tuple[Choice, ...] = ()
    problems: tuple[Finding, ...] = ()


def choose_blas(question: Question, helpers: Helpers) -> ChosenBlas:
    """Decide the BLAS; empty where the facts are of an older version, which did not look for one."""
    asked, facts = decide(question, "BLAS"), question.facts
    rows = {row.name: row for row in question.catalog.blas if applies(row.torch, question.version)}
    here = {library.name: library for library in facts.blas or ()}
    brought = next((helper for helper in helpers.chosen if helper.row.name.startswith("mkl")), None)
    if asked and asked.value and asked.value != "Eigen":
        return _check_named(question, asked, here, rows, brought=brought is not None)
    if brought is not None:
        because = f"{brought.row.name} {brought.row.version}, which is fetched for this build"
        return ChosenBlas(
            choice=Choice(name=LABEL, value="MKL", because=because, source="helper"), info="mkl"
        )
    if facts.blas is None:
        return ChosenBlas()
    order = _search_order(question, rows)
    taken = next((name for name in order if name in here), None)
    before = order[: order.index(taken)] if taken else order
    if unseen := question.unseen(*SEARCHED, *(name for each in before for name in rows[each].variables)):
        via = f"found via {here[taken].found_via} ({here[taken].library})" if taken else ""
        return _not_looked_for(question, taken, via, unseen)
    if taken is None:
        named = next((row for row in rows.values() if row.named and row.name in here), None)
        return _by_name(question, named, here[named.name]) if named and not asked else _none(question)
    because = f"found via {here[taken].found_via} ({here[taken].library})"
    if taken != "MKL":
        because += "; MKL, which comes first, was not found"
    return ChosenBlas(choice=Choice(name=LABEL, value=taken, because=because), info=rows[taken].info)


def _not_looked_for(
    question: Question, taken: str | None, via: str, unseen: tuple[Choice, ...]
) -> ChosenBlas:
    """Promise none where what is named was not looked into: CMake looks there first."""
    because = f"{via}; " if via else ""
    because += f"none was looked for in {say_unseen(unseen)}, and CMake takes what is there first"
    choice = Choice(name=LABEL, value=taken or "unknown", because=because)
    if taken == "MKL":  # there may be another MKL, and it is MKL all the same
        return ChosenBlas(choice=choice, info="mkl")
    if taken or question.facts.tree.sample:
        return ChosenBlas(choice=choice)
    text = f"no BLAS and LAPACK was found, but none was looked for in {say_unseen(unseen)}"
    return ChosenBlas(choice=choice, problems=(Finding.unknown("blas", text, f"{_how_to_get(question)}."),))


def _by_name(question: Question, row: BlasRow, library: Library) -> ChosenBlas:
    """Name a BLAS that CMake does not find by itself."""
    if question.facts.tree.sample:
        return _none(question)
    because = f"found via {library.found_via} ({library.library}), which CMake takes only by its name"
    choice = Choice(name=LABEL, value=row.name, because=because)
    return ChosenBlas(choice=choice, variables=(replace(choice, name="BLAS"),))  # a check of BLAS verifies it


def _search_order(question: Question, rows: dict[str, BlasRow]) -> tuple[str, ...]:
    """Return the names in the order in which CMake tries them; WITH_BLAS leaves one."""
    if question.facts.tree.sample:
        return ("MKL",)
    only = decide(question, "WITH_BLAS")
    asked = decide(question, "BLAS")
    skipped = "MKL" if asked and asked.value == "Eigen" else ""
    names = tuple(name for name, row in rows.items() if name != skipped and not row.named)
    if only and only.value:
        return tuple(name for name in names if name == "MKL" or rows[name].info == only.value)
    return names


def _check_named(
    question: Question, asked: Choice, here: dict[str, Library], rows: dict[str, BlasRow], *, brought: bool
) -> ChosenBlas:
    """Check that the BLAS that is named was found; rows of checks.toml verify it in the built torch."""
    name = asked.value
    reads = question.facts.tree.reads
    if reads and name not in reads.values.get("BLAS", (name,)):
        return ChosenBlas()  # the check of values says that this checkout does not know it
    if name not in rows and reads and name in reads.values.get("BLAS", ()):
        text = f"BLAS={name} ({asked.because}): it is not looked for here, and CMake fails if it finds none"
        fix = f"Unless the system's folders have it: --set {PREFIX_PATH}=FOLDER; or drop BLAS."
        return ChosenBlas(problems=(Finding.warn("blas", text, fix),))
    known = question.facts.blas is not None and name in rows and not question.facts.tree.sample
    if not known or name in here or (brought and name == "MKL") or name == "Generic":
        return ChosenBlas()
    if unseen := question.unseen(*SEARCHED, *rows[name].variables):
        text = f"BLAS={name} ({asked.because}): {name} was not looked for in {say_unseen(unseen)}"
        return ChosenBlas(problems=(Finding.unknown("blas", text),))
    looked = ", ".join(
        (*rows[name].variables, PREFIX_PATH, "CMAKE_LIBRARY_PATH", "conda, the system's folders")
    )
    text = f"BLAS={name} ({asked.because}), and no {name} that can be linked was found (looked in {looked})"
    text += ": CMake stops at that"
    fetched = name == "MKL" and offers_helper(question, "mkl")
    line = install_line(question.facts, question.catalog, name)
    ways = [f"Install it: {line}"] if line else ["Have it fetched: --with-helper mkl"] if fetched else []
    ways += [f"name its folder: --set {PREFIX_PATH}=FOLDER", "drop BLAS, and CMake uses what is installed"]
    fix = "; or ".join(ways)
    return ChosenBlas(problems=(Finding.error("blas", text, f"{fix[0].upper()}{fix[1:]}."),))


def _none(question: Question) -> ChosenBlas:
    names = (row.name for row in question.catalog.blas if applies(row.torch, question.version))
    because = f"none of those that are looked for can be linked here: {', '.join(names)}"
    choice = Choice(name=LABEL, value=NO_BLAS, because=because)
    if question.facts.tree.sample:
        return ChosenBlas(choice=choice)
    text = "no BLAS and LAPACK was found: torch's products are slow, and torch.linalg fails on the CPU"
    fix = _how_to_get(question)
    if offers_helper(question, "mkl"):
        fix += "; or have MKL fetched: --with-helper mkl"
    return ChosenBlas(choice=choice, problems=(Finding.warn("blas", text, f"{fix}."),))


def _how_to_get(question: Question) -> str:
    host, first = question.facts.host, first_python(question)
    if host.os == "windows" and host.arch == "aarch64":
        return "Install the Arm Performance Libraries (developer.arm.com), whose folder ARMPL_DIR names"
    if line := install_line(question.facts, question.catalog, "OpenBLAS"):
        return f"Install one with its headers: {line}"
    # CMake looks into a conda environment that gets torch, and into no other.
    if first and first.environment == "conda":
        return "Install one with its headers, such as OpenBLAS: conda install -c conda-forge openblas"
    return "Install one with its headers, such as OpenBLAS"


def conda_prefix(question: Question, python: ChosenPython) -> Choice | None:
    """Return CMAKE_PREFIX_PATH with the conda environment that torch is built for, after what the user named.

    Upstream's README sets it by hand; without it CMake finds neither conda's MKL nor its headers.
    """
    own = python.python
    if own is None or own.environment != "conda" or not own.prefix:
        return None
    windows = question.facts.host.os == "windows"
    folder = f"{own.prefix}\\Library" if windows else own.prefix
    asked = decide(question, PREFIX_PATH)
    separator = ";" if windows else ":"
    entries = [entry for entry in asked.value.split(separator) if entry] if asked else []
    if folder in entries:
        return None
    because = "the conda environment that gets torch, so that CMake finds its libraries"
    if asked and entries:
        because = f"{asked.because}; then {because}"
    source = asked.source if asked and entries else "default"
    return Choice(name=PREFIX_PATH, value=separator.join((*entries, folder)), because=because, source=source)
