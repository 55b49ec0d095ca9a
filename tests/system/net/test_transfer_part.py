"""An unfinished file: what the next run takes up of it, and what it does not."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from torchbuild_tasks.errors import DownloadFailed
from torchbuild_tasks.system.net.client import Halted
from torchbuild_tasks.system.net.transfer import Origin, Part

ABOUT = Origin(url="https://h/f", etag='"1"', size=6)


def begun(target: Path) -> Part:
    part = Part(target)
    part.restart(ABOUT)
    part.add(b"abc")
    return part


def resumed(target: Path) -> Part:
    part = Part(target)
    part.resume()
    return part


def test_what_is_left_is_taken_up_and_finished(tmp_path: Path) -> None:
    target = tmp_path / "f"
    begun(target).give_up()
    part = resumed(target)
    assert (part.done, part.origin, part.pieced) == (3, ABOUT, True)
    part.add(b"def")
    assert part.sha256() == hashlib.sha256(b"abcdef").hexdigest()
    part.finish()
    assert {path.name: path.read_bytes() for path in tmp_path.glob("f*")} == {"f": b"abcdef"}


def test_only_as_much_as_the_note_vouches_for(tmp_path: Path) -> None:
    """A killed run has written more than it has noted."""
    target = tmp_path / "f"
    begun(target).give_up()
    with Part(target).path.open("ab") as file:
        file.write(b"XYZXYZ")
    part = resumed(target)
    part.add(b"def")
    part.finish()
    assert target.read_bytes() == b"abcdef"


@pytest.mark.parametrize("content", [b"abX", b"ab", b""])
def test_nothing_of_a_part_that_its_note_does_not_fit(content: bytes, tmp_path: Path) -> None:
    target = tmp_path / "f"
    begun(target).give_up()
    Part(target).path.write_bytes(content)
    part = resumed(target)
    assert (part.done, part.origin) == (0, None)
    assert list(tmp_path.glob("f*")) == []


@pytest.mark.parametrize("note", ["", "{", "[]", "{}", '{"done": 3, "sha256": "", "origin": {"no": 1}}'])
def test_no_note_that_makes_no_sense(note: str, tmp_path: Path) -> None:
    target = tmp_path / "f"
    part = begun(target)
    part.give_up()
    part.note_path.write_text(note, "utf-8")
    assert resumed(target).done == 0


def test_a_late_writer_changes_nothing(tmp_path: Path) -> None:
    """A thread that comes back from a dead server after its download was given up."""
    part = begun(tmp_path / "f")
    part.give_up()
    late_calls: tuple[Callable[[], None], ...] = (
        lambda: part.add(b"X"),
        lambda: part.restart(ABOUT),
        part.forget,
        part.finish,
    )
    for late in late_calls:
        with pytest.raises(Halted):
            late()
    assert part.path.read_bytes() == b"abc"
    assert json.loads(part.note_path.read_bytes())["done"] == 3


def test_a_folder_that_is_gone_is_reported(tmp_path: Path) -> None:
    with pytest.raises(DownloadFailed, match="cannot be written"):
        Part(tmp_path / "none" / "f").restart(ABOUT)


def test_a_note_that_cannot_be_written_leaves_the_one_before(tmp_path: Path) -> None:
    """As does a kill while it is written: never is there half a note, which would cost all that is there."""
    part = begun(tmp_path / "f")
    part.note()
    (tmp_path / "f.part.json.new").mkdir()
    part.add(b"def")
    part.give_up()
    part = resumed(tmp_path / "f")
    assert part.done == 3
    part.give_up()
