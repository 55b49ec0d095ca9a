"""Hints: each at its moment, once, not otherwise, and with what can be done on this machine."""

from __future__ import annotations

from typing import Any

import pytest

from torchbuild_tasks.core.cache.choose import NOTHING_HERE
from torchbuild_tasks.core.hints import Advice, State, advice, hint
from torchbuild_tasks.model import Choice, Host, Source, Tool

GIB = 1 << 30
CAN = Advice(cache="Get one.", linker="a faster linker does: mold is here.", jobs=8)
DEBIAN = Host(os="linux", arch="x86_64", distribution="Debian GNU/Linux 12 (bookworm)")
WINDOWS = Host(os="windows", arch="x86_64", distribution="Windows 11")


def state(**changes: Any) -> State:
    return State(**{"elapsed": 60.0, **changes})


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({}, None),
        ({"elapsed": 1199.0}, None),
        ({"elapsed": 1200.0}, "cache"),
        ({"swap": GIB}, "swap"),
        ({"swap": GIB, "swap_at_start": GIB}, None),
        ({"working": ["link"], "alone": 70.0, "left": 90.0}, "alone"),
        ({"working": ["link"], "alone": 70.0, "left": 5.0}, None),
        ({"working": ["link"], "alone": 70.0}, None),
        ({"working": ["link"], "alone": 5.0, "left": 90.0}, None),
        ({"working": ["C++", "C++"], "alone": 70.0, "left": 90.0}, None),
        ({"working": [], "alone": 70.0, "left": 90.0}, None),
        ({"elapsed": 1300.0, "swap": GIB}, "swap"),
    ],
)
def test_hints(changes: dict[str, Any], name: str | None) -> None:
    found = hint(state(**changes), CAN)
    assert (found and found[0]) == name


def test_a_hint_is_given_once() -> None:
    both = {"elapsed": 1300.0, "swap": GIB}
    said = hint(state(**both, said=frozenset({"swap"})), CAN)
    assert said and said[0] == "cache" and said[1].endswith("Get one.")
    assert hint(state(**both, said=frozenset({"swap", "cache"})), CAN) is None


def test_fewer_jobs_are_named_where_there_are_fewer() -> None:
    text = hint(state(swap=GIB), CAN)
    assert text and "--jobs 4" in text[1]
    text = hint(state(swap=GIB), Advice(jobs=1))
    assert text and "--jobs" not in text[1]


def test_one_job_never_waits_for_others() -> None:
    assert hint(state(working=["C++"], alone=99.0, left=99.0), Advice(jobs=1)) is None


@pytest.mark.parametrize(("kind", "linker"), [("link", True), ("C++", False)])
def test_a_faster_linker_helps_a_link_only(kind: str, linker: bool) -> None:
    said = hint(state(working=[kind], alone=99.0, left=99.0), CAN)
    assert said and ("mold is here" in said[1]) == linker


def cache_of(because: str, *, value: str = "none", source: Source = "default") -> list[Choice]:
    return [Choice(name="compiler cache", value=value, because=because, source=source)]


BUILT = "the tree was built without one, and with one all of it would be compiled anew; see --cache"


@pytest.mark.parametrize(
    ("choices", "here", "host", "words"),
    [
        (cache_of(NOTHING_HERE), (), DEBIAN, "apt install ccache"),
        (cache_of(NOTHING_HERE), (), WINDOWS, "--with-helper sccache"),
        (cache_of(BUILT), ("ccache",), DEBIAN, "--clean takes it"),
        (cache_of(BUILT), (), DEBIAN, "apt install ccache"),
        (cache_of("ccache 4.7", value="ccache 4.7"), ("ccache",), DEBIAN, ""),
        (cache_of("--cache on the command line", source="flag"), (), DEBIAN, ""),
        (cache_of("C and C++: CXX is ccache g++, which is left as it is"), ("ccache",), DEBIAN, ""),
        (cache_of(NOTHING_HERE), ("ccache",), DEBIAN, ""),  # USE_CCACHE=0
        ([], (), DEBIAN, ""),
    ],
)
def test_what_can_be_done_about_no_cache(
    choices: list[Choice], here: tuple[str, ...], host: Host, words: str
) -> None:
    tools = [Tool(name=name, path=f"/usr/bin/{name}") for name in here]
    said = advice(choices, tools, host, 8).cache
    assert words in said and bool(said) == bool(words)
    assert "apt" not in said or host is DEBIAN


@pytest.mark.parametrize(
    ("value", "here", "host", "words"),
    [
        ("", ("mold",), DEBIAN, "mold is here"),
        ("", (), DEBIAN, "apt install mold"),
        ("", (), WINDOWS, ""),
        ("mold 1.10", ("mold",), DEBIAN, ""),
        ("bfd", ("ld.lld",), DEBIAN, "ld.lld is here"),
    ],
)
def test_what_can_be_done_about_a_slow_link(
    value: str, here: tuple[str, ...], host: Host, words: str
) -> None:
    choices = [Choice(name="linker", value=value, because="")] if value else []
    tools = [Tool(name=name, path=f"/usr/bin/{name}") for name in here]
    said = advice(choices, tools, host, 8).linker
    assert words in said and bool(said) == bool(words)
