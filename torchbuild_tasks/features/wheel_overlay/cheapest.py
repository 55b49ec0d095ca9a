"""Choose the cheapest way to a built torch that is right (--auto)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from torchbuild_tasks.catalog.match import variable_row
from torchbuild_tasks.features.wheel_overlay.choose import CHANGED, PYTHON_PART, Reached
from torchbuild_tasks.model import BuildPlan
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.text.words import first_few

WAYS: Final = ("no-op", "from-wheel", "mixed", "ninja install", "front end")
# Seconds by which a way whose time is not known is ranked, and those of what costs the same everywhere.
_NOMINAL: Final = dict(zip(WAYS, (2.0, 60.0, 120.0, 300.0, 3600.0), strict=True))
_UNPACKED: Final = 40e6  # bytes a second: 1.2 GB of a CUDA wheel in 30 s on a machine of 2 cores
_IDLE: Final = "Ninja finds nothing to do"
_OWN_BUILD: Final = "a build of its own lies here"
_PIP: Final = 15.0  # seconds that pip takes for what is there already
# What the user may decide whichever way is taken.
_ANY_WAY: Final = frozenset(
    ("source", "torch", "python", "env shell", "from PyPI", "jobs", "jobserver", "compiler cache")
    + ("distribute", "CXX", "CC", "toolset", "linker")
)
_TRY: Final = "whether its wheel was built alike is found out by torchbuild build --from-wheel auto --target"
_USERS: Final = ("flag", "environment", "torchbuild.toml")


class Situation(msgspec.Struct, frozen=True, kw_only=True):
    """What --auto decides from.

    `laid` and `built`: a wheel's files, or a build, lie in the checkout; `in_way`: files of neither. `mixed`:
    with the wheel's files lies a torch_python of our own, or what a change reached (`target`), since they
    were found to be built alike; where not, `no_mixing` says why none is compiled.
    `reached` are the files that need a compile since the wheel: the one that is laid, or else the nearest.
    `wheel` is the word for --from-wheel, "" for none, and `no_wheel` why; `wheel_size` is bytes, None before
    it is downloaded. `decided` is what the user decided and only a compile can honour, `no_compile` says why
    none can work. `steps` is how many Ninja would run, None where it cannot be asked, and `no_ninja` why not.
    Seconds are those of a step, and of the longest build that is known.
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
    """Return the user's decisions that the builder of a wheel has taken already."""
    own = [
        each.name
        for each in plan.choices
        if each.source in _USERS and each.name not in _ANY_WAY and not _is_for_machine(question, each.name)
    ]
    words = {"--with": question.request.with_, "--target": question.request.target}
    return (*own, *(word for word, value in words.items() if value))


def _is_for_machine(question: Question, name: str) -> bool:
    """Say whether this variable steers how a build runs, and not what it makes: MAX_JOBS, CCACHE_DIR."""
    row = variable_row(question.catalog, name, question.era, question.version)
    return row is not None and row.needs == "nothing"


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """One way: `against` says why it is not right here ("" when it is); `seconds` None where not known."""

    way: str
    seconds: float | None = None
    against: str = ""


def offer_ways(seen: Situation) -> tuple[Offer, ...]:
    """Return every way in the order of `WAYS`, each with its seconds or what stands against it."""
    changed = first_few([each.path for each in seen.reached])
    compile_needed = f"{changed} must be compiled" if changed else ""
    serves = seen.laid and not seen.mixed and not seen.reached and not seen.decided
    idle = seen.steps == 0 and (seen.built or (seen.mixed and not _of_others(seen)))
    due = "" if seen.built and seen.steps else _IDLE if idle else seen.no_ninja
    by_ninja = None if seen.steps is None else seen.step_seconds and seen.steps * seen.step_seconds
    return (
        Offer(way="no-op", seconds=_NOMINAL["no-op"], against="" if serves or idle else _not_idle(seen)),
        Offer(
            way="from-wheel",
            seconds=None if seen.wheel_size is None else _PIP + seen.wheel_size / _UNPACKED,
            against=_against_wheel(seen) or compile_needed,
        ),
        Offer(way="mixed", seconds=by_ninja, against=_IDLE if idle else _against_mixed(seen)),
        Offer(way="ninja install", seconds=by_ninja, against=seen.no_compile or due),
        Offer(
            way="front end", seconds=seen.full_seconds and _PIP + seen.full_seconds, against=seen.no_compile
        ),
    )


def _not_idle(seen: Situation) -> str:
    if seen.steps:
        return f"Ninja has {seen.steps} steps"
    if seen.laid:
        difference = (
            f"has not {' and '.join(seen.decided)} as asked for" if seen.decided else "is of another state"
        )
        return f"the wheel that lies here {difference}"
    return seen.no_ninja


def _of_others(seen: Situation) -> list[str]:
    """Return the changed files that are not compiled against a wheel's libraries so."""
    if seen.target == CHANGED:
        return [each.path for each in seen.reached if each.kind != "native"]
    return [each.path for each in seen.reached if each.part != PYTHON_PART]


def _against_mixed(seen: Situation) -> str:
    if seen.built:
        return _OWN_BUILD
    if others := _of_others(seen):
        only_native = all(each.kind == "native" for each in seen.reached)
        return f"{_TRY} {CHANGED}" if only_native else f"{first_few(others)} must be compiled"
    if seen.mixed:
        return ""
    return seen.no_mixing if seen.reached else f"nothing of {PYTHON_PART} has changed"


def _against_wheel(seen: Situation) -> str:
    if seen.decided:
        return f"{' and '.join(seen.decided)} asks for a compile"
    if seen.built:
        return _OWN_BUILD
    if seen.laid:
        return "" if seen.reached else "one lies here, and serves"
    if seen.in_way:
        return f"{seen.in_way} is in the way"
    return "" if seen.wheel or seen.reached else seen.no_wheel


def choose_offer(offers: Iterable[Offer]) -> Offer:
    """Return the cheapest of those with nothing against them, else the last; unknown times by their kind.

    Nothing is always less than something, and the front end runs Ninja's steps, too; nowhere are both of
    these open: a torch_python for a wheel's libraries, and Ninja in a build of its own.
    """
    right = [each for each in offers if not each.against] or list(offers)[-1:]
    if least := [each for each in right if each.way in ("no-op", "mixed", "ninja install")]:
        return least[0]
    return min(right, key=lambda each: each.seconds if each.seconds is not None else _NOMINAL[each.way])


def describe_offers(chosen: Offer, offers: Iterable[Offer]) -> str:
    """Return the one line on what --auto takes, and on what it does not."""
    others = (each for each in offers if each is not chosen)
    rest = "; ".join(f"{each.way} {each.against or about(each.seconds)}".strip() for each in others)
    return f"auto: {chosen.way}, {chosen.against or about(chosen.seconds)} ({rest})"


def about(seconds: float | None) -> str:
    """Return about how long this takes, in words."""
    if seconds is None:
        return "of a time not known here yet"
    if seconds < 90:
        return f"about {max(round(seconds), 1)} s"
    minutes = round(seconds / 60)
    return f"about {minutes} min" if minutes < 90 else f"about {seconds / 3600:.1f} h"
