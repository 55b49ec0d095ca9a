"""Why two archives are not the same bytes, file by file."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from torchbuild_tasks.errors import PackageRefused
from torchbuild_tasks.features.reproducible.bits import bits_text, compare_bits

Time = tuple[int, int, int, int, int, int]
TIME: Time = (2026, 1, 1, 0, 0, 0)


@pytest.fixture(autouse=True)
def _without_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A diffoscope of this machine's is not started here; tests/integration/test_reproducible.py tries it."""
    monkeypatch.setenv("PATH", "")


def archive(path: Path, *members: tuple[str, bytes], time: Time = TIME) -> Path:
    with zipfile.ZipFile(path, "w") as made:
        for name, data in members:
            made.writestr(zipfile.ZipInfo(name, time), data)
    return path


def seen(one: Path, other: Path) -> dict[str, str]:
    return {each.name: each.what for each in compare_bits(one, other).differences}


def test_equal_bytes_are_reported_as_equal(tmp_path: Path) -> None:
    one = archive(tmp_path / "a.whl", ("x", b"1"))
    other = archive(tmp_path / "b.whl", ("x", b"1"))
    assert compare_bits(one, other).same
    assert bits_text(compare_bits(one, other), ("a", "b")).startswith("The same bytes: sha256 ")


def test_times_order_and_files_of_one_alone_are_named(tmp_path: Path) -> None:
    one = archive(tmp_path / "a.whl", ("x", b"1"), ("y", b"1"), ("z", b"1"))
    later = archive(tmp_path / "b.whl", ("y", b"1"), ("x", b"1"), time=(2026, 1, 2, 0, 0, 0))
    wanted = {"z": "only in the first", "": "the files are in another order", "x": "time", "y": "time"}
    assert seen(one, later) == wanted


def test_a_changed_line_is_shown(tmp_path: Path) -> None:
    one = archive(tmp_path / "a.whl", ("torch/version.py", b"debug = False\ncuda = None\n"))
    other = archive(tmp_path / "b.whl", ("torch/version.py", b"debug = True\ncuda = None\n"))
    text = bits_text(compare_bits(one, other), ("a.whl", "b.whl"))
    assert "torch/version.py: text\n    -debug = False\n    +debug = True\n" in text


def test_binary_content_is_described_by_its_size(tmp_path: Path) -> None:
    one, other = tmp_path / "a", tmp_path / "b"
    one.write_bytes(b"\xff\x00")
    other.write_bytes(b"\xff\x00\x01")
    assert seen(one, other) == {"a": "content, 2 and 3 bytes"}


def test_what_is_not_there_or_broken_is_refused(tmp_path: Path) -> None:
    one = archive(tmp_path / "a.whl", ("x", b"1" * 99))
    with pytest.raises(PackageRefused, match="There is no file"):
        compare_bits(one, tmp_path / "gone.whl")
    data = one.read_bytes()
    other = tmp_path / "b.whl"
    other.write_bytes(data.replace(b"1" * 99, b"2" * 99))  # its checksum is no longer right
    with pytest.raises(PackageRefused, match="damaged"):
        compare_bits(one, other)


@pytest.mark.parametrize("name", ["..", "a/..", "/", "x" * 300, "\u65e5" * 200, "nul", "C:out", "a\nb"])
def test_an_archives_names_lead_nowhere(name: str, tmp_path: Path) -> None:
    """Files that differ are laid out for diffoscope; those of one name in two folders are two."""
    pair = [archive(tmp_path / side, (name, side.encode()), ("b/" + name, side.encode())) for side in "ab"]
    assert seen(*pair) == {name: "text", "b/" + name: "text"}
    assert {path.name for path in tmp_path.iterdir()} <= {"a", "b", "home"}


@pytest.mark.parametrize(("at", "value"), [(8, 1), (8, 0x20), (10, 12), (10, 99)])
def test_what_cannot_be_unpacked_is_damaged(at: int, value: int, tmp_path: Path) -> None:
    """By its flags or method an entry is encrypted, patch data, or compressed in an unsupported way."""
    one = archive(tmp_path / "a.whl", ("x", b"1"))
    data = bytearray(one.read_bytes())
    place = data.find(b"PK\1\2") + at
    data[place : place + 2] = value.to_bytes(2, "little")
    (tmp_path / "b.whl").write_bytes(data)
    with pytest.raises(PackageRefused, match="damaged"):
        compare_bits(one, tmp_path / "b.whl")


def test_libraries_whose_tables_lie_are_compared_by_their_size(tmp_path: Path) -> None:
    ends = (b"\xff" * 300, b"\x00" * 301)
    one, other = (archive(tmp_path / f"{len(end)}", ("l.so", b"\x7fELF\x02\x01\x01" + end)) for end in ends)
    assert seen(one, other) == {"l.so": "library, 307 and 308 bytes"}


def test_diffoscope_is_not_suggested_where_no_content_differs(tmp_path: Path) -> None:
    pair = [archive(tmp_path / str(day), ("x", b"1"), time=(2026, 1, day, 0, 0, 0)) for day in (1, 2)]
    assert "diffoscope" not in bits_text(compare_bits(pair[0], pair[1]), ("a", "b"))
