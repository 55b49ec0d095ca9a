"""Invariants of the rows of failures: a row's samples match that row only, its near misses match no row."""

from __future__ import annotations

import functools
import re
import shlex

import pytest
from packaging.specifiers import SpecifierSet

from tests.support.diagnosis import book, machine, read
from tests.support.for_each import for_each
from tests.support.machines import linux_facts, with_tree
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.catalog.diagnosis import FailureRow, KindRow
from torchbuild_tasks.catalog.failures import FailureBook, UserFailureRow, fitting_rows
from torchbuild_tasks.features.diagnosis.block import Line
from torchbuild_tasks.features.diagnosis.kinds import Kind
from torchbuild_tasks.features.diagnosis.names import list_names
from torchbuild_tasks.fronts.parsing import parse
from torchbuild_tasks.verbs import VERBS

ROWS = load_catalog().failure
WITH_SAMPLES = [row for row in ROWS if row.samples]
# What a sentence may name; docs/diagnose.md explains them.
INSTALLED = re.compile(r"(g\+\+|clang\+\+|toolset)<=?(<1>|[\d.]+)")
NAMES = {
    *("source", "build", "python", "toolset", "libc", "jobs", "gpus", "driver cuda", "cuda toolkit"),
    *("built TORCH_CUDA_ARCH_LIST", "built USE_CUDA", "built CXXFLAGS", "built cuda toolkit"),
    *("planned jobs", "free memory", "archs"),
    *("checkout", "release", "beside", "torch cuda"),
    *("extension", "importer", "own", "program", "torch itself", "not torch", "unreachable", "uv"),
    *("image build", "jetson", "own container", "by poetry"),
}


@functools.cache
def vocabulary() -> frozenset[str]:
    """The names that a sentence may use: ours, what is looked up about a kind, and groups of its shapes."""
    ids = ("network", "missing-library")  # one that is looked up, one about a part
    rows = (row for row in load_catalog().kind if row.id in ids)
    line = Line(1, "x", "x")
    kinds = [Kind(row=row, program="", line=line, groups={"subject": "z"}) for row in rows]
    looked_up = {name for kind in kinds for name in list_names(kind, machine())}
    groups = {
        name
        for shape in load_catalog().shape
        for pattern in shape.patterns
        for name in re.compile(pattern).groupindex
    }
    stands_for = {row.name for row in load_catalog().stands_for}
    return frozenset({*NAMES, "kind fix", *looked_up, *groups, *stands_for})


def test_every_sign_decides_something() -> None:
    texts = [row.fix + row.command for row in ROWS] + [row.cause + row.fix for row in load_catalog().kind]
    used = "\n".join(sentence for text in texts for sentence in text)
    premises = {name for row in load_catalog().premise for name in row.against}
    for sign in load_catalog().sign:
        assert re.compile(sign.pattern).groups <= 1
        named = sign.name in premises or f"{{!{sign.name}}}" in used or f"{{{sign.name}}}" in used
        assert named, sign.name


def test_rows_are_distinct() -> None:
    ids = [row.id for row in ROWS]
    assert len(ids) == len(set(ids))
    assert all(re.fullmatch(r"[\w.-]+", name) for name in ids), "an anchor of a page"


@for_each(ROWS, lambda row: row.id)
def test_a_row_says_what_it_has_to(row: FailureRow) -> None:
    assert row.cause.endswith((".", "}")), "a sentence"
    assert row.fix, "something to do"
    assert row.source
    assert row.os in ("", "linux", "windows")
    assert row.era in ("", "setuptools", "scikit-build-core")
    SpecifierSet(row.torch)
    assert bool(row.patterns) == bool(row.samples), "a pattern without a sample proves nothing"


@for_each(ROWS, lambda row: row.id)
def test_the_names_in_a_row_are_known(row: FailureRow) -> None:
    groups = max((re.compile(pattern).groups for pattern in row.patterns), default=0)
    for sentence in (row.cause, *row.fix, *row.command):
        flat = re.sub(r"\{(\d)\}", lambda match: f"<{match[1]}>", sentence)
        for name in re.findall(r"\{!?([^{}]+)\}", flat):
            assert (
                name in vocabulary() or name.startswith(("package:", "offered:")) or INSTALLED.fullmatch(name)
            ), name
        assert all(int(number) <= groups for number in re.findall(r"\{(\d)\}", sentence))


