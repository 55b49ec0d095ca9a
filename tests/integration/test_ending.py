"""The end of a build: the program that --notify names is run, and the times of the steps are recorded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.capabilities import needs_linux_compiler
from tests.support.driver import torchbuild
from tests.support.sample import materialise

pytestmark = [pytest.mark.integration, needs_linux_compiler]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return materialise(tmp_path / "minitorch", era="setuptools")


def teller(tmp_path: Path) -> Path:
    program = tmp_path / "tell"
    program.write_text('#!/bin/sh\necho "$TORCHBUILD_RESULT $1" > "$0.told"\n', "utf-8")
    program.chmod(0o755)
    return program


def test_a_program_is_notified_of_the_end_of_a_build(tree: Path, target: Path, tmp_path: Path) -> None:
    told, store = tmp_path / "tell.told", tmp_path / "store"
    told_to = f"{teller(tmp_path)} word"
    # What a cache answers is over before anybody could see how much memory it takes.
    place = ("--source", tree, "--python", target, "--target", "c10")  # four files of twenty-four
    words = ("build", *place, "--yes", "--cache", "none", "--notify", told_to)
    done = torchbuild(*words, environ={"TORCHBUILD_CACHE": str(store)})
    assert done.code == 0, done.err
    assert told.read_text("utf-8") == "ok word\n"
    (history,) = store.glob("history/*.json")
    assert any(
        "Threads.cpp" in output for output in json.dumps(json.loads(history.read_text("utf-8"))).split('"')
    )
    (record,) = (tree / "build").glob("torchbuild-manifest.json")
    kinds = {peak["kind"]: peak["bytes"] for peak in json.loads(record.read_text("utf-8"))["peaks"]}
    assert 10 << 20 < kinds["C++"] < 4 << 30
    assert '"C++"' in (store / "build-memory.json").read_text("utf-8")
    broken = tree / "c10/core/ScalarType.cpp"
    broken.write_text("#error no\n", "utf-8")
    assert torchbuild(*words, environ={"TORCHBUILD_CACHE": str(store)}).code == 6
    assert told.read_text("utf-8") == "failed word\n"


@pytest.mark.slow
def test_a_failed_notification_costs_a_line(tree: Path, target: Path) -> None:
    done = torchbuild("build", "--source", tree, "--python", target, "--yes", "--notify", "/no/such/program")
    assert done.code == 0, done.err
    assert "--notify /no/such/program" in done.err
