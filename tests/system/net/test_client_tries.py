"""How long to wait before another attempt, and when to stop."""

from __future__ import annotations

import threading
import time
from email.utils import formatdate

import pytest

from tests.support.for_each import each_case
from torchbuild_tasks.system.net.client import Again, Halt, Halted, Net, Refused, Tries, retry_after


def in_seconds(seconds: float) -> str:
    return formatdate(time.time() + seconds, usegmt=True)


@each_case(
    ("text", "least", "most"),
    [
        (None, 0, 0),
        ("17", 17, 17),
        (" 3 ", 3, 3),
        ("-3", 0, 0),
        ("soon", 0, 0),
        ("²", 0, 0),
        ("9" * 5000, 0, 0),
        (in_seconds(20_000), 10_000, 20_000),  # a long run comes here hours after it was collected
        (in_seconds(-300), 0, 0),
    ],
    ids=["none", "number", "spaces", "negative", "word", "digit", "endless", "date", "past"],
)
def test_retry_after(text: str | None, least: float, most: float) -> None:
    headers = {} if text is None else {"Retry-After": text}
    assert least <= retry_after(headers) <= most


def waits(net: Net, troubles: list[tuple[Again, int]]) -> str:
    """Go through the troubles; returns the text with which it ends, or ""."""
    tries = Tries("file", net, Halt())
    for trouble, so_far in troubles:
        try:
            tries.wait(trouble, so_far)
        except Refused as end:
            return str(end)
    return ""


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds of each wait, which takes no time."""
    waits = list[float]()
    monkeypatch.setattr(Halt, "sleep", lambda halt, seconds: waits.append(seconds))
    return waits


def test_waits_double_and_end(slept: list[float]) -> None:
    said = list[str]()
    net = Net(attempts=4, back_off=1.0, say=said.append)
    assert waits(net, [(Again("lost"), 0)] * 9) == "lost (4 attempts)"
    assert slept[0] == 0
    assert [2**n <= wait <= 2**n + 1 for n, wait in enumerate(slept[1:], 1)] == [True] * 2
    assert said[0].startswith("file: lost; trying again in ")


def test_waits_obey_the_server_up_to_the_bound(slept: list[float]) -> None:
    net = Net(attempts=9, back_off=0.001, longest_wait=60)
    assert waits(net, [(Again("busy", wait=wait), 0) for wait in (7, 3600, float("inf"))]) == ""
    assert slept == [7, 60, 60]


def test_who_gets_further_has_all_attempts_again(slept: list[float]) -> None:
    net = Net(attempts=2)
    mib = 1 << 20
    assert waits(net, [(Again("lost"), n * mib) for n in range(50)]) == ""
    assert waits(net, [(Again("lost"), mib), (Again("lost"), mib)]) == "lost (2 attempts)"
    back_and_forth = [(Again("lost"), far) for far in (3 * mib, 0, 3 * mib)]
    assert waits(net, back_and_forth) == "lost (2 attempts)"


def test_a_halt_ends_waits_in_other_threads() -> None:
    halt, ended = Halt(), list[BaseException]()

    def wait() -> None:
        try:
            halt.sleep(60)
        except Halted as end:
            ended.append(end)

    thread = threading.Thread(target=wait)
    thread.start()
    halt.now()
    thread.join(timeout=20)
    assert ended
    with pytest.raises(Halted):
        halt.check()
