from __future__ import annotations

import json
import os
import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.facts.fakes import link, machine, windows_machine
from tests.support.capabilities import needs_posix_paths
from torchbuild_tasks.facts.tree import look_at_cache, look_at_manifest, look_at_running
from torchbuild_tasks.model import CMakeCache, Previous
from torchbuild_tasks.model.record import MANIFEST_FILE, RECORD_FILE

CACHE = """# This is the CMakeCache file.
//CXX compiler=odd
CMAKE_CXX_COMPILER:FILEPATH=/usr/bin/c++
CMAKE_CXX_COMPILER_AR:FILEPATH=/usr/bin/gcc-ar-12
CMAKE_BUILD_TYPE:STRING=
CMAKE_GENERATOR:UNINITIALIZED=Unix Makefiles
CMAKE_GENERATOR:INTERNAL=Ninja
PYTHON_EXECUTABLE:FILEPATH=PYTHON_EXECUTABLE-NOTFOUND
Python3_EXECUTABLE:FILEPATH=/odd/python3
Python_EXECUTABLE:FILEPATH=/v=1/bin/python
CMAKE_HOME_DIRECTORY:INTERNAL=/src
CMAKE_HOME_DIRECTORY-ADVANCED:INTERNAL=1
"""


def test_the_cache_is_read_by_exact_names(tmp_path: Path) -> None:
    door = machine(tmp_path, files={"/b/CMakeCache.txt": CACHE})
    assert look_at_cache(door, "/b") == CMakeCache(
        home="/src", generator="Ninja", build_type=None, python="/v=1/bin/python", compiler="/usr/bin/c++"
    )


@needs_posix_paths
def test_a_tree_that_was_made_through_a_link_is_that_of_the_checkout(tmp_path: Path) -> None:
    door = machine(tmp_path, files={"/b/CMakeCache.txt": CACHE, "/disk/src/version.txt": "2.8.0\n"})
    link(tmp_path, "/src", "disk/src")
    cache = look_at_cache(door, "/b")
    assert cache is not None and cache.home == "/disk/src"


@pytest.mark.parametrize(
    ("program", "version", "gone"),
    [
        ("/usr/bin/ninja", "1.11.1", False),
        ("/src/evil/ninja", None, False),  # of the checkout: not in a folder of PATH, so never run
        ("/usr/bin/ninja-1.9", None, True),
    ],
)
def test_the_ninja_of_the_tree_is_queried_where_path_would_find_it(
    tmp_path: Path, program: str, version: str | None, gone: bool
) -> None:
    files = {
        "/b/CMakeCache.txt": f"CMAKE_MAKE_PROGRAM:FILEPATH={program}\n",
        "/b/.ninja_log": "# ninja log v5\n0\t7\t0\tx.o\t1\n",
    }
    programs = {"/usr/bin/ninja": "1.11.1\n", "/src/evil/ninja": "6.6.6\n"}
    cache = look_at_cache(machine(tmp_path, files=files, programs=programs), "/b")
    assert cache == CMakeCache(make_program=program, make_version=version, make_gone=gone, ninja_log=5)


def test_a_ninja_that_is_named_without_exe_is_there(tmp_path: Path) -> None:
    files = {
        "C:\\b\\CMakeCache.txt": "CMAKE_MAKE_PROGRAM:UNINITIALIZED=C:/v/Scripts/ninja\n",
        "C:\\v\\Scripts\\ninja.exe": "",
    }
    cache = look_at_cache(windows_machine(tmp_path, files=files), "C:\\b")
    assert cache is not None and not cache.make_gone


def test_no_cache_is_none_and_an_empty_one_is_not(tmp_path: Path) -> None:
    door = machine(tmp_path, files={"/b/CMakeCache.txt": ""})
    assert look_at_cache(door, "/other") is None
    assert look_at_cache(door, None) is None
    assert look_at_cache(door, "/b") == CMakeCache()


