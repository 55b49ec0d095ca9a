"""Room, memory, limits, locale and clock, each against what the plan needs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.features.doctor.views import check, checks, health, room, view
from tests.support.machines import linux_facts, tool
from torchbuild_tasks.catalog import GIB
from torchbuild_tasks.features.doctor.choose import CHECKS
from torchbuild_tasks.model import Host, Memory, Reached, Room, Store
from torchbuild_tasks.values import replace


def test_what_shares_a_file_system_is_counted_together() -> None:
    """12 GiB for the tree of the dev preset and 1 for temporary files: 12.5 is enough for either alone."""
    apart = (room("build", 12.5, "/"), room("tmp", 12.5, "/tmp"))
    together = (room("build", 12.5), room("tmp", 12.5))
    assert [finding.status for finding in checks("disk", seen=health(rooms=apart))] == ["ok", "ok"]
    assert check("disk", seen=health(rooms=together)).status == "error"


def test_without_a_mount_table_the_same_free_bytes_are_the_same_disk() -> None:
    rooms = tuple(room(purpose, 12.5, mount="") for purpose in ("build", "tmp"))
    found = check("disk", seen=health(rooms=rooms))
    assert (found.status, "file system of /build" in found.text) == ("error", True)


def test_the_preset_says_how_much() -> None:
    seen = health(rooms=(room("build", 9),))
    assert check("disk", seen=seen).status == "error"
    assert check("disk", seen=seen, preset="minimal").status == "ok"
    assert check("disk", seen=health(rooms=(room("build", 30),)), preset="debug").status == "error"


@pytest.mark.parametrize(
    ("free", "preset", "fix"),
    [
        (
            9.5,
            "dev",
            "Free some space, or choose a smaller preset: --preset minimal, or put a part elsewhere: TMPDIR",
        ),
        (2, "dev", "Free some space, or put a part elsewhere: TMPDIR"),
        (2, "minimal", "Free some space, or put a part elsewhere: TMPDIR"),
    ],
)
def test_a_full_disk_gets_only_advice_that_helps(free: float, preset: str, fix: str) -> None:
    seen = health(rooms=(room("build", free), room("tmp", free)))
    assert check("disk", seen=seen, preset=preset).fix == fix


@pytest.mark.parametrize(
    ("jobs", "fix"),
    [(8, "Use a checkout on a disk, or fewer jobs: --jobs 4"), (1, "Use a checkout on a disk")],
)
def test_fewer_jobs_are_fewer_than_there_are(jobs: int, fix: str) -> None:
    assert check("places", seen=health(rooms=(room("build", kind="tmpfs"),)), jobs=jobs).fix == fix


def test_a_compiler_cache_can_do_with_less() -> None:
    facts = linux_facts(tools=(*linux_facts().tools, tool("ccache", "4.7.5")))
    found = check("disk", facts, health(rooms=(room("build", 20), room("cache", 20))))
    assert found.status == "warn"
    assert "--cache-size 8G" in found.fix


def test_a_disk_that_says_nothing_is_unknown() -> None:
    silent = Room(purpose="build", path="/x")
    assert check("disk", seen=health(rooms=(silent,))).status == "unknown"


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"writable": False}, "error"),
        ({"kind": "nfs4"}, "warn"),
        ({"kind": "exfat"}, "warn"),
        ({"kind": "tmpfs"}, "warn"),
        ({"kind": "overlay"}, "ok"),
        ({}, "ok"),
    ],
)
def test_a_place_must_be_written_to_and_started_from(changed: dict[str, Any], status: str) -> None:
    purpose = "tmp" if changed.get("writable") is False else "build"
    assert check("places", seen=health(rooms=(room(purpose, **changed),))).status == status


def test_where_it_is_recorded_which_venvs_are_ours_must_be_written_to() -> None:
    found = check("places", seen=health(rooms=(room("state", writable=False),)))
    assert (found.status, "TORCHBUILD_STATE" in found.fix) == ("error", True)


def test_a_folder_that_the_plan_has_named_is_named_once() -> None:
    facts = replace(linux_facts(), store=Store(folder="/store", state="/state"))
    seen = view(facts, seen=health(rooms=(room("state", writable=False),)))
    for makes_venv in (False, True):
        environment = replace(seen.plan.environment, create=makes_venv)
        found = CHECKS["places"](replace(seen, plan=replace(seen.plan, environment=environment)))
        assert bool(found) is not makes_venv


def test_a_build_goes_on_without_a_folder_for_its_cache_or_store() -> None:
    seen = health(rooms=(room("cache", writable=False), room("store", writable=False)))
    found = check("places", seen=seen)  # of the store the plan has a finding, by what it downloads
    assert (found.status, "--cache-dir" in found.fix) == ("warn", True)


@pytest.mark.parametrize(
    ("available", "swap", "status"), [(30.0, 0.0, "ok"), (1.5, 0.0, "error"), (1.0, 8.0, "warn")]
)
def test_one_compile_must_fit(available: float, swap: float, status: str) -> None:
    memory = Memory(total=32 * GIB, available=int(available * GIB), swap_free=int(swap * GIB))
    found = check("memory", linux_facts(memory=memory))
    assert found.status == status
    assert ("no swap" in found.text) == (not swap)


def test_a_cgroup_counts() -> None:
    memory = Memory(
        total=32 * GIB, available=30 * GIB, limit=2 * GIB, used_in_limit=GIB, limit_via="memory.max"
    )
    found = check("memory", linux_facts(memory=memory))
    assert (found.status, "memory.max" in found.text) == ("error", True)


def test_open_files_follow_the_jobs() -> None:
    assert check("open-files", seen=health(open_files=256), jobs=1).status == "warn"
    assert check("open-files", seen=health(open_files=1024), jobs=8).status == "ok"
    found = check("open-files", seen=health(open_files=1024), jobs=200)
    assert (found.status, found.fix) == ("warn", "ulimit -n 1856")
    assert "root" in check("open-files", seen=health(open_files=256, open_files_most=256)).fix


@pytest.mark.parametrize(
    ("name", "known", "status"),
    [
        ("de_DE.UTF-8", True, "ok"),
        ("de_DE.UTF-8", False, "warn"),
        ("de_DE@euro", True, "warn"),
        ("C", True, "ok"),
        (None, None, "ok"),
    ],
)
def test_a_locale_is_utf_8_and_installed(name: str | None, known: bool | None, status: str) -> None:
    assert check("locale", seen=health(locale=name, locale_known=known)).status == status


def test_a_file_from_the_future_is_named() -> None:
    found = check("clock", seen=health(newest="/src/pytorch/version.txt", ahead=7300.0))
    assert found.status == "warn"
    assert "2 h" in found.text
    assert "touch /src/pytorch/version.txt" in found.fix
    assert check("clock", seen=health(newest="/x", ahead=1.0)).status == "ok"


def test_the_servers_tell_the_time_too() -> None:
    server = Reached(host="pypi.org", why="x", dns="", https="", ahead=4000.0)
    found = check("clock", seen=health(reached=(server,)))
    assert (found.status, "behind" in found.text) == ("warn", True)


def test_what_a_system_does_not_have_is_skipped() -> None:
    windows = linux_facts(host=Host(os="windows", arch="x86_64"))
    assert check("open-files", windows, health(open_files=None)).status == "skipped"
    assert check("locale", windows).status == "skipped"
    assert check("dev-drive").status == "skipped"
    assert check("dev-drive", windows, health(rooms=(room("build", kind="ReFS"),))).status == "ok"