@for_each(WITH_SAMPLES, lambda row: row.id)
def test_a_sample_is_matched_by_its_own_row_first_and_explained_without_gaps(row: FailureRow) -> None:
    for sample in row.samples:
        reading = read(sample)
        told = (reading.diagnoses if row.severity == "error" else reading.notes)[0]
        assert told.id == row.id
        assert reading.status == ("diagnosed" if row.severity == "error" else "clean")
        assert "{" not in told.cause + told.fix + told.command
        assert told.fix
        assert told.command or not row.command or {"{", "["} & {*row.command[-1]}


@for_each([row for row in ROWS if row.near], lambda row: row.id)
def test_what_only_looks_alike_is_not_matched(row: FailureRow) -> None:
    for near in row.near:
        assert row.id not in [hit.row.id for hit in book().look_up(near)]


# A message within something that says it without meaning it.
HARMLESS = [
    "[3/9] c++ -DMESSAGE='{}' -c a.cpp -o a.o",
    '   12 | throw Error("{}");',
    "a.cpp:1:2: warning: {}",
]


@for_each(WITH_SAMPLES, lambda row: row.id)
def test_a_message_that_is_only_quoted_is_no_failure(row: FailureRow) -> None:
    sample = row.samples[0].split("\n")[-1].strip()
    log = "".join(f"{form.format(sample)}\n[4/9] Building CXX object b.o\n" for form in HARMLESS)
    assert read(log).status == "clean"


EVERY: tuple[FailureRow | KindRow, ...] = (*ROWS, *load_catalog().kind)
WITH_COMMAND = [row for row in EVERY if row.command]


@for_each(WITH_COMMAND, lambda row: row.id)
def test_a_command_is_one_of_ours(row: FailureRow | KindRow) -> None:
    for sentence in row.command:
        command = re.sub(r"^\[[a-z ]+\] |\{![^{}]+\}", "", sentence)
        words = shlex.split(re.sub(r"\{[^{}]*(?:\{\d\})?[^{}]*\}", "1", command))
        assert words[0] == "torchbuild"
        assert words[1] in VERBS
        parse(words[1], words[2:])


def test_every_verb_that_is_advised_is_one() -> None:
    """Also in the middle of a sentence; "torchbuild gets it" is a sentence about it."""
    rows = (*EVERY, *load_catalog().component)
    said = {
        word for row in rows for text in row.fix for word in re.findall(r"torchbuild ([a-z][\w-]*)", text)
    }
    assert said - {"finds", "gets", "make"} <= set(VERBS)


def test_the_machine_knows_no_name_that_no_row_could_ask_for() -> None:
    assert {name for name in NAMES if machine().value(name)} >= {"source", "build", "python", "jobs", "libc"}
    assert machine().value("nonsense") == ""


def test_a_build_meets_only_the_rows_of_its_own_system_and_torch() -> None:
    facts = with_tree(linux_facts(), version="2.10.0", era="setuptools")
    found = fitting_rows(ROWS, facts)
    assert not [row for row in found if row.os == "windows" or row.era == "scikit-build-core"]
    assert {"cmake4-policy", "use-nightly-fatal"}.isdisjoint(row.id for row in found)
    assert "oom-cc1plus" in [row.id for row in found]


def test_a_row_that_cannot_be_used_is_named() -> None:
    bad = UserFailureRow(
        id="mine", phase="compile", cause="x", source="me", patterns=("(a+)+long",), place="x.toml"
    )
    with pytest.raises(ValueError, match="failure mine.*take for ever"):
        FailureBook((bad,))


def test_the_first_row_that_knows_a_line_is_reported() -> None:
    mine = FailureRow(
        id="mine", phase="compile", cause="Ours.", source="us", patterns=("Killed signal terminated",)
    )
    hits = FailureBook((mine, *ROWS)).look_up("c++: fatal error: Killed signal terminated program cc1plus")
    assert [hit.row.id for hit in hits[:2]] == ["mine", "oom-cc1plus"]
