"""Responses of servers, made by an adapter of requests: which are accepted and which are refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import requests
import urllib3

from tests.support.answers import Answer, ScriptedNet, in_turn
from tests.support.for_each import each_case
from torchbuild_tasks.system.net.client import Again, Refused
from torchbuild_tasks.system.net.transfer import ask, blocks, content_range, length, origin

URL = "https://h/f"


def asked(*answers: Answer, url: str = URL) -> requests.Response:
    net = ScriptedNet(script=in_turn(*answers))
    return ask(net.session(), net, url)


def to(place: str) -> tuple[int, Mapping[str, str], bytes]:
    return 302, {"Location": place}, b""


def test_redirects_are_followed_also_to_https() -> None:
    response = asked(to("/b"), to("http://h/c"), to("https://h/d"), (200, {}, b"body"), url="http://h/a")
    assert response.url == "https://h/d"
    assert list(blocks(response.raw)) == [b"body"]


@each_case(
    ("answers", "told"),
    [
        ([to("http://h/g?token=secret")], "from https to http://h/g?token=..., which is not secure"),
        ([to("https://g/f"), to("http://h/f")], "not secure"),
        ([to("file:///etc/passwd")], "neither http nor https"),
        ([to("ftp://h/f")], "neither http nor https"),
        ([to("https://[h/f")], "not an address"),
        ([to("https://h/\xff")], "cannot be asked for"),
        ([to("/g"), to("/f")], "in a circle"),
        ([to(f"/{n}") for n in range(11)], "more than 10 times"),
        ([(404, {}, b"")], "answered 404 Not Found"),
        ([(403, {"Retry-After": "1"}, b"")], "answered 403 Forbidden"),
        ([(304, {}, b"")], "answered 304"),
        ([(299, {}, b"")], "answered 299"),
        ([requests.exceptions.InvalidURL("https://u:secret@")], "cannot be asked for"),
        ([requests.exceptions.ProxyError(OSError("Tunnel connection failed: 407 Who"))], "407 Proxy Auth"),
    ],
)
def test_refused(answers: list[Any], told: str) -> None:
    with pytest.raises(Refused) as caught:
        asked(*answers)
    assert told in str(caught.value)
    assert "secret" not in str(caught.value)


def test_the_body_of_a_redirect_is_not_read() -> None:
    redirects = list[requests.Response]()
    net = ScriptedNet(script=in_turn((302, {"Location": "/g"}, b"x" * 100), (200, {}, b"")))
    session = net.session()
    session.hooks["response"].append(lambda response, **options: redirects.append(response))
    ask(session, net, URL)
    assert not redirects[0]._content_consumed  # type: ignore[attr-defined]


@each_case(
    ("answer", "told", "wait"),
    [
        ((408, {}, b""), "408", 0),
        ((429, {"Retry-After": "9"}, b""), "429", 9),
        ((500, {}, b""), "500", 0),
        ((599, {"Retry-After": "1"}, b""), "599", 1),
        ((200, {"Content-Encoding": "gzip"}, b""), "Content-Encoding 'gzip'", 0),
        ((206, {"Content-Encoding": "br"}, b""), "Content-Encoding 'br'", 0),
        ((200, {"Transfer-Encoding": "gzip, chunked"}, b""), "Transfer-Encoding", 0),
        (requests.exceptions.ReadTimeout(f"{URL}?token=secret"), "no answer in time", 0),
        (requests.exceptions.ConnectionError("url: /f?token=secret"), "ConnectionError", 0),
        (requests.exceptions.ProxyError(OSError("Tunnel connection failed: 503 Later")), "failed", 0),
    ],
)
def test_again(answer: Any, told: str, wait: float) -> None:
    with pytest.raises(Again) as caught:
        asked(answer)
    assert told in str(caught.value)
    assert caught.value.wait == wait
    assert "secret" not in str(caught.value)


def test_the_innermost_reason_is_reported() -> None:
    inner = urllib3.exceptions.MaxRetryError(None, "/f?token=secret", ConnectionRefusedError(111, "refused"))  # type: ignore[arg-type]
    with pytest.raises(Again, match="^the connection failed: refused$"):
        asked(requests.exceptions.ConnectionError(inner))


@each_case(
    ("headers", "etag", "modified", "size"),
    [
        ({"ETag": '"a"', "Content-Length": "7"}, '"a"', "", 7),
        ({"ETag": 'W/"a"'}, "", "", None),
        ({"ETag": "a"}, "", "", None),
        ({"Content-Length": "7", "Transfer-Encoding": "chunked"}, "", "", None),
        (
            {"Last-Modified": "Wed, 21 Oct 2015 07:28:00 GMT"},
            "",
            "Wed, 21 Oct 2015 07:28:00 GMT",
            None,
        ),
        # It may change again within that second, and keep its date.
        (
            {"Last-Modified": "Wed, 21 Oct 2015 07:28:00 GMT", "Date": "Wed, 21 Oct 2015 07:28:01 GMT"},
            "",
            "",
            None,
        ),
        ({"Last-Modified": "yesterday"}, "", "", None),
    ],
)
def test_origin(headers: dict[str, str], etag: str, modified: str, size: int | None) -> None:
    about = origin("https://u:p@h/f", asked((200, headers, b"")))
    assert (about.url, about.etag, about.modified, about.size) == ("https://h/f", etag, modified, size)


@each_case(
    ("text", "span"),
    [
        ("bytes 1-2/3", (1, 2, 3)),
        ("Bytes 1-2/3", (1, 2, 3)),
        ("bytes 1-2/*", None),
        ("bytes */3", None),
        ("lines 1-2/3", None),
        ("bytes 1-2/3, 4-5/6", None),
        ("bytes -1-2/3", None),
        ("", None),
    ],
)
def test_content_range(text: str, span: tuple[int, int, int] | None) -> None:
    assert content_range(asked((206, {"Content-Range": text}, b""))) == span
    assert content_range(asked((200, {"Content-Range": text}, b""))) is None


@each_case("text", ["-1", "many", "1, 1", "²", "9" * 5000])
def test_a_length_that_makes_no_sense(text: str) -> None:
    with pytest.raises(Again, match="Content-Length"):
        length(asked((200, {"Content-Length": text}, b"")))


def test_blocks_are_all_of_the_body() -> None:
    body = bytes(range(256)) * 4000
    response = asked((200, {}, body))
    assert b"".join(blocks(response.raw)) == body
