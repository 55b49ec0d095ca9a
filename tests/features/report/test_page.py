"""The page: complete without a script, and no name becomes markup."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from typing import Any

import pytest

from tests.support.for_each import each_case
from torchbuild_tasks.features.report import page
from torchbuild_tasks.features.report.page import Page, Report, render
from torchbuild_tasks.features.report.verb import load_page
from torchbuild_tasks.model import CacheReport
from torchbuild_tasks.model.history import PastBuild, Peak
from torchbuild_tasks.ninja.log import Step
from torchbuild_tasks.ninja.step_times import Difference
from torchbuild_tasks.ninja.timeline import Chain, lanes
from torchbuild_tasks.text.visible import visible

HOSTILE = "a/</script><script>alert(1)</script>&\"'<b>@{data}\u2028\udcff.cpp.o"


def step(output: str, start: float, end: float) -> Step:
    return Step(output=output, start=start, end=end, outputs=(output,))


STEPS = [step("x.dir/__/a.cpp.o", 0, 70), step(HOSTILE, 0, 9), step("lib/libx.so", 70, 71)]


def report(**changes: Any) -> Report:
    values: dict[str, Any] = {
        "torch": "1.13.1",
        "result": "ok",
        "when": "2026-01-01 00:00:00 UTC",
        "machine": "Debian 12, 2 cores",
        "source": "/src/pytorch",
        "log": "/src/pytorch/build/.ninja_log",
        "timeline": lanes(STEPS),
        "chain": Chain((STEPS[0], STEPS[2]), "graph"),
    }
    return Report(**{**values, **changes})


class Reader(HTMLParser):
    """Collect the elements, the content of script elements, and all other text."""

    VOID = ("meta", "input", "br")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag, f"</{tag}> closes nothing"

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += data
        else:
            self.words.append(data)


def read(**changes: Any) -> Reader:
    reader = Reader(render(load_page(), report(**changes)))
    assert reader.open == []
    return reader


def payload(reader: Reader) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(reader.scripts[0])
    return found


def test_the_elements_close_and_a_hostile_name_stays_a_name() -> None:
    reader = read(
        torch=HOSTILE,
        machine=HOSTILE,
        stages=[(HOSTILE, 1.0, HOSTILE)],
        notes=[HOSTILE],
        caches=[CacheReport(tool=HOSTILE, hits={HOSTILE: 1}, not_cached={HOSTILE: 2})],
        peaks=[Peak(kind=HOSTILE, bytes=1 << 30, count=1)],
        builds=[PastBuild(finished=HOSTILE, seconds=1.0, steps=1)],
        differences=[Difference(HOSTILE, 1.0, 9.0)],
        source=HOSTILE,
    )
    assert len(reader.scripts) == 2
    assert not any(tag == "b" and attributes for tag, attributes in reader.elements)
    assert "alert(1)" not in reader.scripts[1]
    assert payload(reader)["steps"][0][0] == visible(HOSTILE)
    assert "</script><script>alert(1)</script>&\"'<b>@{data}" in "".join(reader.words)


@each_case("text", ["</script>", "<!--", "<script", "]]>", "&amp;", "\u2028", "\udc80"])
def test_data_cannot_leave_its_element(text: str) -> None:
    embedded = page.script_json({text: text})
    assert "<" not in embedded and ">" not in embedded and embedded.isascii()
    assert json.loads(embedded) == {visible(text): visible(text)}


def test_nothing_comes_from_elsewhere() -> None:
    """No address, and a policy that would forbid one."""
    text = render(load_page(), report())
    assert "http:" not in text and "https:" not in text and "@import" not in text
    reader = Reader(text)
    assert not [attributes for _, attributes in reader.elements if {"src", "href"} & set(attributes)]
    policy = next(a["content"] for t, a in reader.elements if a.get("http-equiv"))
    assert policy is not None and policy.startswith("default-src 'none'")


def test_the_tables_are_there_without_a_script() -> None:
    words = " ".join(
        read(
            stages=[("compile", 71.5, "ok"), ("verify", 2.0, "failed")],
            differences=[Difference("x.dir/__/a.cpp.o", 50.0, 70.0), Difference("lib/libx.so", None, 1.0)],
            gone=["old.o"],
            hits=1,
            peaks=[Peak(kind="C++", bytes=3 << 29, count=1234), Peak(kind="link", bytes=5 << 20, count=2)],
            builds=[PastBuild(finished="2025-12-31T23:00:00+00:00", seconds=35.5, steps=3, work=60.0)],
        ).words
    )
    for expected in (
        "Build of torch 1.13.1",
        "compile",
        "failed",
        "71.50 s",
        "Each step needs what the one before it made",
        "70.00 s",
        "+20.0 s",
        "1 are new",
        "1 are gone",
        "1.50 GiB",
        "1,234",
        "5 MiB",
        "The build before 35.5 s 2.00 of it now",
        "2025-12-31 23:00:00 UTC",
        "less than a tenth of their usual time",
    ):
        assert expected in words


def test_the_chain_says_how_it_is_known() -> None:
    words = " ".join(read(chain=Chain((STEPS[0],), "times")).words)
    assert "It may have waited for that step, or only for a free core." in words


def test_what_is_not_known_is_left_out() -> None:
    words = " ".join(read().words)
    for missing in ("Stages", "Compiler cache", "Peak memory", "Against the time before", "Before"):
        assert missing not in words


def test_the_data_has_lanes_kinds_and_the_chain() -> None:
    data = payload(read())
    assert data["kinds"] == ["C++", "link"] and data["lanes"] == 2 and data["wall"] == 71
    assert [(row[1], row[5]) for row in data["steps"]] == [(0, 0), (0, 1), (1, 1)]


def test_a_build_of_one_step_and_of_none() -> None:
    one = [step("a.cpp.o", 0, 0)]
    assert payload(read(timeline=lanes(one), chain=Chain((), "times")))["lanes"] == 1
    assert payload(read(timeline=[], chain=Chain((), "times")))["steps"] == []


def test_a_missing_field_of_the_page_is_an_error() -> None:
    with pytest.raises(Exception, match="unknown"):
        render(Page(html="@{unknown}", style="", script=""), report())


def test_the_caches_own_figures_come_before_guesses() -> None:
    ccache = CacheReport(
        tool="ccache",
        hits={"C/C++": 30},
        misses={"C/C++": 9, "CUDA": 1},
        not_cached={"bad compiler": 4},
        shared=3,
    )
    words = " ".join(read(caches=[ccache], hits=12).words)
    assert "75% 30 of 40 compiles" in words
    assert "ccache, C/C++ 30 9" in words and "ccache, CUDA 0 1" in words
    assert "of these from the shared cache 3" in words and "not kept: bad compiler 4" in words
    assert "less than a tenth" not in words


@each_case("result", ["still running", "cut off", "failed", "interrupted"])
def test_a_part_of_a_build_is_not_taken_for_a_complete_one(result: str) -> None:
    before = [PastBuild(finished="2025-12-31T23:00:00+00:00", seconds=35.5, steps=3)]
    words = " ".join(read(result=result, stages=[("plan", 0.13, "ok")], builds=before).words)
    for said in ("of 0.13 s in all", "more cores would not", "this build takes", "of it now"):
        assert said not in words
    assert f"of a part: {result}" in words and f"this part of the build ({result}) takes" in words
    assert f"this one, {result}" in words
