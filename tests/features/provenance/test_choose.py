"""Licences recognised by their texts, and the statement that is derived from a manifest."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.for_each import each_case
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.features.manifest.read import read_manifest
from torchbuild_tasks.features.provenance.choose import PREDICATE, STATEMENT, identify_licence, statement

MANIFEST = read_manifest(
    (Path(__file__).parents[1] / "manifest/schema-1.json").read_bytes(), "torchbuild-manifest.json"
)
BSD = """Redistributions of source code must retain the above. Redistributions in binary
form must reproduce the above."""


@each_case(
    ("text", "id"),
    [
        ("   Apache License\n      Version 2.0, January 2004", "Apache-2.0"),
        (BSD, "BSD-2-Clause"),
        (f"{BSD} Neither the name of X may be used to endorse or promote products.", "BSD-3-Clause"),
        (
            "Permission is hereby granted, free of charge, to all. The above copyright notice and this\n"
            "permission notice shall be included",
            "MIT",
        ),
        ("Boost Software License - Version 1.0 - August 17th, 2003", "BSL-1.0"),
        ("All rights reserved.", ""),
    ],
)
def test_a_licence_is_known_by_its_words(text: str, id: str) -> None:
    assert identify_licence(text, load_catalog().licence) == id


def test_every_licence_has_words_as_they_are_looked_for() -> None:
    rows = load_catalog().licence
    assert len({row.id for row in rows}) == len(rows)
    assert all(words == " ".join(words.lower().split()) for row in rows for words in row.says)


def test_the_statement_names_the_wheel_its_sources_and_the_manifest() -> None:
    said = json.loads(statement(MANIFEST, "torch-1.whl", "aa", "bb"))
    assert (said["_type"], said["predicateType"]) == (STATEMENT, PREDICATE)
    assert said["subject"] == [{"name": "torch-1.whl", "digest": {"sha256": "aa"}}]
    built, run = said["predicate"]["buildDefinition"], said["predicate"]["runDetails"]
    commits = {
        each["name"]: each["digest"]["gitCommit"]
        for each in built["resolvedDependencies"]
        if "gitCommit" in each.get("digest", {})
    }
    assert commits == {each.path or "torch": each.commit for each in MANIFEST.repositories if each.commit}
    sources = {each["name"]: each.get("uri") for each in built["resolvedDependencies"] if "name" in each}
    for each in MANIFEST.repositories:
        assert sources[each.path or "torch"] == f"git+{each.url}@{each.commit}"
    assert run["byproducts"][0]["digest"] == {"sha256": "bb"}
    assert run["metadata"]["startedOn"].endswith("Z")
