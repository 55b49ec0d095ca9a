"""A wheel is written again with what was added, and again with the same bytes."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

from tests.support.wheels import make_wheel, wrong_members
from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.features.provenance.act import require_key, rewrite

INFO = "torch-2.6.0+cpu.dist-info"


def test_what_is_added_stands_in_record_and_all_else_stays(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "dist", {"torch/lib/x.so": b"x" * 5000})
    rewrite(wheel, {f"{INFO}/sboms/a.json": b"{}"}, None)
    assert wrong_members(wheel) == []
    with zipfile.ZipFile(wheel) as archive:
        assert archive.namelist()[-1] == f"{INFO}/RECORD"
        assert archive.read(f"{INFO}/sboms/a.json") == b"{}"
        assert archive.read("torch/lib/x.so") == b"x" * 5000
    assert [path.name for path in wheel.parent.iterdir()] == [wheel.name]


def test_once_more_replaces_what_was_added(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path)
    for text in (b"1", b"22"):
        rewrite(wheel, {f"{INFO}/sboms/a.json": text}, 1_767_225_600)
    assert wrong_members(wheel) == []
    with zipfile.ZipFile(wheel) as archive:
        assert archive.namelist().count(f"{INFO}/sboms/a.json") == 1


def test_order_times_and_modes_do_not_reach_the_bytes(tmp_path: Path) -> None:
    """As another front end, another umask and another day would have written it."""
    files = {"torch/b.py": b"1", "torch/a.py": b"2"}
    one = make_wheel(tmp_path / "one", files)
    other = make_wheel(tmp_path / "other", dict(reversed(files.items())))
    with zipfile.ZipFile(other) as archive:
        members = [(info, archive.read(info)) for info in archive.infolist()]
    with zipfile.ZipFile(other, "w", zipfile.ZIP_DEFLATED) as archive:
        for info, data in members:
            info.external_attr = 0o100664 << 16
            info.date_time = (1999, 1, 1, 0, 0, 0)
            archive.writestr(info, data)
    assert one.read_bytes() != other.read_bytes()
    for wheel in (one, other):
        rewrite(wheel, {}, 1_767_225_600)
    assert one.read_bytes() == other.read_bytes()
    with zipfile.ZipFile(one) as archive:
        assert {info.date_time for info in archive.infolist()} == {(2026, 1, 1, 0, 0, 0)}


def test_a_program_stays_one(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path)
    with zipfile.ZipFile(wheel, "a") as archive:
        info = zipfile.ZipInfo("torch/bin/basic")
        info.external_attr = 0o100775 << 16
        archive.writestr(info, b"#!")
    rewrite(wheel, {}, 1_767_225_600)
    with zipfile.ZipFile(wheel) as archive:
        assert archive.getinfo("torch/bin/basic").external_attr >> 16 == 0o100755


def test_a_key_that_is_not_there_is_reported_before_the_build(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        require_key(os.fspath(tmp_path / "id_ed25519"), "wheel", "Add --mode wheel.")
    with pytest.raises(UsageError, match="can be signed") as refused:
        require_key(__file__, "develop", "Add --mode wheel.")
    assert "--mode wheel" in refused.value.next_step
