from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.facts.fakes import FakeProbe, windows_machine
from tests.facts.windows_11 import ANSWER, VCVARSALL, VS_2019, VS_2022, VSWHERE, windows_11
from torchbuild_tasks.facts.probe import Output
from torchbuild_tasks.facts.windows import look_for_visual_studios
from torchbuild_tasks.model import VisualStudio

ENTERPRISE = "C:\\Program Files\\Microsoft Visual Studio\\18\\Enterprise"


def found(door: FakeProbe) -> list[tuple[str, str]]:
    return [(studio.path, studio.found_via) for studio in look_for_visual_studios(door)[0]]


def test_vswhere_is_run_for_all_versions_with_the_compiler(tmp_path: Path) -> None:
    door = windows_11(tmp_path)
    studios, looked = look_for_visual_studios(door)
    assert studios == (
        VisualStudio(
            path=VS_2022,
            found_via="vswhere",
            version="17.14.36414.22",
            release="17.14.13",
            product="Community",
            vcvarsall=f"{VS_2022}\\{VCVARSALL}",
        ),
        VisualStudio(
            path=VS_2019,
            found_via="vswhere",
            version="16.11.35913.81",
            release="16.11.35",
            product="BuildTools",
            vcvarsall=f"{VS_2019}\\{VCVARSALL}",
        ),
    )
    assert looked[0] == VSWHERE
    (command,) = door.asked
    assert "-products * -requires Microsoft.VisualStudio.Component.VC.Tools.x86.x64" in command
    assert "-version" not in command
    assert "-latest" not in command


def test_vswhere_may_be_on_path(tmp_path: Path) -> None:
    assert found(windows_machine(tmp_path, programs={"C:\\bin\\vswhere.exe": ANSWER})) == [
        (VS_2022, "vswhere"),
        (VS_2019, "vswhere"),
    ]


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (None, "gave no answer"),
        (Output(87, "", "Error 0x57"), "ended with 87"),
        (Output(0, "no JSON"), "not JSON"),
        (Output(0, "[" * 100_000), "not JSON"),
        (Output(0, "{}"), ""),
        (Output(0, '[3, {}, {"installationPath": ""}, {"installationPath": 3}]'), ""),
    ],
    ids=["hangs", "fails", "rubbish", "deep", "another kind", "entries of other kinds"],
)
def test_a_vswhere_that_cannot_be_used_is_reported(tmp_path: Path, said: Output | None, words: str) -> None:
    studios, looked = look_for_visual_studios(windows_machine(tmp_path, programs={VSWHERE: said}))
    assert studios == ()
    assert words in looked[0]
    assert looked[0].startswith(VSWHERE)


def test_what_vswhere_leaves_out_of_an_answer_is_unknown(tmp_path: Path) -> None:
    said = json.dumps([{"installationPath": f"{VS_2022}\\"}])
    studios, _ = look_for_visual_studios(windows_machine(tmp_path, programs={VSWHERE: said}))
    assert studios == (VisualStudio(path=VS_2022, found_via="vswhere"),)


@pytest.mark.parametrize(
    "environ",
    [
        {"VSINSTALLDIR": f"{ENTERPRISE}\\", "VSCMD_VER": "18.0.1"},
        {"VCINSTALLDIR": f"{ENTERPRISE}\\VC\\", "VSCMD_VER": "18.0.1"},
    ],
    ids=list,
)
def test_an_active_shell_knows_its_installation(tmp_path: Path, environ: dict[str, str]) -> None:
    files = {f"{ENTERPRISE}\\{VCVARSALL}": ""}
    (studio,), _ = look_for_visual_studios(windows_machine(tmp_path, files=files, environ=environ))
    assert (studio.path, studio.release, studio.found_via) == (ENTERPRISE, "18.0.1", next(iter(environ)))
    assert studio.vcvarsall == f"{ENTERPRISE}\\{VCVARSALL}"


def test_a_stale_variable_names_nothing(tmp_path: Path) -> None:
    assert found(windows_machine(tmp_path, environ={"VSINSTALLDIR": "C:\\gone"})) == []


def test_known_folders_are_the_last_resort_and_nothing_is_found_twice(tmp_path: Path) -> None:
    files = {f"{ENTERPRISE}\\{VCVARSALL}": "", f"{VS_2019}\\{VCVARSALL}": ""}
    door = windows_11(tmp_path, VSINSTALLDIR=VS_2022.lower() + "\\")
    windows_machine(tmp_path, files=files)
    assert found(door) == [(VS_2022, "vswhere"), (VS_2019, "vswhere"), (ENTERPRISE, "known folder")]


def test_without_the_cpp_workload_there_is_no_vcvarsall(tmp_path: Path) -> None:
    (studio,), _ = look_for_visual_studios(
        windows_machine(tmp_path, files={f"{ENTERPRISE}\\Common7\\IDE\\": ""})
    )
    assert (studio.product, studio.vcvarsall) == ("Enterprise", None)


def test_a_miss_lists_every_place(tmp_path: Path) -> None:
    studios, looked = look_for_visual_studios(windows_machine(tmp_path))
    assert studios == ()
    assert looked[:4] == (
        VSWHERE,
        "vswhere on PATH",
        "environment VSINSTALLDIR",
        "environment VCINSTALLDIR",
    )
    years = {place.rpartition("\\")[2] for place in looked[4:]}
    assert years == {"2019", "2022", "2026", "18"}
