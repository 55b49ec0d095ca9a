from __future__ import annotations

from pathlib import Path

from tests.facts.fakes import machine
from torchbuild_tasks.facts.machine import mount_of, read_mounts

TABLE = r"""22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
30 27 0:40 / /data rw shared:5 master:1 - xfs /dev/sdb rw
31 30 0:41 /sub /data/my\040disk rw - btrfs /dev/sdc rw,ssd
rubbish
32 23 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
"""


def test_reads_every_line_that_is_one(tmp_path: Path) -> None:
    found = read_mounts(machine(tmp_path, files={"/proc/self/mountinfo": TABLE}))
    assert [mount.point for mount in found] == [
        "/proc",
        "/",
        "/data",
        "/data/my disk",
        "/sys/fs/cgroup/cpu,cpuacct",
    ]
    assert found[3].root == "/sub"
    assert found[4].kind == "cgroup"
    assert "cpuacct" in found[4].options


def test_the_deepest_mount_holds_a_path(tmp_path: Path) -> None:
    door = machine(tmp_path, files={"/proc/self/mountinfo": TABLE})
    paths = ("/data/my disk/src", "/data/my", "/data", "/database")
    found = [mount.point for path in paths if (mount := mount_of(door, path))]
    assert found == ["/data/my disk", "/data", "/data", "/"]


def test_without_the_table_no_mount_is_known(tmp_path: Path) -> None:
    assert read_mounts(machine(tmp_path)) == ()
    assert mount_of(machine(tmp_path), "/x") is None
