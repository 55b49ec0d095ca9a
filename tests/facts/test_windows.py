from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.facts.fakes import windows_machine
from tests.facts.windows_11 import ROOT, windows_11
from torchbuild_tasks.facts.gather import gather
from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.facts.windows import look_at_windows
from torchbuild_tasks.model import Facts, Windows
from torchbuild_tasks.values import from_json

DUMP = Path(__file__).parents[1] / "snapshots" / "windows-11.json"


def test_the_dump_of_a_windows_11_is_what_is_found_there(tmp_path: Path) -> None:
    door = windows_11(tmp_path)
    facts = gather(source=ROOT, python=None, patterns=["USE_*", "CUDA_PATH", "DISTUTILS_USE_SDK"], probe=door)
    assert facts == from_json(Facts, json.loads(DUMP.read_text("utf-8")))
    assert len(door.asked) == len(set(door.asked))


def test_an_active_toolset_is_recognised(tmp_path: Path) -> None:
    door = windows_machine(tmp_path, environ={"VCToolsVersion": "14.38.33130\\"})
    assert look_at_windows(door, "C:\\none").active == "14.38.33130"


def test_an_empty_windows_is_full_of_unknowns(tmp_path: Path) -> None:
    found = look_at_windows(windows_machine(tmp_path), "C:\\none")
    assert found == Windows(looked=found.looked, path_characters=found.path_characters)
    assert "C:\\Program Files\\Microsoft Visual Studio\\2022" in found.looked
    facts = gather(source="C:\\none", python=None, patterns=[], probe=windows_machine(tmp_path))
    assert facts.windows == found
    assert facts.tree.problem == "no such folder"
    assert "the py launcher's list" in (facts.pythons[0].problem or "")
    (cl,) = facts.compilers
    assert (cl.name, cl.path, cl.looked[: len(found.looked)]) == ("cl", None, found.looked)


@pytest.mark.integration
def test_a_linux_has_no_such_facts(tmp_path: Path) -> None:
    door = Probe(environ={})
    if door.windows:
        pytest.skip("no system other than Windows here")
    assert gather(source=str(tmp_path), python=None, patterns=[], probe=door).windows is None