def previous(root: Path, record: Any) -> Previous | None:
    text = record if isinstance(record, str) else json.dumps(record)
    return look_at_manifest(machine(root, files={f"/b/{MANIFEST_FILE}": text}), "/b")


def test_the_last_build_is_remembered(tmp_path: Path) -> None:
    record = {
        "schema": 1,
        "result": "ok",
        "inputs": {"compiler": "g++ 12"},
        "finished": "2026-01-01T00:00:00Z",
        "verify": {"checks": [{"outcome": "passed"}, {"outcome": "not possible"}]},
    }
    assert previous(tmp_path, record) == Previous(
        result="ok", inputs={"compiler": "g++ 12"}, finished="2026-01-01T00:00:00Z", verified=True
    )


@pytest.mark.parametrize(
    "verify",
    [
        None,
        {"checks": [{"outcome": "passed"}, {"outcome": "failed"}]},
    ],
)
def test_not_verified_unless_every_check_says_so(tmp_path: Path, verify: object) -> None:
    found = previous(tmp_path, {"result": "ok", "verify": verify})
    assert found is not None
    assert found.verified is False


def test_an_interrupted_build_has_no_end(tmp_path: Path) -> None:
    assert previous(tmp_path, {"result": "running", "finished": None}) == Previous(result="running")


@pytest.mark.parametrize(
    "record",
    [
        "",
        "{",
        "[]",
        "3",
        "[" * 100_000,
        {},
        {"result": 1},
        {"result": "ok", "inputs": []},
        {"result": "ok", "inputs": {"a": 1}},
        {"result": "ok", "verify": 3},
        {"result": "ok", "verify": {"checks": [1]}},
    ],
    ids=lambda record: repr(record)[:20],
)
def test_a_broken_record_is_no_record(tmp_path: Path, record: Any) -> None:
    assert previous(tmp_path, record) is None


def test_no_record_is_none(tmp_path: Path) -> None:
    assert look_at_manifest(machine(tmp_path), "/b") is None
    assert look_at_manifest(machine(tmp_path), None) is None


def test_the_record_of_0_1_0_counts_until_it_is_replaced(tmp_path: Path) -> None:
    """Version 0.1.0 also wrote a manifest, which has no inputs."""
    old = {"schema": 1, "result": "failed", "inputs": {"compiler": "g++ 11"}}
    new = {"schema": 1, "result": "ok", "repositories": [], "env": []}
    files = {f"/b/{RECORD_FILE}": json.dumps(old), f"/b/{MANIFEST_FILE}": json.dumps(new)}
    found = look_at_manifest(machine(tmp_path, files=files), "/b")
    assert found == Previous(result="failed", inputs={"compiler": "g++ 11"})


def test_a_running_command_is_distinguished_from_a_killed_one(tmp_path: Path) -> None:
    """A killed holder leaves its note; its number may be another process's by then."""
    now, here = datetime.now(UTC), socket.gethostname()
    cases = (
        (now.isoformat(), os.getpid(), here, True),
        ((now - timedelta(days=9)).isoformat(), os.getpid(), here, False),
        (now.isoformat(), 2**22 + 1, here, False),
        (now.isoformat(), 2**22 + 1, "another-machine", True),
        ("yesterday", os.getpid(), here, False),
    )
    for number, (started, pid, host, works) in enumerate(cases):
        note = {"command": "build", "user": "ada", "host": host, "pid": pid, "started": started}
        files = {"/src/.torchbuild/lock.json": json.dumps(note)}
        found = look_at_running(machine(tmp_path / str(number), files=files), "/src")
        assert (found is not None) is works
        assert found is None or f"`build` of ada on {host}, process {pid}, since {started}" in found.said
    for broken in ("", "{", "[]", '{"pid": 1}', "[" * 5000):
        files = {"/src/.torchbuild/lock.json": broken}
        assert look_at_running(machine(tmp_path / "broken", files=files), "/src") is None
