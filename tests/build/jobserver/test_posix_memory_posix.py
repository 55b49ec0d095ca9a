"""The memory of a moment, read from trees of files as kernels show them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.capabilities import needs_posix_paths, needs_proc
from torchbuild_tasks.build.jobserver.posix import MemoryLook
from torchbuild_tasks.build.jobserver.tokens import MemoryState

pytestmark = needs_posix_paths

MEMINFO = "MemTotal: 1000 kB\nMemAvailable:   800 kB\nSwapTotal: 100 kB\nSwapFree: 40 kB\n"
V2 = "29 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n"
V1 = "29 23 0:26 / /sys/fs/cgroup/memory rw,nosuid - cgroup cgroup rw,memory\n"
ALL = MemoryState(available=800 * 1024, swap_used=60 * 1024)


def tree(root: Path, files: dict[str, str]) -> MemoryLook:
    for name, text in {"proc/meminfo": MEMINFO, **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "ascii")
    return MemoryLook(root)


def test_a_machine_without_groups(tmp_path: Path) -> None:
    assert tree(tmp_path, {})() == ALL


def test_nothing_at_all_is_known_of_a_machine_without_proc(tmp_path: Path) -> None:
    assert MemoryLook(tmp_path)() == MemoryState()


def test_version_2_with_a_limit_above_us_and_cache_that_is_dropped(tmp_path: Path) -> None:
    group = "sys/fs/cgroup/a"
    look = tree(
        tmp_path,
        {
            "proc/self/cgroup": "0::/a/b\n",
            "proc/self/mountinfo": V2,
            f"{group}/b/memory.max": "max\n",
            f"{group}/b/memory.high": "max\n",
            f"{group}/b/memory.current": "100\n",
            f"{group}/memory.max": "900\n",
            f"{group}/memory.high": "700\n",
            f"{group}/memory.current": "600\n",
            f"{group}/memory.stat": "anon 300\ninactive_file 200\nactive_file 100\nfile_mapped 40\n",
            f"{group}/b/memory.pressure": "some avg10=12.50 avg60=1.00\nfull avg10=3.25 avg60=0.50\n",
            "proc/pressure/memory": "some avg10=99.00\nfull avg10=99.00\n",
        },
    )
    assert look() == ALL._replace(limit=700, used=600 - 260, full=3.25)
    (tmp_path / group / "memory.high").write_text("max\n", "ascii")
    assert look().limit == 900  # read again at each look


def test_the_limit_with_the_least_room_counts_not_the_smallest(tmp_path: Path) -> None:
    look = tree(
        tmp_path,
        {
            "proc/self/cgroup": "0::/a\n",
            "proc/self/mountinfo": V2,
            "sys/fs/cgroup/a/memory.max": "500\n",
            "sys/fs/cgroup/a/memory.current": "100\n",
            "sys/fs/cgroup/memory.max": "1000\n",
            "sys/fs/cgroup/memory.current": "900\n",
        },
    )
    assert look().room == 100


def test_version_1_and_its_way_to_say_no_limit(tmp_path: Path) -> None:
    group = "sys/fs/cgroup/memory"
    look = tree(
        tmp_path,
        {
            "proc/self/cgroup": "4:memory:/box/one\n3:cpuset:/\n0::/\n",
            "proc/self/mountinfo": V1,
            f"{group}/box/one/memory.limit_in_bytes": "5000\n",
            f"{group}/box/one/memory.usage_in_bytes": "3000\n",
            f"{group}/box/one/memory.stat": "cache 9\ntotal_inactive_file 500\ntotal_active_file 500\n",
            f"{group}/memory.limit_in_bytes": "9223372036854771712\n",
            "proc/pressure/memory": "some avg10=1.00 avg60=0.00\nfull avg10=0.50 avg60=0.00\n",
        },
    )
    assert look() == ALL._replace(limit=5000, used=2000, full=0.5)


@pytest.mark.parametrize("group", ["/docker/0123/x", "/../y"])
def test_in_a_container_the_mount_is_all_there_is(tmp_path: Path, group: str) -> None:
    look = tree(
        tmp_path,
        {
            "proc/self/cgroup": f"0::{group}\n",
            "proc/self/mountinfo": V2.replace(" / ", " /docker/0123 ", 1),
            "sys/fs/cgroup/memory.max": "500\n",
            "sys/fs/cgroup/memory.current": "100\n",
        },
    )
    assert look().limit == 500


def test_files_that_say_nothing_of_use(tmp_path: Path) -> None:
    look = tree(
        tmp_path,
        {
            "proc/self/cgroup": "rubbish\n0::/a\n",
            "proc/self/mountinfo": "short - x\n" + V2,
            "sys/fs/cgroup/a/memory.max": "\n",
            "proc/pressure/memory": "some\nfull avg60=1\n",
        },
    )
    assert look() == ALL


@needs_proc
def test_this_machine_has_memory() -> None:
    state = MemoryLook()()
    assert state.room is not None and state.room > 0
