"""Addresses as people write them: understood, or refused with a paragraph that shows how."""

from __future__ import annotations

import pytest

from tests.support.for_each import each_case
from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.features.cluster.choose import file_name, host_and_port, listening, scheduler_url


@each_case(
    ("text", "url", "name"),
    [
        ("big", "http://big:10600", "big-10600"),
        ("10.0.0.1:77", "http://10.0.0.1:77", "10.0.0.1-77"),
        ("http://big", "http://big:10600", "big-10600"),
        ("http://BIG.lan:10600/", "http://big.lan:10600", "big.lan-10600"),
        ("https://big.lan", "https://big.lan", "big.lan-443"),
        ("https://big.lan:8443", "https://big.lan:8443", "big.lan-8443"),
        ("http://[fd00::1]", "http://[fd00::1]:10600", "fd00__1-10600"),
    ],
)
def test_a_scheduler(text: str, url: str, name: str) -> None:
    assert scheduler_url(text) == url
    assert file_name(url) == name


@each_case(
    "text",
    [
        "",
        "http://",
        "ftp://big",
        "big:port",
        "big:99999",
        "http://big/path",
        "http://big?x=1",
        "http://[fd00",
        "two words",
        "\udcff",
        "x" * 64,
    ],
)
def test_what_is_no_scheduler(text: str) -> None:
    with pytest.raises(UsageError, match="is not a scheduler's address") as refused:
        scheduler_url(text)
    assert "10600" in refused.value.next_step


def test_a_port_that_is_none_is_said() -> None:
    with pytest.raises(UsageError, match="'port' is no port"):
        scheduler_url("big:port")


def test_a_password_in_it_is_not_repeated() -> None:
    with pytest.raises(UsageError) as refused:
        scheduler_url("http://me:secret@big")
    assert "secret" not in refused.value.what + refused.value.next_step


@each_case(
    ("text", "shown", "parts"),
    [
        ("10.0.0.2", "10.0.0.2:10501", ("10.0.0.2", 10501)),
        ("10.0.0.2:7", "10.0.0.2:7", ("10.0.0.2", 7)),
        ("fd00::2", "[fd00::2]:10501", ("fd00::2", 10501)),
        ("[fd00::2]", "[fd00::2]:10501", ("fd00::2", 10501)),
        ("[fd00::2]:7", "[fd00::2]:7", ("fd00::2", 7)),
        ("0.0.0.0", "0.0.0.0:10501", ("0.0.0.0", 10501)),
    ],
)
def test_where_one_listens(text: str, shown: str, parts: tuple[str, int]) -> None:
    assert listening(text, 10501, "--listen") == shown
    assert host_and_port(shown) == parts


@each_case(
    ("text", "says"),
    [
        ("big", "is not an IP address"),
        ("", "is not an IP address"),
        ("10.0.0.2:0", "0 is not a port"),
        ("10.0.0.2:x", "x"),
    ],
)
def test_where_one_cannot_listen(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says) as refused:
        listening(text, 10501, "--allow")
    assert "--allow" in refused.value.what
