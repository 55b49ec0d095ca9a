"""A manifest is read completely or refused with the reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.for_each import each_case
from torchbuild_tasks.errors import ManifestError
from torchbuild_tasks.features.manifest.compare import Place, differences, with_remedies
from torchbuild_tasks.features.manifest.read import read_manifest
from torchbuild_tasks.model.record import MANIFEST_SCHEMA
from torchbuild_tasks.values import dumps

# As the first release wrote them: a later one has to read them too.
DATA = Path(__file__).with_name("schema-1.json").read_bytes()
RECORD = Path(__file__).with_name("record-schema-1.json").read_bytes()

# Objects whose keys are names of variables, flags, patches or checks, not fields.
TABLES = frozenset(
    (
        *("request", "settings", "environ", "inputs", "patches", "torch", "packages", "digests", "installed"),
        *("unpacked", "pins", "parts", "probes", "git", "hits", "misses", "not_cached", "away", "blocked"),
    )
)


def test_a_manifest_of_the_first_schema_is_read_and_written_back() -> None:
    manifest = read_manifest(DATA, "a.json")
    assert (manifest.schema, manifest.torch, manifest.facts.tree.root) == (2, "2.14.0a0", "/src/minitorch")
    assert (manifest.facts.cpu.cores, manifest.store) == (2, "/home/user/.cache/torchbuild-tasks")
    assert [each.path for each in manifest.repositories][:2] == ["", "third_party/tinyfmt"]
    assert manifest.repositories[0].untracked[0].path == "aten/new.h"
    assert read_manifest(dumps(manifest).encode(), "b.json") == manifest


def test_a_record_of_the_first_schema_is_read_as_a_manifest_without_its_secrets() -> None:
    assert b"v3rysecret" in RECORD
    assert b"pw99" in RECORD
    manifest = read_manifest(RECORD, "a.json")
    assert (manifest.schema, manifest.result, manifest.era) == (2, "ok", "scikit-build-core")
    assert manifest.python == "/src/minitorch/.torchbuild/venv-3.11/bin/python"
    assert (manifest.root, manifest.build_dir) == ("/src/minitorch", "/src/minitorch/build")
    assert manifest.inputs["compiler"] == "/usr/bin/g++ 12.2.0"
    assert manifest.request == {"set": ["X_TOKEN=***", "CMAKE_MY_URL=https://***@host/x"], "yes": True}
    assert manifest.redacted == ("X_TOKEN", "a login in an address")
    assert [each.commit for each in manifest.repositories] == ["bc6f4a4818a985973cbfc6d5b4398442e1447837"]
    assert "0.1.0" in manifest.source_problem
    assert manifest.verify is not None
    text = dumps(manifest)
    assert "v3rysecret" not in text
    assert "pw99" not in text
    assert read_manifest(text.encode(), "b.json") == manifest


def test_the_two_files_of_a_first_build_differ_in_nothing_that_one_never_had() -> None:
    found = differences(read_manifest(RECORD, "a.json"), read_manifest(DATA, "b.json"))
    assert {"toolchain", "requirements", "env file"}.isdisjoint(each.group for each in found)
    here = Place(root="/src", python="/p", manifest="m.json", install=lambda name: name)
    remedies = with_remedies(found, read_manifest(RECORD, "a.json"), here)
    assert {each.name for each in remedies if each.group == "source" and not each.remedy} >= {
        "changes",
        "untracked aten/new.h",
    }


@each_case(
    ("data", "what"),
    [
        (b"", "is empty"),
        (b" \n", "is empty"),
        (DATA[: len(DATA) // 2], "is cut off or damaged"),
        (DATA.replace(b":", b";", 1), "is cut off or damaged"),
        (b"\xff\xfe\x00", "is not a manifest"),
        (b"hello", "is not a manifest"),
        (b"[]", "not a manifest of a build"),
        (b'{"schema": 1}', "not a manifest of a build"),
        (b'{"schema": 1, "env": []}', "not a manifest of a build"),
    ],
)
def test_what_is_no_manifest_is_refused(data: bytes, what: str) -> None:
    with pytest.raises(ManifestError, match=what) as raised:
        read_manifest(data, "x.json")
    assert "torchbuild-manifest.json" in raised.value.next_step


def test_a_newer_schema_is_refused_by_name_even_when_all_else_is_unknown() -> None:
    newer = json.dumps({"schema": MANIFEST_SCHEMA + 1, "tool": "t 9", "repositories": 1, "env": 2, "new": 3})
    with pytest.raises(ManifestError, match=f"has schema {MANIFEST_SCHEMA + 1}") as raised:
        read_manifest(newer.encode(), "x.json")
    assert raised.value.looked == ("written by t 9",)
    assert "pip install --upgrade" in raised.value.next_step


def test_an_edited_value_is_named_by_its_place() -> None:
    data = {**json.loads(DATA), "era": 5}
    with pytest.raises(ManifestError, match=r"manifest\.era is 5"):
        read_manifest(json.dumps(data).encode(), "x.json")


def _with_unknown_keys(value: Any) -> Any:
    """Return JSON with a key more in every object that is a value of ours and no table of names."""
    if isinstance(value, list):
        return [_with_unknown_keys(item) for item in value]
    if not isinstance(value, dict):
        return value
    changed = {name: item if name in TABLES else _with_unknown_keys(item) for name, item in value.items()}
    return {**changed, "of a newer version": {"any": [1]}}


def test_keys_of_a_newer_version_are_left_out_wherever_they_stand() -> None:
    for data in (DATA, RECORD, dumps(read_manifest(DATA, "a.json")).encode()):
        newer = _with_unknown_keys(json.loads(data))
        assert "of a newer version" in newer["choices"][0]
        assert read_manifest(json.dumps(newer).encode(), "b.json") == read_manifest(data, "a.json")


def test_a_value_that_does_not_fit_is_refused_next_to_unknown_keys() -> None:
    data = json.loads(dumps(read_manifest(DATA, "a.json")))
    data["facts"]["cpu"] = {"cores": "two", "new": 1}
    with pytest.raises(ManifestError, match=r"manifest\.facts\.cpu\.cores is \"two\""):
        read_manifest(json.dumps(data).encode(), "x.json")
