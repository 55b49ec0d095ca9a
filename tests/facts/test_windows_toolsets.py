from __future__ import annotations

from pathlib import Path

from tests.facts.fakes import WINDOWS, windows_machine
from tests.facts.windows_11 import TOOLSETS, VS_2019, VS_2022, cl, windows_11
from tests.support.for_each import each_case
from torchbuild_tasks.facts.windows import look_for_sdks, look_for_toolsets, msc_ver
from torchbuild_tasks.model import Toolset, VisualStudio
from torchbuild_tasks.values import replace

STUDIOS = tuple(VisualStudio(path=path, found_via="vswhere") for path in (VS_2019, VS_2022))
MSVC = f"{VS_2022}\\VC\\Tools\\MSVC"


def test_all_toolsets_stand_side_by_side_newest_first(tmp_path: Path) -> None:
    assert look_for_toolsets(windows_11(tmp_path), STUDIOS) == tuple(
        Toolset(version=version, visual_studio=TOOLSETS[version], cl=cl(version), msc_ver=number)
        for version, number in (("14.44.35207", 1944), ("14.38.33130", 1938), ("14.29.30133", 1929))
    )


def test_newest_means_by_number_and_other_folders_are_none(tmp_path: Path) -> None:
    names = ("14.9.1", "14.10.25017", "14.100.1", "latest", "14.44")
    door = windows_machine(tmp_path, files={f"{MSVC}\\{name}\\bin\\": "" for name in names})
    found = [toolset.version for toolset in look_for_toolsets(door, STUDIOS)]
    assert found == ["14.100.1", "14.10.25017", "14.9.1"]


def test_a_toolset_for_other_targets_has_no_cl(tmp_path: Path) -> None:
    door = windows_machine(tmp_path, programs={f"{MSVC}\\14.44.35207\\bin\\Hostx64\\x86\\cl.exe": ""})
    (toolset,) = look_for_toolsets(door, STUDIOS)
    assert (toolset.cl, toolset.msc_ver) == (None, 1944)


def test_an_arm_machine_has_its_own_compiler(tmp_path: Path) -> None:
    path = f"{MSVC}\\14.44.35207\\bin\\Hostarm64\\arm64\\cl.exe"
    door = windows_machine(tmp_path, programs={path: ""})
    door = replace(door, kernel=WINDOWS._replace(machine="ARM64"))
    assert look_for_toolsets(door, STUDIOS)[0].cl == path


@each_case(
    ("version", "number"),
    [
        ("14.0.24210", 1900),
        ("14.16.27023", 1916),
        ("14.29.30133", 1929),
        ("14.38.33130", 1938),
        ("14.44.35207", 1944),
        ("14.50.35717", 1950),
        ("15.0.1", None),
    ],
)
def test_the_number_that_the_compiler_defines(version: str, number: int | None) -> None:
    """Pairs from docs of the C++ team: Visual Studio 2015, 2017 15.9, 2019 16.11, 2022, 2026."""
    assert msc_ver(version) == number


def test_an_sdk_has_the_header_of_the_desktop(tmp_path: Path) -> None:
    assert look_for_sdks(windows_11(tmp_path)) == ("10.0.26100.0", "10.0.22621.0")


def test_without_the_registry_the_usual_place_is_looked_at(tmp_path: Path) -> None:
    kits = "C:\\Program Files (x86)\\Windows Kits\\10\\Include"
    files = {f"{kits}\\{name}\\um\\windows.h": "" for name in ("10.0.9.0", "10.0.22621.0", "wdf")}
    assert look_for_sdks(windows_machine(tmp_path, files=files)) == ("10.0.22621.0", "10.0.9.0")
    assert look_for_sdks(windows_machine(tmp_path / "other")) == ()
