"""Wheels are written completely and correctly, or not at all."""

from __future__ import annotations

import importlib.util
import sys
import tempfile
import zipfile
from pathlib import Path

import pytest

from tests.support.sources import RecordingReporter
from tests.support.wheels import make_wheel, wrong_members
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.errors import ArchiveRefused, PackageRefused
from torchbuild_tasks.features.package import act
from torchbuild_tasks.features.package.look import look_at_wheel
from torchbuild_tasks.system.own import extra_line

pytest.importorskip("auditwheel")
pytest.importorskip("delvewheel")

HEADERS = {
    "torch/include/torch/torch.h": b"//\n",
    "torch/share/cmake/Torch/TorchConfig.cmake": b"#\n",
    "torch/lib/c10.dll": b"no library\n",
    "torch/lib/torch_python.dll": b"no library\n",
}


def order(out: Path, kind: str = "wheel", **columns: object) -> act.Order:
    return act.Order(kind=kind, out=out, cuda_libraries="bundle", **columns)  # type: ignore[arg-type]


def make(path: Path, wanted: act.Order) -> act.Package:
    return act.make_package(look_at_wheel(path), wanted, load_catalog(), RecordingReporter())


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """One for Windows, which no program is needed for."""
    files = {**HEADERS, "torch/big": b"x" * 5000}
    return make_wheel(tmp_path / "dist", files, platform="win_amd64", requires=("filelock",))


def test_a_wheel_is_written_completely_with_its_record(wheel: Path, tmp_path: Path) -> None:
    made = make(wheel, order(tmp_path / "out", local="mine.1"))
    assert made.path.name == "torch-2.6.0+mine.1-cp311-cp311-win_amd64.whl"
    assert wrong_members(made.path) == []
    with zipfile.ZipFile(made.path) as archive:
        assert "__version__ = '2.6.0+mine.1'" in archive.read("torch/version.py").decode()
        assert b"Version: 2.6.0+mine.1" in archive.read("torch-2.6.0+mine.1.dist-info/METADATA")
    assert [path.name for path in made.path.parent.iterdir()] == [made.path.name]


def test_above_4_gib_the_headers_are_right(
    wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the limit lowered: what `wheel tags` before 0.48 wrote then is refused by uv (pypa/wheel#692)."""
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 512)
    for kind in ("wheel", "libtorch"):
        made = make(wheel, order(tmp_path / "out", kind))
        if kind == "wheel":
            assert wrong_members(made.path) == []
        with zipfile.ZipFile(made.path) as archive:
            assert archive.testzip() is None
            assert any(info.extra[:2] == b"\x01\x00" for info in archive.infolist())


def test_libtorch_is_laid_out_as_upstreams(wheel: Path, tmp_path: Path) -> None:
    made = make(wheel, order(tmp_path / "out", "libtorch"))
    assert made.path.name == "libtorch-win-shared-with-deps-2.6.0+cpu.zip"
    with zipfile.ZipFile(made.path) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
        assert archive.read("libtorch/build-version") == b"2.6.0+cpu\n"
        assert archive.read("libtorch/build-hash") == b"abc1234\n"
    assert names == {
        "libtorch/build-version",
        "libtorch/build-hash",
        "libtorch/include/torch/torch.h",
        "libtorch/share/cmake/Torch/TorchConfig.cmake",
        "libtorch/lib/c10.dll",
    }


def test_one_that_is_too_large_leaves_nothing(wheel: Path, tmp_path: Path) -> None:
    with pytest.raises(PackageRefused, match="more than --max-size 10 bytes"):
        make(wheel, order(tmp_path / "out", max_size=10))
    assert list((tmp_path / "out").iterdir()) == []


def test_without_headers_there_is_no_libtorch(tmp_path: Path) -> None:
    path = make_wheel(tmp_path / "dist", {}, platform="win_amd64")
    with pytest.raises(PackageRefused, match="no torch/include"):
        make(path, order(tmp_path / "out", "libtorch"))
    assert list((tmp_path / "out").iterdir()) == []


def test_a_missing_tool_is_named_with_how_to_get_it(
    wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(PackageRefused, match="auditwheel and delvewheel") as caught:
        make(wheel, order(tmp_path / "out"))
    assert caught.value.next_step == f"Install it: {extra_line('package')}"
    assert sys.executable in caught.value.looked[0]
    assert not (tmp_path / "out").exists()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # auditwheel's own folder
def test_a_damaged_member_is_a_sentence(wheel: Path, tmp_path: Path) -> None:
    data = wheel.read_bytes()
    wheel.write_bytes(data.replace(b"x" * 100, b"y" + b"x" * 99, 1))
    with pytest.raises(PackageRefused, match="is damaged"):
        make(wheel, order(tmp_path / "out"))
    assert list((tmp_path / "out").iterdir()) == []
    assert tempfile.tempdir != str(tmp_path)


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("torch.whl", b"", "not named as a wheel"),
        ("torch-2.6.0-cp311-cp311-linux_x86_64.whl", b"PK", "truncated or not a wheel"),
        ("torch-2.6.0-cp311-cp311-macosx_11_0_arm64.whl", b"", "Linux and Windows"),
    ],
)
def test_what_is_no_wheel_is_refused(name: str, data: bytes, says: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(PackageRefused, match=says):
        look_at_wheel(tmp_path / name)


@pytest.mark.parametrize("name", ["../x", "/x", "C:x", "torch/NUL", "torch//x", "torch/VERSION.py"])
def test_a_member_with_another_name_is_not_unpacked(name: str, tmp_path: Path) -> None:
    path = make_wheel(tmp_path / "dist", {**HEADERS, name: b"x"}, platform="win_amd64")
    with pytest.raises(ArchiveRefused):
        make(path, order(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_a_wheel_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other-1-py3-none-win_amd64.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("other.py", "")
    with pytest.raises(PackageRefused, match="not a wheel of torch"):
        look_at_wheel(path)


def test_what_a_wheel_says_of_itself(tmp_path: Path) -> None:
    wheel = look_at_wheel(make_wheel(tmp_path, version="2.9.0+cu126", cuda="12.6"))
    assert (wheel.content.torch_version, wheel.cuda, wheel.content.commit) == (
        "2.9.0+cu126",
        "12.6",
        "abc1234",
    )
    assert (wheel.windows, wheel.machine) == (False, "x86_64")
