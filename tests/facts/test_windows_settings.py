from __future__ import annotations

from pathlib import Path

import pytest

from tests.facts.fakes import windows_machine
from tests.facts.windows_11 import GIT
from torchbuild_tasks.facts import windows
from torchbuild_tasks.facts.probe import Output

VERSION: dict[str, str | int] = {"CurrentBuildNumber": "26100"}


@pytest.mark.parametrize(
    ("registry", "expected"),
    [
        ({windows.FILE_SYSTEM: {"LongPathsEnabled": 1}}, True),
        ({windows.FILE_SYSTEM: {"LongPathsEnabled": 0}}, False),
        ({windows.CURRENT_VERSION: VERSION}, False),
        ({}, None),
    ],
    ids=["on", "off", "not set", "no registry"],
)
def test_long_paths(tmp_path: Path, registry: dict[str, dict[str, str | int]], expected: bool | None) -> None:
    door = windows_machine(tmp_path, registry=registry)
    assert windows.look_at_windows(door, "C:\\src").long_paths is expected


@pytest.mark.parametrize(("value", "expected"), [(1, True), (0, False), (None, False)])
def test_developer_mode(tmp_path: Path, value: int | None, expected: bool) -> None:
    mode: dict[str, str | int] = {} if value is None else {"AllowDevelopmentWithoutDevLicense": value}
    registry = {windows.APP_MODEL: mode, windows.CURRENT_VERSION: VERSION}
    door = windows_machine(tmp_path, registry=registry)
    assert windows.look_at_windows(door, "C:\\src").developer_mode is expected


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (Output(0, "true\n"), True),
        (Output(0, "false\n"), False),
        (Output(1, ""), False),
        (Output(128, "", "fatal: bad boolean config value 'x'"), None),
        (None, None),
    ],
    ids=["on", "off", "not set", "broken", "hangs"],
)
def test_long_paths_of_git(tmp_path: Path, said: Output | None, expected: bool | None) -> None:
    environ = {"Path": "C:\\Program Files\\Git\\cmd"}
    door = windows_machine(tmp_path, files={"C:\\src\\": ""}, programs={GIT: said}, environ=environ)
    assert windows.git_long_paths(door, "C:\\src") is expected
    assert windows.git_long_paths(door, "C:\\none") is expected
    assert door.asked == [
        f"{GIT} -C C:\\src config --type=bool --get core.longpaths",
        f"{GIT} config --type=bool --get core.longpaths",
    ]


def test_without_git_its_setting_is_unknown(tmp_path: Path) -> None:
    assert windows.git_long_paths(windows_machine(tmp_path), "C:\\src") is None


MACHINE = (
    "C:\\Program Files\\WindowsPowerShell\\Modules;C:\\Windows\\system32\\WindowsPowerShell\\v1.0\\Modules"
)
POWERSHELL_5 = f"C:\\Users\\Ada\\OneDrive\\Documents\\WindowsPowerShell\\Modules;{MACHINE}"
POWERSHELL_7 = (
    f"C:\\Users\\Ada\\Documents\\PowerShell\\Modules;c:\\program files\\powershell\\7\\Modules;{MACHINE}"
)


@pytest.mark.parametrize(
    ("prompt", "modules", "expected"),
    [
        ("$P$G", MACHINE, "cmd"),
        ("$P$G", "", "cmd"),
        ("", POWERSHELL_5, "powershell"),
        ("", POWERSHELL_7, "powershell"),
        ("", MACHINE, None),
        ("$P$G", POWERSHELL_7, None),
        ("", "", None),
    ],
)
def test_the_shell_is_known_only_where_the_environment_proves_it(
    tmp_path: Path, prompt: str, modules: str, expected: str | None
) -> None:
    door = windows_machine(tmp_path, environ={"PROMPT": prompt, "PSModulePath": modules})
    assert windows.shell(door) == expected


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (
            {
                "ProductName": "Windows 10 Pro",
                "DisplayVersion": "24H2",
                "CurrentBuildNumber": "26100",
                "UBR": 1,
            },
            "Windows 11 Pro 24H2 (build 26100.1)",
        ),
        (
            {"ProductName": "Windows 10 Home", "ReleaseId": "1909", "CurrentBuildNumber": "18363"},
            "Windows 10 Home 1909 (build 18363)",
        ),
        (
            {"ProductName": "Windows Server 2025 Datacenter", "CurrentBuildNumber": "26100"},
            "Windows Server 2025 Datacenter (build 26100)",
        ),
        ({"ProductName": "Microsoft Windows 10", "CurrentBuildNumber": "x"}, "Windows 10 (build x)"),
        ({"ProductName": "Windows 10 Pro"}, "Windows 10 Pro"),
        ({"CurrentBuildNumber": "26100"}, None),
        ({"ProductName": 3}, None),
    ],
)
def test_the_name_of_this_windows(tmp_path: Path, said: dict[str, str | int], expected: str | None) -> None:
    door = windows_machine(tmp_path, registry={windows.CURRENT_VERSION: said})
    assert windows.windows_name(door) == expected
