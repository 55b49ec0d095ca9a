"""The real answers of the system that the tests run on, through the door."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.support.capabilities import needs_posix_paths, needs_winreg
from torchbuild_tasks.facts.probe import Probe

CURRENT_VERSION = "HKLM\\SOFTWARE\\Microsoft\\Windows NT\\CurrentVersion"


@pytest.fixture
def door() -> Probe:
    return Probe(environ=os.environ)


def test_every_system_answers_these(door: Probe, tmp_path: Path) -> None:
    assert (door.cores() or 0) >= (door.affinity() or 1) >= 1
    uname = door.uname()
    assert uname.system == sys.platform
    assert uname.release
    assert uname.machine
    total, free = door.disk_usage(str(tmp_path)) or (0, 0)
    assert total >= free > 0
    assert door.disk_usage(str(tmp_path / "none")) is None


@needs_posix_paths
def test_linux_has_nothing_of_windows(door: Probe) -> None:
    assert door.memory_status() is None
    assert door.registry_value(CURRENT_VERSION, "ProductName") is None
    assert door.registry_keys("HKLM\\SOFTWARE") == ()
    assert door.file_version(sys.executable) is None
    assert door.volume("/") is None


@needs_winreg
def test_the_registry_is_read(door: Probe) -> None:
    assert str(door.registry_value(CURRENT_VERSION, "ProductName")).strip()
    assert "SOFTWARE" in {key.upper() for key in door.registry_keys("HKLM")} or door.registry_keys(
        "HKLM\\SOFTWARE"
    )
    assert door.registry_value(CURRENT_VERSION, "No Such Value") is None
    assert door.registry_value("HKLM\\No Such Key") is None
    assert door.registry_keys("HKCU\\No Such Key") == ()


@needs_winreg
def test_a_program_tells_its_version(door: Probe, tmp_path: Path) -> None:
    ours = door.file_version(sys.executable) or ""
    # CPython writes 3.11.1 as 3.11.1150.1013.
    assert ours.split(".")[:2] == [str(part) for part in sys.version_info[:2]]
    assert ours.count(".") == 3
    (tmp_path / "x.exe").write_bytes(b"MZ")
    assert door.file_version(str(tmp_path / "x.exe")) is None
    assert door.file_version(str(tmp_path / "none.exe")) is None


@needs_winreg
def test_memory_and_the_drive(door: Probe, tmp_path: Path) -> None:
    status = door.memory_status()
    assert status is not None
    assert status.total >= status.available > 0
    assert status.commit_limit >= status.commit_free > 0
    assert door.volume(str(tmp_path / "none" / "yet")) == tmp_path.anchor
    assert door.glibc() is None
