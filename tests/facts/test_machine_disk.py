from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.facts.fakes import link, machine, windows_machine
from tests.support.capabilities import needs_symlinks
from torchbuild_tasks.facts.machine import look_at_disk, mount_of
from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.values import replace

TABLE = "1 0 8:1 / / rw - ext4 /dev/sda rw\n2 1 8:2 / /fast rw - xfs /dev/sdb rw\n"


def test_a_build_folder_still_to_be_made_is_on_its_parents_disk(tmp_path: Path) -> None:
    door = machine(tmp_path, files={"/proc/self/mountinfo": TABLE, "/fast/src/": ""})
    disk = look_at_disk(door, "/fast/src/build/deep")
    assert (disk.path, disk.mount, disk.total, disk.free) == ("/fast/src/build/deep", "/fast", 1000, 400)


@needs_symlinks
def test_a_link_is_on_the_disk_it_leads_to(tmp_path: Path) -> None:
    door = machine(tmp_path, files={"/proc/self/mountinfo": TABLE, "/fast/real/": ""})
    link(tmp_path, "/home/build", "../fast/real")
    assert look_at_disk(door, "/home/build/x").mount == "/fast"


def test_the_last_mount_on_a_folder_says_whether_programs_may_be_started(tmp_path: Path) -> None:
    table = TABLE + "3 2 8:3 / /fast rw,noexec - xfs /dev/sdc rw\n"
    door = machine(tmp_path, files={"/proc/self/mountinfo": table, "/fast/src/": "", "/home/": ""})
    assert [look_at_disk(door, path).noexec for path in ("/fast/src/build", "/home")] == [True, False]


def test_unknown_stays_unknown(tmp_path: Path) -> None:
    disk = look_at_disk(replace(machine(tmp_path), usage=None), "/x")
    assert (disk.mount, disk.total, disk.free, disk.noexec) == (None, None, None, None)


@pytest.mark.integration
def test_the_real_disk(tmp_path: Path) -> None:
    door = Probe(environ={})
    if not door.windows and mount_of(door, "/") is None:
        pytest.skip("the mount table does not know / (a chroot)")
    disk = look_at_disk(door, str(tmp_path / "none" / "yet"))
    assert disk.mount is not None
    assert os.path.ismount(disk.mount)
    assert (disk.total or 0) >= (disk.free or 0) > 0


def test_a_drive_of_windows(tmp_path: Path) -> None:
    door = windows_machine(tmp_path, files={"D:\\src\\": "", "D:\\proc\\self\\mountinfo": TABLE})
    disk = look_at_disk(door, "D:\\src\\build\\deep")
    assert (disk.path, disk.mount, disk.free) == ("D:\\src\\build\\deep", "D:\\", 400)
    assert look_at_disk(door, "E:\\none").mount == "E:\\"
