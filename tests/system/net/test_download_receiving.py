"""One address, answer by answer: what is added to a part, and what makes it begin again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.answers import Answer, Scripted, ScriptedNet, in_turn
from torchbuild_tasks.system.net.client import Again, Halt, Refused
from torchbuild_tasks.system.net.download import Receiver
from torchbuild_tasks.system.net.transfer import Origin, Part, Remote

URL = "https://h/f"
ABOUT = Origin(url=URL, etag='"1"', size=6)
REST = {"Content-Range": "bytes 3-5/6", "ETag": '"1"', "Content-Length": "3"}


@pytest.fixture
def part(tmp_path: Path) -> Part:
    """Three bytes of six are there."""
    part = Part(tmp_path / "f")
    part.restart(ABOUT)
    part.add(b"abc")
    return part


def attempt(part: Part, script: Scripted, remote: Remote | None = None, *, whole: bool = False) -> None:
    net = ScriptedNet(script=script)
    remote = remote or Remote(name="f", urls=(URL,))
    with Receiver(remote, URL, part, net, lambda *progress: None, Halt()) as receiver:
        receiver.attempt(whole=whole)


def content(part: Part) -> bytes:
    part.give_up()
    return part.path.read_bytes()


def test_the_rest_is_requested_if_the_file_is_the_same(part: Part) -> None:
    script = in_turn((206, REST, b"def"))
    attempt(part, script)
    assert script.asked[0].headers["Range"] == "bytes=3-"
    assert script.asked[0].headers["If-Range"] == '"1"'
    assert (part.done, part.pieced, content(part)) == (6, True, b"abcdef")


@pytest.mark.parametrize("about", [Origin(url=URL, size=6), Origin(url="https://h/g", etag='"1"', size=6)])
def test_no_range_request_without_a_validator(about: Origin, part: Part) -> None:
    """Neither without a validator, nor of what came from another address."""
    part.restart(about)
    part.add(b"abc")
    script = in_turn((200, {"Content-Length": "6"}, b"uvwxyz"))
    attempt(part, script)
    assert "Range" not in script.asked[0].headers
    assert (part.pieced, content(part)) == (False, b"uvwxyz")


def test_a_last_modified_will_do_where_no_etag_is(part: Part) -> None:
    when = "Wed, 21 Oct 2015 07:28:00 GMT"
    part.restart(Origin(url=URL, modified=when, size=6))
    part.add(b"abc")
    script = in_turn((206, {**REST, "Last-Modified": when}, b"def"))
    attempt(part, script)
    assert script.asked[0].headers["If-Range"] == when
    assert content(part) == b"abcdef"


@pytest.mark.parametrize(
    "headers",
    [
        {**REST, "Content-Range": "bytes 2-4/6"},
        {**REST, "Content-Range": "bytes 3-4/6"},
        {**REST, "Content-Range": "bytes 3-5/7"},
        {**REST, "Content-Range": "bytes 3-5/*"},
        {**REST, "Content-Length": "4"},
        {**REST, "ETag": '"2"'},
        {"ETag": '"1"'},
    ],
)
def test_a_lie_about_the_rest_makes_it_begin_anew(headers: Mapping[str, str], part: Part) -> None:
    with pytest.raises(Again, match="from the beginning") as caught:
        attempt(part, in_turn((206, headers, b"def")))
    assert caught.value.lied
    assert part.done == 0
    assert not part.path.exists()


def test_the_full_file_in_place_of_the_rest(part: Part) -> None:
    attempt(part, in_turn((200, {"Content-Length": "6", "ETag": '"2"'}, b"uvwxyz")))
    assert (part.pieced, part.origin and part.origin.etag, content(part)) == (False, '"2"', b"uvwxyz")


def test_another_file_does_not_touch_what_is_there(part: Part) -> None:
    """A page that asks for a login, say, with status 200."""
    with pytest.raises(Again, match="announced 2 bytes instead of 6"):
        attempt(part, in_turn((200, {"Content-Length": "2"}, b"no")), Remote(name="f", urls=(URL,), size=6))
    assert content(part) == b"abc"


@pytest.mark.parametrize("wanted", [None, 6])
def test_a_complete_part_needs_no_answer(wanted: int | None, part: Part) -> None:
    """The last run was killed between the last byte and the move."""
    part.add(b"def")
    attempt(part, in_turn(), Remote(name="f", urls=(URL,), size=wanted))
    assert content(part) == b"abcdef"


@pytest.mark.parametrize(
    ("answer", "error", "told"),
    [
        ((206, REST, b"def"), Again, "206 to a plain question"),
        ((416, {}, b""), Again, "416 to a plain question"),
        ((200, {"Content-Length": "7"}, b"abcdef"), Again, "ended before the file did"),
        ((200, {}, b"abcdef"), Refused, "how long"),
    ],
)
def test_a_beginning_that_cannot_be_trusted(
    answer: Answer, error: type[Exception], told: str, tmp_path: Path
) -> None:
    part = Part(tmp_path / "f")
    with pytest.raises(error, match=told):
        attempt(part, in_turn(answer))
    part.give_up()


def test_more_than_announced_is_not_kept(part: Part) -> None:
    remote = Remote(name="f", urls=(URL,), size=5, sha256="0" * 64)
    with pytest.raises(Again, match="more than"):
        attempt(part, in_turn((200, {"Transfer-Encoding": "chunked"}, b"abcdef")), remote)
    assert not part.path.exists()


def test_a_full_file_is_requested_without_a_range(part: Part) -> None:
    script = in_turn((200, {"Content-Length": "6", "ETag": '"1"'}, b"abcdef"))
    attempt(part, script, whole=True)
    assert "Range" not in script.asked[0].headers
    assert not part.pieced
    part.give_up()
