"""Choose the cheapest way to an up-to-date torch (--auto)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from torchbuild_tasks.catalog.match import variable_row
from torchbuild_tasks.features.wheel_overlay.choose import (
    CHANGED,
    PYTHON_PART,
    Reached,
    select_blocking,
)
from torchbuild_tasks.model import BuildPlan
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.text.words import first_few

WAYS: Final = ("no-op", "from-wheel", "mixed", "ninja install", "front end")
# Seconds that rank a way whose time is unknown.
_NOMINAL: Final = dict(zip(WAYS, (2.0, 60.0, 120.0, 300.0, 3600.0), strict=True))
_UNPACKED: Final = 40e6  # bytes a second: 1.2 GB of a CUDA wheel in 30 s on a machine of 2 cores
_IDLE: Final = "Ninja finds nothing to do"
_OWN_BUILD: Final = "this checkout has a build of its own"
_PIP: Final = 15.0  # seconds that pip takes where every requirement is installed
# The choices that hold for every way, compile or not.
_ANY_WAY: Final = frozenset(
    ("source", "torch", "python", "env shell", "from PyPI", "jobs", "jobserver", "compiler cache")
    + ("distribute", "CXX", "CC", "toolset", "linker")
)
_TRY: Final = "whether its wheel was built alike is found out by torchbuild build --from-wheel auto --target"
_USERS: Final = ("flag", "environment", "torchbuild.toml")


class Situation(msgspec.Struct, frozen=True, kw_only=True):
    """The input of --auto's decision.

    `laid` and `built`: the checkout has a wheel's files, or a build; `in_way`: a file of neither.
    `mixed`: libraries were compiled against the wheel's, for --target `target`; else `no_mixing` says why.
    `reached`: the files that need a compile since the wheel in place, or else since the nearest one.
    `wheel`: the value for --from-wheel, "" for none, and `no_wheel` says why; `wheel_size`: bytes, None if
    unknown. `decided`: the user's choices that need a compile; `no_compile`: why a compile cannot work.
    `steps`: the steps that Ninja would run, None if unknown, and `no_ninja` says why.
    `step_seconds` and `full_seconds`: of one step, and of the longest recorded build.
    """

    laid: bool = False
    built: bool = False
    mixed: bool = False
    target: str = PYTHON_PART
    no_mixing: str = f"{_TRY} {PYTHON_PART}"
    in_way: str = ""
    reached: tuple[Reached, ...] = ()
    wheel: str = ""
    no_wheel: str = "no wheel of this commit, or of one before it, is here"
    wheel_size: int | None = None
    decided: tuple[str, ...] = ()
    no_compile: str = ""
    steps: int | None = None
    no_ninja: str = "nothing is built here"
    step_seconds: float | None = None
    full_seconds: float | None = None


def list_user_choices(question: Question, plan: BuildPlan) -> tuple[str, ...]:
    """Return the user's choices that a wheel cannot satisfy, because its builder made them."""
    own = [
        each.name
        for each in plan.choices
        if each.source in _USERS and each.name not in _ANY_WAY and not _is_for_machine(question, each.name)
    ]
    words = {"--with": question.request.with_, "--target": question.request.target}
    return (*own, *(word for word, value in words.items() if value))


def _is_for_machine(question: Question, name: str) -> bool:
    """Say whether this variable changes only how a build runs, such as MAX_JOBS and CCACHE_DIR."""
    row = variable_row(question.catalog, name, question.era, question.version)
    return row is not None and row.needs == "nothing"


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """One way: `obstacle` says why it cannot be used ("" if it can); `seconds` is None if unknown."""

    way: str
    seconds: float | None = None
    obstacle: str = ""


