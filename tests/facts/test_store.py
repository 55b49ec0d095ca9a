from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.facts.fakes import machine, windows_machine
from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.facts.store import look_at_store
from torchbuild_tasks.plan.pins import Pin, write_pins

LOCK = "/src/torchbuild.lock"
SHELF = "/home/me/.cache/torchbuild-tasks/unpacked"


def marker(name: str, digest: object = "aa") -> str:
    return json.dumps({"id": name, "sha256": digest, "more": 1})


def test_what_is_unpacked_and_bears_our_mark(tmp_path: Path) -> None:
    files = {
        f"{SHELF}/mkl-2020/.torchbuild-helper.json": marker("mkl-2020"),
        f"{SHELF}/magma/.torchbuild-helper.json": marker("magma", "bb"),
        f"{SHELF}/magma/lib/magma.lib": "",
        f"{SHELF}/no-mark/x": "",
        f"{SHELF}/moved/.torchbuild-helper.json": marker("another"),
        f"{SHELF}/odd/.torchbuild-helper.json": marker("odd", 3),
        f"{SHELF}/begun/.torchbuild-helper.json": '{"id": "begun", "sha256": "cc", "finished": null}',
        f"{SHELF}/list/.torchbuild-helper.json": "[]",
        f"{SHELF}/half/.torchbuild-helper.json": '{"id": "half", "sha',
    }
    store = look_at_store(machine(tmp_path, files=files), LOCK)
    assert store.folder == "/home/me/.cache/torchbuild-tasks"
    assert store.unpacked == {"mkl-2020": "aa", "magma": "bb"}
    assert store.pins == {}


def test_the_user_may_move_it(tmp_path: Path) -> None:
    files = {"/big/unpacked/mkl/.torchbuild-helper.json": marker("mkl")}
    store = look_at_store(machine(tmp_path, files=files, environ={"TORCHBUILD_CACHE": "/big/"}), LOCK)
    assert (store.folder, store.unpacked) == ("/big", {"mkl": "aa"})


def test_a_machine_without_a_store_says_where_it_would_be(tmp_path: Path) -> None:
    store = look_at_store(windows_machine(tmp_path), "C:\\src\\torchbuild.lock")
    assert store.folder == "C:\\Users\\Ada Lovelace\\AppData\\Local\\torchbuild-tasks\\Cache"
    assert store.unpacked == {}


@pytest.mark.skipif(sys.platform != "linux", reason="Linux' own file systems")
def test_whether_it_takes_files_is_seen_where_it_will_be(tmp_path: Path) -> None:
    for folder, takes in (("/proc/x", False), (str(tmp_path / "new" / "deeper"), True)):
        assert look_at_store(Probe(environ={"TORCHBUILD_CACHE": folder}), LOCK).writable is takes


@pytest.mark.skipif(sys.platform != "linux", reason="Linux' own file systems")
def test_the_folder_of_notes_is_named_where_it_cannot_be_made(tmp_path: Path) -> None:
    for folder, named in (("/proc/x", "/proc/x"), (str(tmp_path / "new" / "deeper"), "")):
        assert look_at_store(Probe(environ={"TORCHBUILD_STATE": folder}), LOCK).state == named


def test_the_store_of_windows_is_read(tmp_path: Path) -> None:
    files = {"D:\\cache\\unpacked\\mkl\\.torchbuild-helper.json": marker("mkl")}
    door = windows_machine(tmp_path, files=files, environ={"TORCHBUILD_CACHE": "D:/cache"})
    store = look_at_store(door, "C:\\src\\torchbuild.lock")
    assert (store.folder, store.unpacked) == ("D:\\cache", {"mkl": "aa"})


def test_the_lock_file_of_the_checkout_is_read(tmp_path: Path) -> None:
    pin = Pin(id="mkl-2020", sha256="ab" * 32, size=3, url="https://x/mkl.7z")
    door = machine(tmp_path, files={LOCK: write_pins({"mkl-2020": pin})})
    assert look_at_store(door, LOCK).pins == {"mkl-2020": "ab" * 32}


PEAKS = "/home/me/.cache/torchbuild-tasks/build-memory.json"
PEAK = {"source": "/src", "build_type": "Release", "kind": "C++", "bytes": 5, "count": 7}


def test_the_memory_that_builds_took_is_read(tmp_path: Path) -> None:
    files = {PEAKS: json.dumps({"schema": 1, "peaks": [PEAK]})}
    (peak,) = look_at_store(machine(tmp_path, files=files), LOCK).peaks
    assert (peak.source, peak.kind, peak.bytes, peak.count) == ("/src", "C++", 5, 7)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"schema": 99}', '{"peaks": [3]}', json.dumps({"peaks": [{**PEAK, "more": 1}]})]
)
def test_a_damaged_file_of_them_counts_as_none(tmp_path: Path, text: str) -> None:
    assert look_at_store(machine(tmp_path, files={PEAKS: text}), LOCK).peaks == ()


def test_a_broken_lock_file_is_reported_not_ignored(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        look_at_store(machine(tmp_path, files={LOCK: "[[helper"}), LOCK)
