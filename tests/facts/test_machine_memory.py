from __future__ import annotations

from pathlib import Path

import pytest

from tests.facts.fakes import machine, windows_machine
from torchbuild_tasks.facts.machine import look_at_memory
from torchbuild_tasks.model import Memory
from torchbuild_tasks.system.windows_memory import MemoryStatus
from torchbuild_tasks.values import replace

GIB = 1024**3
TOP = "/sys/fs/cgroup"
MEMINFO = "MemTotal:       24682416 kB\nMemFree:  5 kB\nMemAvailable:   23940456 kB\nSwapFree: 1024 kB\n"
V2 = {
    "/proc/meminfo": MEMINFO,
    "/proc/self/mountinfo": f"31 23 0:28 / {TOP} rw - cgroup2 cgroup2 rw\n",
    "/proc/self/cgroup": "0::/pod/box\n",
}
V1 = {
    "/proc/meminfo": MEMINFO,
    "/proc/self/mountinfo": f"35 31 0:32 / {TOP}/memory rw - cgroup cgroup rw,memory\n",
    "/proc/self/cgroup": "4:memory:/box\n",
}
UNLIMITED = "9223372036854771712\n"


def look(root: Path, base: dict[str, str], **files: str) -> Memory:
    """A machine with these files under the top of the hierarchy."""
    top = TOP if base is V2 else f"{TOP}/memory"
    return look_at_memory(machine(root, files={**base, **{f"{top}/{k}": v for k, v in files.items()}}))


def test_meminfo_is_in_kib(tmp_path: Path) -> None:
    memory = look_at_memory(machine(tmp_path, files={"/proc/meminfo": MEMINFO}))
    assert memory == Memory(total=24682416 * 1024, available=23940456 * 1024, swap_free=1024**2)


def test_an_old_kernel_tells_no_available_memory(tmp_path: Path) -> None:
    memory = look_at_memory(machine(tmp_path, files={"/proc/meminfo": "MemTotal: 8 kB\nMemFree: 7 kB\nx\n"}))
    assert (memory.total, memory.available, memory.swap_free) == (8192, None, None)


def test_no_proc_is_nothing_known(tmp_path: Path) -> None:
    assert look_at_memory(machine(tmp_path)) == Memory()


def test_version_2_page_cache_does_not_count_as_used(tmp_path: Path) -> None:
    files = {
        "pod/box/memory.max": str(8 * GIB),
        "pod/box/memory.high": "max",
        "pod/box/memory.current": str(6 * GIB),
        "pod/box/memory.stat": f"anon {2 * GIB}\nfile {4 * GIB}\ninactive_file {3 * GIB}\n",
        "pod/memory.max": "max",
    }
    memory = look(tmp_path, V2, **files)
    assert (memory.limit, memory.used_in_limit) == (8 * GIB, 3 * GIB)
    assert memory.limit_via == f"{TOP}/pod/box/memory.max"


def test_the_soft_limit_of_version_2_counts(tmp_path: Path) -> None:
    memory = look(tmp_path, V2, **{"pod/box/memory.max": str(8 * GIB), "pod/box/memory.high": str(4 * GIB)})
    assert (memory.limit, memory.used_in_limit) == (4 * GIB, None)
    assert memory.limit_via == f"{TOP}/pod/box/memory.high"


def test_a_crowded_ancestor_is_tighter_than_a_small_group(tmp_path: Path) -> None:
    files = {
        "pod/box/memory.max": str(4 * GIB),
        "pod/box/memory.current": "0",
        "pod/memory.max": str(16 * GIB),
        "pod/memory.current": str(14 * GIB),
    }
    memory = look(tmp_path, V2, **files)
    assert (memory.limit, memory.used_in_limit) == (16 * GIB, 14 * GIB)
    assert memory.limit_via == f"{TOP}/pod/memory.max"


def test_more_cache_than_use_is_no_negative_use(tmp_path: Path) -> None:
    files = {
        "pod/memory.max": str(GIB),
        "pod/memory.current": "100",
        "pod/memory.stat": "inactive_file 4096\n",
    }
    assert look(tmp_path, V2, **files).used_in_limit == 0


def test_version_1_reads_limit_and_use(tmp_path: Path) -> None:
    files = {
        "box/memory.limit_in_bytes": str(2 * GIB),
        "box/memory.usage_in_bytes": str(GIB),
        "box/memory.stat": f"inactive_file 1\ntotal_inactive_file {GIB // 2}\n",
        "memory.limit_in_bytes": UNLIMITED,
    }
    memory = look(tmp_path, V1, **files)
    assert (memory.limit, memory.used_in_limit) == (2 * GIB, GIB // 2)
    assert memory.limit_via == f"{TOP}/memory/box/memory.limit_in_bytes"


def test_the_huge_number_of_version_1_is_no_limit(tmp_path: Path) -> None:
    memory = look(
        tmp_path, V1, **{"box/memory.limit_in_bytes": UNLIMITED, "memory.limit_in_bytes": UNLIMITED}
    )
    assert (memory.limit, memory.used_in_limit, memory.limit_via) == (None, None, None)


def test_version_1_tells_the_limit_of_an_ancestor_that_cannot_be_seen(tmp_path: Path) -> None:
    files = {
        "box/memory.limit_in_bytes": UNLIMITED,
        "box/memory.stat": f"hierarchical_memory_limit {3 * GIB}\n",
        "box/memory.usage_in_bytes": "10",
    }
    memory = look(tmp_path, V1, **files)
    assert (memory.limit, memory.used_in_limit) == (3 * GIB, 10)
    assert memory.limit_via == f"{TOP}/memory/box/memory.stat"


@pytest.mark.parametrize("text", ["max", "", "-1", "1 GiB"])
def test_what_is_no_number_is_no_limit(tmp_path: Path, text: str) -> None:
    assert look(tmp_path, V2, **{"pod/box/memory.max": text}).limit is None


def test_a_limit_of_zero_is_a_limit(tmp_path: Path) -> None:
    assert look(tmp_path, V2, **{"pod/box/memory.max": "0"}).limit == 0


def test_windows_is_limited_by_commit(tmp_path: Path) -> None:
    files = {"C:\\proc\\meminfo": MEMINFO}
    door = windows_machine(tmp_path, files=files)
    door = replace(door, memory=MemoryStatus(32 * GIB, 20 * GIB, 40 * GIB, 4 * GIB))
    memory = look_at_memory(door)
    assert (memory.total, memory.available, memory.swap_free) == (32 * GIB, 20 * GIB, None)
    assert (memory.limit, memory.used_in_limit) == (40 * GIB, 36 * GIB)
    assert "commit" in (memory.limit_via or "")
