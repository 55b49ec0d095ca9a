"""Hints: each is shown once, only when it applies, and advises what this machine can do."""

from __future__ import annotations

from typing import Any

from tests.support.for_each import each_case
from tests.support.machines import linux_facts, plan_of
from torchbuild_tasks.build.hints import Advice, State, advice, hint
from torchbuild_tasks.features.cache.choose import NOTHING_HERE
from torchbuild_tasks.model import BuildPlan, Choice, Finding, Source, Tool
from torchbuild_tasks.values import replace

GIB = 1 << 30
CAN = Advice(cache="Get one.", linker="a faster linker does: mold is here.", jobs=8)


def state(**changes: Any) -> State:
    return State(**{"elapsed": 60.0, **changes})


@each_case(
    ("changes", "name"),
    [
        ({}, None),
        ({"elapsed": 1199.0}, None),
        ({"elapsed": 1200.0}, "cache"),
        ({"swap": GIB}, "swap"),
        ({"swap": GIB, "swap_at_start": GIB}, None),
        ({"working": ["link"], "alone": 70.0, "seconds_left": 90.0}, "alone"),
        ({"working": ["link"], "alone": 70.0, "seconds_left": 5.0}, None),
        ({"working": ["link"], "alone": 70.0}, None),
        ({"working": ["link"], "alone": 5.0, "seconds_left": 90.0}, None),
        ({"working": ["C++", "C++"], "alone": 70.0, "seconds_left": 90.0}, None),
        ({"working": [], "alone": 70.0, "seconds_left": 90.0}, None),
        ({"elapsed": 1300.0, "swap": GIB}, "swap"),
    ],
)
def test_hints(changes: dict[str, Any], name: str | None) -> None:
    found = hint(state(**changes), CAN)
    assert (found and found[0]) == name


def test_a_hint_is_given_once() -> None:
    both = {"elapsed": 1300.0, "swap": GIB}
    said = hint(state(**both, shown=frozenset({"swap"})), CAN)
    assert said and said[0] == "cache" and said[1].endswith("Get one.")
    assert hint(state(**both, shown=frozenset({"swap", "cache"})), CAN) is None


def test_fewer_jobs_are_named_where_there_are_fewer() -> None:
    text = hint(state(swap=GIB), CAN)
    assert text and "--jobs 4" in text[1]
    text = hint(state(swap=GIB), Advice(jobs=1))
    assert text and "--jobs" not in text[1]


def test_one_job_never_waits_for_others() -> None:
    assert hint(state(working=["C++"], alone=99.0, seconds_left=99.0), Advice(jobs=1)) is None


@each_case(("kind", "linker"), [("link", True), ("C++", False)])
def test_a_faster_linker_helps_a_link_only(kind: str, linker: bool) -> None:
    said = hint(state(working=[kind], alone=99.0, seconds_left=99.0), CAN)
    assert said and ("mold is here" in said[1]) == linker


def planned(*choices: Choice, findings: tuple[Finding, ...] = ()) -> BuildPlan:
    jobs = Choice(name="jobs", value="6", because="")
    return replace(plan_of(linux_facts()), choices=(jobs, *choices), findings=findings)


def tools(*names: str) -> list[Tool]:
    return [*(Tool(name=name, path=f"/usr/bin/{name}") for name in names), Tool(name="missing")]


def cache_of(because: str, *, value: str = "none", source: Source = "default") -> tuple[Choice, ...]:
    return (Choice(name="compiler cache", value=value, because=because, source=source),)


BUILT = "the tree was built without one, and with one all of it would be compiled again; see --cache"


GET = (Finding(id="cache", status="unknown", text="", fix="Install ccache (sudo dnf install ccache)."),)


@each_case(
    ("choices", "here", "findings", "words"),
    [
        (cache_of(NOTHING_HERE), (), GET, "sudo dnf install ccache"),
        (cache_of(NOTHING_HERE), (), (), "--with-helper sccache"),
        (cache_of(BUILT), ("ccache",), (), "--clean takes it"),
        (cache_of(BUILT), (), (), "--with-helper sccache"),
        (cache_of("ccache 4.7", value="ccache 4.7"), ("ccache",), (), ""),
        (cache_of("--cache on the command line", source="flag"), (), (), ""),
        (cache_of("C and C++: CXX is ccache g++, which is left as it is"), ("ccache",), (), ""),
        (cache_of("USE_CCACHE=0 (environment) wants no ccache"), ("ccache",), (), ""),
        ((), (), GET, ""),
    ],
)
def test_what_can_be_done_about_no_cache(
    choices: tuple[Choice, ...], here: tuple[str, ...], findings: tuple[Finding, ...], words: str
) -> None:
    said = advice(planned(*choices, findings=findings), tools(*here)).cache
    assert words in said and bool(said) == bool(words)


OFFER = (Finding(id="linker", status="unknown", text="", fix="sudo apt install mold."),)


@each_case(
    ("value", "source", "here", "findings", "words"),
    [
        ("default", "default", ("mold",), (), "--linker mold."),
        ("default", "default", ("ld.lld",), (), "--linker lld."),
        ("default", "default", (), OFFER, "sudo apt install mold."),
        ("default", "default", (), (), ""),
        ("default", "flag", ("mold",), OFFER, ""),
        ("mold 1.10", "default", ("mold",), (), ""),
        ("", "default", ("mold",), OFFER, ""),
    ],
)
def test_what_can_be_done_about_a_slow_link(
    value: str, source: Source, here: tuple[str, ...], findings: tuple[Finding, ...], words: str
) -> None:
    choices = [Choice(name="linker", value=value, because="", source=source)] if value else []
    said = advice(planned(*choices, findings=findings), tools(*here)).linker
    assert words in said and bool(said) == bool(words)


def test_the_jobs_are_the_plans() -> None:
    assert advice(planned(), ()).jobs == 6