def offer_ways(situation: Situation) -> tuple[Offer, ...]:
    """Return every way in the order of `WAYS`, each with its seconds or its obstacle."""
    changed = first_few([each.path for each in situation.reached])
    compile_needed = f"{changed} must be compiled" if changed else ""
    blocking = select_blocking(situation.target, situation.reached)
    serves = situation.laid and not situation.mixed and not situation.reached and not situation.decided
    idle = situation.steps == 0 and (situation.built or (situation.mixed and not blocking))
    due = "" if situation.built and situation.steps else _IDLE if idle else situation.no_ninja
    by_ninja = (
        None
        if situation.steps is None
        else situation.step_seconds and situation.steps * situation.step_seconds
    )
    return (
        Offer(
            way="no-op",
            seconds=_NOMINAL["no-op"],
            obstacle="" if serves or idle else _why_not_idle(situation),
        ),
        Offer(
            way="from-wheel",
            seconds=None if situation.wheel_size is None else _PIP + situation.wheel_size / _UNPACKED,
            obstacle=_why_not_wheel(situation) or compile_needed,
        ),
        Offer(way="mixed", seconds=by_ninja, obstacle=_IDLE if idle else _why_not_mixed(situation)),
        Offer(way="ninja install", seconds=by_ninja, obstacle=situation.no_compile or due),
        Offer(
            way="front end",
            seconds=situation.full_seconds and _PIP + situation.full_seconds,
            obstacle=situation.no_compile,
        ),
    )


def _why_not_idle(situation: Situation) -> str:
    if situation.steps:
        return f"Ninja has {situation.steps} steps"
    if situation.laid:
        difference = (
            f"has not {' and '.join(situation.decided)} as asked for"
            if situation.decided
            else "lacks the latest changes"
        )
        return f"the wheel in this checkout {difference}"
    return situation.no_ninja


def _why_not_mixed(situation: Situation) -> str:
    if situation.built:
        return _OWN_BUILD
    if others := select_blocking(situation.target, situation.reached):
        only_native = all(each.kind == "native" for each in situation.reached)
        names = first_few([each.path for each in others])
        return f"{_TRY} {CHANGED}" if only_native else f"{names} must be compiled"
    if situation.mixed:
        return ""
    return situation.no_mixing if situation.reached else f"nothing of {PYTHON_PART} has changed"


def _why_not_wheel(situation: Situation) -> str:
    if situation.decided:
        return f"{' and '.join(situation.decided)} asks for a compile"
    if situation.built:
        return _OWN_BUILD
    if situation.laid:
        return "" if situation.reached else "the wheel in this checkout is still right"
    if situation.in_way:
        return f"{situation.in_way} is in the way"
    return "" if situation.wheel or situation.reached else situation.no_wheel


def choose_offer(offers: Iterable[Offer]) -> Offer:
    """Return the cheapest way without an obstacle, else the last; an unknown time counts as the usual one.

    Doing nothing is always cheapest, and the front end includes Ninja's steps. "mixed" and "ninja install"
    are never both possible: a checkout has a wheel's libraries or a build of its own.
    """
    possible = [each for each in offers if not each.obstacle] or list(offers)[-1:]
    if nearly_free := [each for each in possible if each.way in ("no-op", "mixed", "ninja install")]:
        return nearly_free[0]
    return min(possible, key=lambda each: each.seconds if each.seconds is not None else _NOMINAL[each.way])


def describe_offers(chosen: Offer, offers: Iterable[Offer]) -> str:
    """Return the line for the user on the chosen way and on the others."""
    others = (each for each in offers if each is not chosen)
    rest = "; ".join(f"{each.way} {each.obstacle or describe_time(each.seconds)}".strip() for each in others)
    return f"auto: {chosen.way}, {chosen.obstacle or describe_time(chosen.seconds)} ({rest})"


def describe_time(seconds: float | None) -> str:
    """Return a rough duration in words."""
    if seconds is None:
        return "time unknown"
    if seconds < 90:
        return f"about {max(round(seconds), 1)} s"
    minutes = round(seconds / 60)
    return f"about {minutes} min" if minutes < 90 else f"about {seconds / 3600:.1f} h"
