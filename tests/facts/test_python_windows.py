from __future__ import annotations

from pathlib import Path

from tests.facts.fakes import windows_machine
from torchbuild_tasks.facts.probe import Output
from torchbuild_tasks.facts.python import list_windows_pythons

PY = "C:\\bin\\py.exe"
LIST = """Installed Pythons found by py Launcher for Windows
  *               C:\\venv\\Scripts\\python.exe
 -V:3.13t         C:\\P313\\python3.13t.exe
 -V:3.12 *        C:\\Program Files\\P312\\python.exe
 -3.9-64          C:\\P39\\python.exe
 -V:Astral/CPython3.11.4 C:\\uv\\python.exe
 -V:3.8           (unavailable)
 -V:3.7           C:\\gone\\python.exe
"""
PLACES = (
    *("C:\\P313\\python3.13t.exe", "C:\\Program Files\\P312\\python.exe", "C:\\P39\\python.exe"),
    *("C:\\uv\\python.exe", "C:\\P310\\python.exe", "C:\\conda\\python.exe"),
)
PROGRAMS: dict[str, str | Output | None] = {path: "" for path in PLACES}  # noqa: C420 - of another type


def test_the_list_of_the_launcher(tmp_path: Path) -> None:
    door = windows_machine(tmp_path, programs={**PROGRAMS, PY: LIST.replace("\n", "\r\n")})
    assert [(place.path, version) for place, version in list_windows_pythons(door)] == [
        ("C:\\P313\\python3.13t.exe", "3.13t"),
        ("C:\\Program Files\\P312\\python.exe", "3.12"),
        ("C:\\P39\\python.exe", "3.9"),
        ("C:\\uv\\python.exe", "3.11.4"),
    ]
    assert door.asked == [f"{PY} -0p"]


def test_the_registry_has_what_the_launcher_does_not_know(tmp_path: Path) -> None:
    registry: dict[str, dict[str, str | int]] = {
        "HKLM\\Software\\Python\\PythonCore\\3.9\\InstallPath": {"": "C:\\P39\\"},
        "HKLM\\Software\\Python\\PythonCore\\3.10\\InstallPath": {
            "": "C:\\P310",
            "ExecutablePath": "C:\\P310\\python.exe",
        },
        "HKLM\\Software\\Python\\PythonCore\\3.11\\Help": {},
        "HKCU\\Software\\Python\\ContinuumAnalytics\\Anaconda3-64\\InstallPath": {"": "C:\\conda"},
        "HKCU\\Software\\Python\\PyLauncher\\InstallDir": {"": "C:\\Windows"},
        "HKCU\\Software\\Python\\PythonCore\\3.6\\InstallPath": {"": "C:\\gone"},
    }
    programs = {**PROGRAMS, "C:\\P310\\python.exe": "", PY: " -V:3.9 C:\\P39\\python.exe\n"}
    door = windows_machine(tmp_path, programs=programs, registry=registry)
    assert [(place.path, place.found_via, version) for place, version in list_windows_pythons(door)] == [
        ("C:\\P39\\python.exe", "py launcher", "3.9"),
        ("C:\\conda\\python.exe", "registry (HKCU)", None),
        ("C:\\P310\\python.exe", "registry (HKLM)", "3.10"),
    ]


def test_no_launcher_and_one_that_fails(tmp_path: Path) -> None:
    assert list(list_windows_pythons(windows_machine(tmp_path))) == []
    for said in (None, Output(103, "", "No installed Pythons found!")):
        assert list(list_windows_pythons(windows_machine(tmp_path, programs={PY: said}))) == []
