"""A manifest is read whole or refused with the reason."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from torchbuild_tasks.core.manifest.read import read_manifest
from torchbuild_tasks.errors import ManifestError
from torchbuild_tasks.manifest import MANIFEST_SCHEMA
from torchbuild_tasks.values import dumps

# As the first release wrote it: a later one that cannot read it has to raise the schema.
DATA = Path(__file__).with_name("schema-1.json").read_bytes()


def test_a_manifest_of_the_first_schema_is_read_and_written_back() -> None:
    manifest = read_manifest(DATA, "a.json")
    assert manifest.torch == "2.14.0a0"
    assert [each.path for each in manifest.repositories][:2] == ["", "third_party/tinyfmt"]
    assert manifest.repositories[0].untracked[0].path == "aten/new.h"
    assert read_manifest(dumps(manifest).encode(), "b.json") == manifest


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"", "is empty"),
        (b" \n", "is empty"),
        (DATA[: len(DATA) // 2], "is cut off or damaged"),
        (DATA.replace(b":", b";", 1), "is cut off or damaged"),
        (b"\xff\xfe\x00", "is no manifest"),
        (b"hello", "is no manifest"),
        (b"[]", "no manifest of a build"),
        (b'{"schema": 1}', "no manifest of a build"),
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
