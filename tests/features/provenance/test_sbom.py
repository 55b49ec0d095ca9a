"""The bill of materials: what is in it, and that it hangs on nothing but that."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from torchbuild_tasks.features.provenance.choose import Licence
from torchbuild_tasks.features.provenance.sbom import make_sbom
from torchbuild_tasks.model.record import Repository

COMMIT = "a" * 40
THERE = (
    Repository(path="", commit=COMMIT, url="/home/me/pytorch.git"),
    Repository(path="third_party/fmt", commit="b" * 40, url="https://github.com/fmtlib/fmt.git"),
    Repository(path="third_party/own", commit="c" * 40, url="/home/me/own.git", diff_sha256="dd"),
    Repository(path="third_party/left", commit=None, problem="not checked out"),
)
LICENCES = {
    "third_party/fmt": (Licence(file="third_party/fmt/LICENSE", id="MIT"),),
    "third_party/own": (Licence(file="third_party/own/LICENSE"),),
}


def made(content: str = "xyz") -> str:
    time = datetime(2026, 1, 1, tzinfo=UTC)
    return make_sbom(version="2.9", repositories=THERE, licences=LICENCES, content=content, time=time)


def test_submodules_are_components_with_commit_and_licence() -> None:
    bom: Any = json.loads(made())
    parts = {each["name"]: each for each in bom["components"]}
    assert list(parts) == ["third_party/fmt", "third_party/own"]
    fmt, own = parts.values()
    assert (fmt["version"], fmt["purl"]) == ("b" * 40, f"pkg:github/fmtlib/fmt@{'b' * 40}")
    assert fmt["licenses"] == [{"license": {"id": "MIT"}}]
    assert own["licenses"] == [{"license": {"name": "see third_party/own/LICENSE"}}]
    assert own["properties"][0]["name"] == "torchbuild:changed"
    assert bom["metadata"]["component"]["properties"] == [{"name": "torchbuild:commit", "value": COMMIT}]


def test_no_folder_of_this_machine_is_in_it() -> None:
    assert "/home/me" not in made()


def test_the_serial_number_follows_from_the_content() -> None:
    assert made() == made()
    assert json.loads(made())["serialNumber"] != json.loads(made("other"))["serialNumber"]
    assert json.loads(made())["metadata"]["timestamp"] == "2026-01-01T00:00:00+00:00"
