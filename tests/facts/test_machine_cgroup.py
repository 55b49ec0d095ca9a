from __future__ import annotations

from pathlib import Path

from tests.facts.fakes import machine
from torchbuild_tasks.facts.machine import cgroup_levels

V2 = "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
V1 = "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"


def folders(tmp_path: Path, mounts: str, own: str, controller: str = "memory") -> list[str]:
    door = machine(tmp_path, files={"/proc/self/mountinfo": mounts, "/proc/self/cgroup": own})
    return [level.folder for level in cgroup_levels(door, controller)]


def test_every_level_knows_its_version(tmp_path: Path) -> None:
    files = {"/proc/self/mountinfo": V1 + V2, "/proc/self/cgroup": "4:memory:/x\n0::/y:z\n"}
    found = [
        (level.version, level.folder) for level in cgroup_levels(machine(tmp_path, files=files), "memory")
    ]
    assert found == [
        (1, "/sys/fs/cgroup/memory/x"),
        (1, "/sys/fs/cgroup/memory"),
        (2, "/sys/fs/cgroup/y:z"),
        (2, "/sys/fs/cgroup"),
    ]


def test_version_2_walks_up_to_the_top(tmp_path: Path) -> None:
    assert folders(tmp_path, V2, "0::/user.slice/job\n") == [
        "/sys/fs/cgroup/user.slice/job",
        "/sys/fs/cgroup/user.slice",
        "/sys/fs/cgroup",
    ]


def test_only_the_first_folder_is_our_own(tmp_path: Path) -> None:
    files = {"/proc/self/mountinfo": V2, "/proc/self/cgroup": "0::/a/b\n"}
    assert [level.own for level in cgroup_levels(machine(tmp_path, files=files), "cpu")] == [
        True,
        False,
        False,
    ]


def test_version_1_takes_the_hierarchy_of_its_controller(tmp_path: Path) -> None:
    own = "4:memory:/jobs/7\n2:cpuacct,cpu:/other\n"
    mounts = V1 + "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
    assert folders(tmp_path, mounts, own)[0] == "/sys/fs/cgroup/memory/jobs/7"
    assert folders(tmp_path, mounts, own, "cpu")[0] == "/sys/fs/cgroup/cpu/other"


def test_a_hybrid_machine_gives_both(tmp_path: Path) -> None:
    mounts = V1 + "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
    assert folders(tmp_path, mounts, "4:memory:/x\n0::/y\n") == [
        "/sys/fs/cgroup/memory/x",
        "/sys/fs/cgroup/memory",
        "/sys/fs/cgroup/unified/y",
        "/sys/fs/cgroup/unified",
    ]


def test_a_container_sees_only_its_part(tmp_path: Path) -> None:
    part = "31 23 0:28 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
    assert folders(tmp_path, part, "4:memory:/docker/abc/sub\n") == [
        "/sys/fs/cgroup/memory/sub",
        "/sys/fs/cgroup/memory",
    ]
    assert folders(tmp_path, part, "4:memory:/docker/abcdef\n") == ["/sys/fs/cgroup/memory"]
    assert folders(tmp_path, V2, "0::/../outside\n") == ["/sys/fs/cgroup"]


def test_nothing_known_is_nothing_found(tmp_path: Path) -> None:
    assert cgroup_levels(machine(tmp_path), "memory") == ()
    assert folders(tmp_path, V2, "rubbish\n") == []
