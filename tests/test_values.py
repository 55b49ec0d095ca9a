"""Values to JSON and back; a dump that was edited badly names its place; what every class of values is."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import json
import pkgutil
import typing
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import msgspec
import pytest

import torchbuild_tasks
from tests.support.for_each import each_case
from tests.support.machines import linux_facts
from torchbuild_tasks.catalog import TABLES, Catalog
from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.features.bisect.choose import Bisection
from torchbuild_tasks.features.cache.address import read_remotes
from torchbuild_tasks.features.helpers.store import ToolkitMarker
from torchbuild_tasks.features.patches.act import Record
from torchbuild_tasks.features.source.places import Note
from torchbuild_tasks.model import BuildPlan, Facts
from torchbuild_tasks.model.history import History, PastPeaks
from torchbuild_tasks.model.record import Manifest
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.system.mark import Marker
from torchbuild_tasks.values import dumps, from_json, parse_toml, replace, to_json, toml_value

# What is read from files; the rows are those of the catalog's tables.
DECODED = (
    *(BuildPlan, Bisection, Facts, History, Manifest, Marker, Note, PastPeaks, Record, ToolkitMarker),
    *(vars(Catalog)[table].kind for table in TABLES),
)


class Inner(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    cores: int = 0
    share: float = 0.0
    kind: Literal["a", "b"] | None = None
    pair: tuple[int, int] = (0, 0)
    words: tuple[str, ...] = ()
    by_name: Mapping[str, int] = msgspec.field(default_factory=dict)
    anything: object = None


class Outer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    inner: Inner | None = None
    many: tuple[Inner, ...] = ()
    named: Mapping[str, Inner] = msgspec.field(default_factory=dict)


def test_facts_come_back_equal() -> None:
    facts = linux_facts()
    assert from_json(Facts, json.loads(dumps(facts))) == facts


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("cpu", "cores"), "two", r'facts.cpu.cores is "two", not int'),
        (("cpu", "cores"), True, r"facts.cpu.cores is true, not int"),
        (("cpu", "corse"), 2, r"facts.cpu has an unknown key: corse; did you mean cores\?"),
        (("tree", "era"), "make", r'facts.tree.era is "make", not scikit-build-core or setuptools'),
        (("compilers",), {"name": "g++"}, r"facts.compilers is .*, not array"),
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
        from_json(Facts, data, "facts")


@each_case(
    ("data", "message"),
    [
        ([], "it is [], not object"),
        ({"inner": 3}, "it.inner is 3, not object or null"),
        ({"inner": {"words": [1]}}, "it.inner.words[0] is 1, not str"),
        ({"inner": {"kind": "c"}}, 'it.inner.kind is "c", not a or b'),
        ({"inner": {"pair": [1]}}, "it.inner.pair: Expected array of length 2, got 1"),
        ({"many": [{}, {"share": True}]}, "it.many[1].share is true, not float"),
        ({"many": [{}, {"coers": 1}]}, "it.many[1] has an unknown key: coers; did you mean cores?"),
        # msgspec itself names no key of a mapping.
        ({"inner": {"by_name": {"x": 1, "y": "2", "z": 3}}}, 'it.inner.by_name.y is "2", not int'),
        ({"named": {"x": {}, "y": {"cores": None}}}, "it.named.y.cores is null, not int"),
        (
            {"named": {"x": {"cores": 1}, "y": {"coers": 1}}},
            "it.named.y has an unknown key: coers; did you mean cores?",
        ),
        ({"named": {"x": {"kind": "a"}, "y": {"kind": "c"}}}, 'it.named.y.kind is "c", not a or b'),
        ({"inner": {"kind": "\udce9"}}, "it holds a text that is not Unicode"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_named_with_its_place(data: object, message: str) -> None:
    with pytest.raises(UsageError) as error:
        from_json(Outer, data, "it")
    assert error.value.what == message


def test_an_unknown_key_lists_those_that_are_known() -> None:
    with pytest.raises(UsageError) as error:
        from_json(Outer, {"named": {"x": {"zzz": 1}}}, "it")
    assert error.value.what == "it.named.x has an unknown key: zzz"
    assert error.value.looked == ("known: cores, share, kind, pair, words, by_name, anything",)


def test_a_missing_key_is_named() -> None:
    data = json.loads(dumps(linux_facts()))
    del data["host"]
    with pytest.raises(UsageError, match="facts lacks the key host"):
        from_json(Facts, data, "facts")


def test_integers_are_numbers_and_lists_are_tuples() -> None:
    inner = from_json(Inner, {"share": 3, "words": ["a"], "pair": [1, 2], "anything": {"x": [1]}})
    assert (inner.share, inner.words, inner.pair, inner.anything) == (3.0, ("a",), (1, 2), {"x": [1]})
    assert isinstance(inner.share, float)


def test_json_has_lists_and_the_order_of_the_fields() -> None:
    plain = to_json(Outer(inner=Inner(words=("a", "b")), named={"x": Inner()}))
    assert list(plain) == ["inner", "many", "named"]
    assert plain["inner"]["words"] == ["a", "b"]
    assert plain["named"]["x"]["pair"] == [0, 0]


@pytest.mark.parametrize("value", ['a"\\\n\t', "\x7f", "\N{GRINNING FACE}", ["a", "b"], 7, True])
def test_what_is_written_as_toml_is_read_as_it_was(value: object) -> None:
    assert parse_toml(f"x = {toml_value(value)}") == {"x": value}


def test_names_that_are_no_unicode_can_still_be_dumped() -> None:
    assert "\\udcff" in dumps({"name": "bad\udcff"})
    assert "\\udcff" in dumps(Inner(words=("bad\udcff",)))


def test_values_of_both_kinds_can_be_changed() -> None:
    assert replace(Inner(cores=1), cores=2) == Inner(cores=2)
    assert replace(BuildRequest(), jobs=3).jobs == 3
    with pytest.raises(TypeError):
        replace(Inner(), corse=2)


def test_secrets_are_in_no_repr() -> None:
    (remote,) = read_remotes("redis://user:planted-secret@host/")
    assert remote.password == "planted-secret"
    assert "planted-secret" in remote.secrets.values()
    assert "planted-secret" not in repr(remote) + repr((remote,))
    assert "host='host'" in repr(remote)


def ours() -> Iterator[type]:
    """Every class of the package."""
    skipped = ("_windows", "_posix", "_probe", "_checks", "__main__")
    for module in pkgutil.walk_packages(torchbuild_tasks.__path__, "torchbuild_tasks."):
        if not module.name.endswith(skipped) and ".verify." not in module.name:
            for value in vars(importlib.import_module(module.name)).values():
                if inspect.isclass(value) and value.__module__ == module.name:
                    yield value


def parts(kind: Any) -> Iterator[type[msgspec.Struct]]:
    """Every Struct that a value of this type may hold."""
    if inspect.isclass(kind) and issubclass(kind, msgspec.Struct):
        yield kind
        for hint in typing.get_type_hints(kind).values():
            yield from parts(hint)
    for inner in typing.get_args(kind):
        yield from parts(inner)


def test_what_is_decoded_refuses_unknown_keys() -> None:
    kinds = {part for kind in DECODED for part in parts(kind)}
    assert len(kinds) > 100
    assert [kind for kind in kinds if not kind.__struct_config__.forbid_unknown_fields] == []
    for kind in kinds:
        msgspec.inspect.type_info(kind)  # each type of a field is imported for real


# Made by position: few fields whose order is plain.
POSITIONAL = 24


def test_values_are_frozen_and_take_keywords_only() -> None:
    """`kw_only` is not inherited, and no other check finds a class that lacks it."""
    kinds = [kind for kind in ours() if issubclass(kind, msgspec.Struct)]
    assert len(kinds) > 250
    assert [kind for kind in kinds if not kind.__struct_config__.frozen] == []
    loose = [kind.__name__ for kind in kinds if kind.__match_args__]  # the fields that position may give
    assert len(loose) <= POSITIONAL, loose


def test_only_the_flags_are_frozen_dataclasses() -> None:
    frozen = {
        kind.__name__
        for kind in ours()
        if dataclasses.is_dataclass(kind) and kind.__dataclass_params__.frozen  # type: ignore[attr-defined]
    }
    assert {name for name in frozen if not name.endswith("Request")} == set()


def test_what_a_question_works_out_is_kept() -> None:
    question = Question(BuildRequest(), linux_facts(), Catalog())
    assert question.version is question.version


def test_another_flag_is_changed_in_a_copy_and_one_that_there_is_not_is_refused() -> None:
    first = BuildRequest(jobs=4)
    assert replace(first, jobs=2) == BuildRequest(jobs=2) and first == BuildRequest(jobs=4)
    with pytest.raises(TypeError, match="BuildRequest has no job$"):
        replace(first, job=2)
