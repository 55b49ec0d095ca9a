"""Several connections for one file: each answer must be exactly the range that was asked for."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import requests

from tests.support.answers import Answer, Scripted, ScriptedNet
from torchbuild_tasks.effects.fetch.part import Part
from torchbuild_tasks.effects.fetch.ranges import in_ranges
from torchbuild_tasks.effects.fetch.remote import Origin
from torchbuild_tasks.effects.fetch.tries import Again, Halt, Halted, Refused

URL = "https://h/f"
DATA = random.Random(3).randbytes(22 << 20)  # several ranges of the least size
SIZE = len(DATA)
BEGUN = 1_000_003


@pytest.fixture
def part(tmp_path: Path) -> Iterator[Part]:
    part = Part(tmp_path / "f")
    part.restart(Origin(url=URL, etag='"1"', size=SIZE))
    part.add(DATA[:BEGUN])
    yield part
    part.give_up()


def honest(request: requests.PreparedRequest) -> tuple[int, dict[str, str], bytes]:
    found = re.fullmatch(r"bytes=(\d+)-(\d+)", request.headers["Range"])
    assert found
    assert request.headers["If-Range"] == '"1"'
    first, last = int(found[1]), int(found[2])
    body = DATA[first : last + 1]
    span = f"bytes {first}-{last}/{SIZE}"
    return 206, {"Content-Range": span, "ETag": '"1"', "Content-Length": str(len(body))}, body


def once(change: Callable[[tuple[int, dict[str, str], bytes]], Answer], nth: int = 3) -> Scripted:
    """Honest, but for one answer."""
    count = iter(range(1, 1000))

    def answer(request: requests.PreparedRequest) -> Answer:
        return change(honest(request)) if next(count) == nth else honest(request)

    return Scripted(answer)


def run(part: Part, script: Scripted, halt: Halt | None = None) -> list[int]:
    told = list[int]()
    in_ranges(part, URL, ScriptedNet(script=script, ranges=3, attempts=3), halt or Halt(), told.append)
    return told


def test_all_of_it_comes_and_is_hashed(part: Part) -> None:
    script = Scripted(honest)
    assert max(run(part, script)) == SIZE
    assert len(script.asked) == 6
    part.finish()
    assert part.target.read_bytes() == DATA


@pytest.mark.parametrize(
    "change",
    [
        lambda good: ConnectionResetError("lost"),
        lambda good: (503, {}, b""),
        lambda good: (good[0], {**good[1], "Content-Length": ""}, good[2][:-5]),
    ],
    ids=["lost", "busy", "cut"],
)
def test_what_another_attempt_mends_is_mended_there(
    change: Callable[[tuple[int, dict[str, str], bytes]], Answer], part: Part
) -> None:
    run(part, once(change))
    part.finish()
    assert part.target.read_bytes() == DATA


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda good: (200, {"Content-Length": str(SIZE)}, DATA), Again),
        (lambda good: (416, {}, b""), Again),
        (
            lambda good: (206, {**good[1], "Content-Range": f"bytes 0-{len(good[2]) - 1}/{SIZE}"}, good[2]),
            Again,
        ),
        (lambda good: (206, {**good[1], "Content-Range": good[1]["Content-Range"] + "0"}, good[2]), Again),
        (lambda good: (206, {**good[1], "Content-Length": "7"}, good[2]), Again),
        (lambda good: (206, {**good[1], "ETag": '"2"'}, good[2]), Again),
        (lambda good: (206, {**good[1], "Content-Length": ""}, good[2] + b"more"), Again),
        (lambda good: (403, {}, b""), Refused),
    ],
    ids=["whole", "416", "elsewhere", "total", "length", "etag", "longer", "forbidden"],
)
def test_anything_else_ends_it_and_leaves_a_good_beginning(
    change: Callable[[tuple[int, dict[str, str], bytes]], Answer], error: type[Exception], part: Part
) -> None:
    with pytest.raises(error) as caught:
        run(part, once(change))
    assert isinstance(caught.value, Refused) or caught.value.lied  # type: ignore[attr-defined]
    assert BEGUN <= part.done < SIZE
    assert part.path.read_bytes() == DATA[: part.done]
    part.add(DATA[part.done :])
    part.finish()
    assert part.target.read_bytes() == DATA


def test_it_stops_when_told_to(part: Part) -> None:
    halt = Halt()

    def stopping(request: requests.PreparedRequest) -> Answer:
        halt.now()
        return honest(request)

    with pytest.raises(Halted):
        run(part, Scripted(stopping), halt)
    assert part.path.read_bytes() == DATA[: part.done]
