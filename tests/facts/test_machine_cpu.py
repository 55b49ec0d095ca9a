from __future__ import annotations

from pathlib import Path

import pytest

from tests.facts.fakes import FakeProbe, machine
from torchbuild_tasks.facts.machine import look_at_cpu
from torchbuild_tasks.values import replace

TOP = "/sys/fs/cgroup"
V2 = {
    "/proc/self/mountinfo": f"31 23 0:28 / {TOP} rw - cgroup2 cgroup2 rw\n",
    "/proc/self/cgroup": "0::/pod/box\n",
}
V1 = {
    "/proc/self/mountinfo": f"32 31 0:29 / {TOP}/cpu rw - cgroup cgroup rw,cpu,cpuacct\n",
    "/proc/self/cgroup": "4:cpu,cpuacct:/box\n",
}


def test_version_2_takes_the_tightest_of_all_ancestors(tmp_path: Path) -> None:
    files = {
        f"{TOP}/pod/box/cpu.max": "max 100000\n",
        f"{TOP}/pod/cpu.max": "150000 100000\n",
        f"{TOP}/cpu.max": "400000 100000\n",
    }
    cpu = look_at_cpu(machine(tmp_path, files={**V2, **files}))
    assert (cpu.quota, cpu.quota_via) == (1.5, f"{TOP}/pod/cpu.max")


def test_version_1_divides_quota_by_period(tmp_path: Path) -> None:
    files = {
        f"{TOP}/cpu/box/cpu.cfs_quota_us": "250000\n",
        f"{TOP}/cpu/box/cpu.cfs_period_us": "50000\n",
        f"{TOP}/cpu/cpu.cfs_quota_us": "-1\n",
        f"{TOP}/cpu/cpu.cfs_period_us": "100000\n",
    }
    cpu = look_at_cpu(machine(tmp_path, files={**V1, **files}))
    assert (cpu.quota, cpu.quota_via) == (5.0, f"{TOP}/cpu/box/cpu.cfs_quota_us")


@pytest.mark.parametrize("text", ["max 100000", "max", "", "-1 100000", "x y", "100000 0", "²00000 100000"])
def test_everything_else_is_no_limit(tmp_path: Path, text: str) -> None:
    cpu = look_at_cpu(machine(tmp_path, files={**V2, f"{TOP}/pod/cpu.max": text}))
    assert (cpu.quota, cpu.quota_via) == (None, None)


def test_cores_and_affinity_are_distinct(tmp_path: Path) -> None:
    door = FakeProbe(environ={}, root=tmp_path, many=64, allowed=4)
    cpu = look_at_cpu(door)
    assert (cpu.cores, cpu.affinity) == (64, 4)
    silent = look_at_cpu(replace(door, many=None, allowed=None))
    assert (silent.cores, silent.affinity) == (1, None)
