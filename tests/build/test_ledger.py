"""The files of a run in the build tree: one manifest, always complete and without secrets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.machines import linux_facts, plan_of
from tests.support.preflight import ledger_of
from torchbuild_tasks.build.ledger import Ledger, last_manifest
from torchbuild_tasks.errors import INTERRUPTIONS, BuildFailed
from torchbuild_tasks.model import Command
from torchbuild_tasks.model.history import Peak
from torchbuild_tasks.model.record import MANIFEST_FILE, RECORD_FILE
from torchbuild_tasks.options import BuildRequest

SECRET = "s3cr3tvalue"


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """That of a build with a secret among its flags, in a tree that 0.1.0 has built."""
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / RECORD_FILE).write_text('{"result": "ok"}', "utf-8")
    request = BuildRequest(set=(f"HF_TOKEN={SECRET}", "USE_KINETO=0"))
    facts = linux_facts(environ={"AWS_SECRET": SECRET})
    return ledger_of(request, facts, plan_of(facts, set=request.set), tmp_path)


def written(ledger: Ledger) -> Any:
    text = ledger.manifest_path.read_text("utf-8")
    assert SECRET not in text
    return json.loads(text)


def test_a_run_that_changes_nothing_leaves_what_was_there(ledger: Ledger, tmp_path: Path) -> None:
    with ledger, ledger.stage("check the build tree"):
        ledger.save()
    assert [path.name for path in (tmp_path / "build").iterdir()] == [RECORD_FILE]
    assert last_manifest(tmp_path / "build").name == RECORD_FILE


@pytest.mark.parametrize("error", INTERRUPTIONS)
def test_an_interrupted_build_is_recorded_as_such(error: type[BaseException], ledger: Ledger) -> None:
    """Also if the signal came between two programs, where nothing has made it our own error yet."""
    with pytest.raises(error), ledger:
        ledger.open()
        with ledger.stage("compile"):
            raise error("Ctrl-C")
    found = written(ledger)
    assert (found["result"], found["stages"][-1]["result"]) == ("interrupted", "interrupted")


def test_a_killed_build_has_recorded_its_next_command(ledger: Ledger, tmp_path: Path) -> None:
    with ledger:
        ledger.open()
        ledger.note_command(Command(argv=("ninja", f"-DX_TOKEN={SECRET}"), cwd="/b", because=""))
        ledger.save()
        found = written(ledger)  # as a SIGKILL would leave it here
    assert (found["result"], found["finished"]) == ("running", None)
    assert found["commands"] == [{"argv": ["ninja", "-DX_TOKEN=***"], "cwd": "/b"}]
    assert found["inputs"]["variable USE_KINETO"] == "0"
    assert found["inputs"]["variable HF_TOKEN"].startswith("*** ")
    assert sorted(found["redacted"]) == ["-DX_TOKEN", "AWS_SECRET", "HF_TOKEN"]
    assert not (tmp_path / "build" / RECORD_FILE).exists()
    assert last_manifest(tmp_path / "build") == tmp_path / "build" / MANIFEST_FILE


def test_the_end_of_a_build_is_written_before_and_after_the_epilogue(ledger: Ledger) -> None:
    results: list[str] = []

    def epilogue() -> None:
        results.append(written(ledger)["result"])
        ledger.note(source_problem="no git")
        ledger.save()

    ledger.epilogue = epilogue
    with pytest.raises(BuildFailed), ledger, ledger.stage("compile"):
        ledger.open()
        ledger.note_peaks((Peak(kind="C++", bytes=5, count=2),))
        ledger.note_peaks((Peak(kind="C++", bytes=3, count=1), Peak(kind="link", bytes=1, count=1)))
        raise BuildFailed("no")
    found = written(ledger)
    assert results == [found["result"]] == ["failed"]
    assert found["source_problem"] == "no git"
    assert found["finished"]
    assert [(stage["stage"], stage["result"]) for stage in found["stages"]] == [("compile", "failed")]
    assert found["peaks"] == [
        {"kind": "C++", "bytes": 5, "count": 3},
        {"kind": "link", "bytes": 1, "count": 1},
    ]
