"""Values to JSON and back; a dump that was edited badly names its place."""

from __future__ import annotations

import json

import pytest

from tests.support.machines import linux_facts
from torchbuild_tasks.codec import decode, dumps
from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.model import Facts


def test_facts_come_back_equal() -> None:
    facts = linux_facts()
    assert decode(Facts, json.loads(dumps(facts))) == facts


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("cpu", "cores"), "two", r'facts.cpu.cores is "two", not int'),
        (("cpu", "cores"), True, r"facts.cpu.cores is true, not int"),
        (("cpu", "corse"), 2, r"facts.cpu has an unknown key: corse"),
        (("tree", "era"), "make", r'facts.tree.era is "make", not setuptools or scikit-build-core'),
        (("compilers",), {"name": "g++"}, r"facts.compilers is .*, not"),
        (("host",), [], r"facts.host is \[\], not object"),
    ],
)
def test_a_bad_dump_names_the_place(path: tuple[str, ...], value: object, message: str) -> None:
    data = json.loads(dumps(linux_facts()))
    inner = data
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    with pytest.raises(UsageError, match=message):
        decode(Facts, data, "facts")


def test_a_missing_key_is_named() -> None:
    data = json.loads(dumps(linux_facts()))
    del data["host"]
    with pytest.raises(UsageError, match="facts lacks the key host"):
        decode(Facts, data, "facts")


def test_names_that_are_no_unicode_can_still_be_dumped() -> None:
    assert "\\udcff" in dumps({"name": "bad\udcff"})
