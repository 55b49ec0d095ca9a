"""Hints shown during a build: what slows it down at this moment, and how to speed it up."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from torchbuild_tasks.catalog import GIB
from torchbuild_tasks.features.cache.choose import EITHER, NAMES, NONE, NOTHING_HERE, built_without
from torchbuild_tasks.model import BuildPlan, Choice, Diagnosis, Finding, Tool

_LONG: Final = 20 * 60.0  # seconds of compiling after which a cache for the next build is suggested
_SWAP: Final = GIB // 2  # bytes; systems swap out a little unused memory at any time
_ALONE: Final = 60.0  # seconds
_WIDTH: Final = 300  # of an error; the log has all of it
_LINKERS: Final = {"mold": "mold", "ld.lld": "lld"}  # the tool, and what --linker calls it
# The program that does the work, not the driver that waits for it: gcc runs cc1plus, nvcc runs cicc.
# clang and cl.exe do it themselves. Kinds are those of the steps (ninja_log.kind_of).
_KINDS: Final = tuple(
    (re.compile(pattern), kind)
    for pattern, kind in (
        (r"cc1plus|clang(\+\+)?(-\d+)?|cl|clang-cl", "C++"),
        (r"cc1", "C"),
        (r"cicc|ptxas|cudafe\+\+|fatbinary|nvlink", "CUDA"),
        (r"ld(\.\w+)?|ld64\.lld|lld|mold|link|lld-link|lto1|lto-wrapper|dlltool", "link"),
        (r"python[\d.]*|pip[\d.]*", "Python"),
    )
)


class Advice(msgspec.Struct, frozen=True, kw_only=True):
    """Advice from the plan about the compiler cache and the linker; "" for none.

    `jobs` is how many steps may run at once.
    """

    cache: str = ""
    linker: str = ""
    jobs: int = 1


class State(msgspec.Struct, frozen=True, kw_only=True):
    """A build under way. `elapsed` is seconds of compiling, `swap` bytes in use now and at its start.

    `working` are the kinds of the programs that work now, `alone` for how many seconds it has been one;
    `shown` are the names of the hints that were shown.
    """

    elapsed: float
    swap: int = 0
    swap_at_start: int = 0
    working: Sequence[str] = ()
    alone: float = 0.0
    seconds_left: float | None = None
    shown: frozenset[str] = frozenset()


def advice(plan: BuildPlan, tools: Sequence[Tool]) -> Advice:
    """Return the ways to speed up a build on this machine.

    Args:
        plan: its choices say what the build has, and who decided it.
        tools: the programs that were looked for.
    """
    chosen = {choice.name: choice for choice in plan.choices}
    jobs = chosen["jobs"].value if "jobs" in chosen else ""
    here = {tool.name for tool in tools if tool.path}
    return Advice(
        cache=_cache_advice(chosen.get("compiler cache"), here, plan.findings),
        linker=_linker_advice(chosen.get("linker"), here, plan.findings),
        jobs=int(jobs) if jobs.isdecimal() else 1,
    )


def hint(state: State, can: Advice) -> tuple[str, str] | None:
    """Return the name and the text of the most urgent hint that applies and was not shown yet."""
    urgent = (
        ("swap", state.swap - state.swap_at_start > _SWAP, _swap_text(can)),
        ("cache", bool(can.cache) and state.elapsed >= _LONG, _cache_text(can)),
        ("alone", _is_waiting_for_one_step(state, can), _single_step_text(state, can)),
    )
    return next(((name, text) for name, due, text in urgent if due and name not in state.shown), None)


def first_error_text(number: int, line: str, causes: Sequence[Diagnosis]) -> str:
    """Return the message about the first error of a build that still runs."""
    error = f"First error, in line {number} of the log: {line.strip()[:_WIDTH]}"
    cause = f"{causes[0].cause} " if causes else ""
    return f"{error}\n{cause}What runs already is still waited for; Ctrl-C ends it now."


def _is_waiting_for_one_step(state: State, can: Advice) -> bool:
    """Return whether one step has run alone for a minute with a minute or more left (not the last link)."""
    long = state.alone >= _ALONE and (state.seconds_left or 0.0) >= _ALONE
    return can.jobs > 1 and len(state.working) == 1 and long


def _swap_text(can: Advice) -> str:
    text = "Memory runs out: the system has begun to swap, which slows every step down."
    if can.jobs < 2:
        return f"{text} Other programs that are closed give it back."
    return f"{text} Ctrl-C and the same command with --jobs {can.jobs // 2} goes on from here."


def _cache_text(can: Advice) -> str:
    return (
        f"20 minutes without a compiler cache: with one, the next clean build takes a small part. {can.cache}"
    )


def _single_step_text(state: State, can: Advice) -> str:
    if "link" not in state.working:
        return (
            "One program of the build works now, and all other steps wait for what it makes, or for memory. "
            "More --jobs do not shorten it."
        )
    text = "One core works now and the others wait for a link. More --jobs do not shorten it"
    return f"{text}; {can.linker}" if can.linker else f"{text}."


def _cache_advice(choice: Choice | None, here: set[str], findings: Sequence[Finding]) -> str:
    """Return how to get a compiler cache; "" if the build has one, or the user declined it."""
    if choice is None or choice.value != NONE or choice.source != "default":
        return ""
    tool = next((name for name in NAMES if name in here), "")
    new = _fix_of("cache", findings) or EITHER
    if built_without(choice):
        return f"{tool} is here: --clean takes it." if tool else new
    # An installed cache that is not used was declined (USE_CCACHE=0), or the user set a launcher.
    return new if choice.because == NOTHING_HERE and not tool else ""


def _linker_advice(choice: Choice | None, here: set[str], findings: Sequence[Finding]) -> str:
    """Return advice about a faster linker, if the compiler's own is used by default."""
    if choice is None or choice.value != "default" or choice.source != "default":
        return ""
    installed = next((f"--linker {name}." for tool, name in _LINKERS.items() if tool in here), "")
    faster = installed or _fix_of("linker", findings)
    return f"a faster linker does: {faster}" if faster else ""


def _fix_of(name: str, findings: Sequence[Finding]) -> str:
    return next((finding.fix for finding in findings if finding.id == name and finding.fix), "")


def program_kind(name: str) -> str:
    """Return the kind of work that a program of this name does; "" for one of no kind, such as a shell."""
    name = name.lower().removesuffix(".exe")
    return next((kind for pattern, kind in _KINDS if pattern.fullmatch(name)), "")
