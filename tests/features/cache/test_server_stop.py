"""The end of a server: it is asked to stop unless nobody waits for its compiles, and ended if it stays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from torchbuild_tasks.features.cache import server as module
from torchbuild_tasks.features.cache.server import PortPlace, Server
from torchbuild_tasks.system import process
from torchbuild_tasks.system.process import Captured


@pytest.mark.parametrize(
    ("pids", "at_once", "asked", "ended"),
    [
        ((7, None), False, True, []),
        ((7, 7), False, True, [7]),  # it did not stop
        ((7, 8), False, True, []),  # another has taken its place
        ((7,), True, False, [7]),
        ((None,), True, True, []),  # Windows reports no pid
    ],
)
def test_a_server_is_asked_to_stop_and_ended(
    pids: Sequence[int | None], at_once: bool, asked: bool, ended: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    listening, words, killed = iter(pids), list[str](), list[int]()

    def capture(argv: Sequence[str], **_: Any) -> Captured:
        words.append(argv[1])
        return Captured(rc=0, stdout=b"{}")

    monkeypatch.setattr(PortPlace, "pid", lambda *_: next(listening))
    monkeypatch.setattr(process, "capture", capture)
    monkeypatch.setattr(process, "stream", lambda *_, **__: 0)
    monkeypatch.setattr(module, "end_tree", lambda pid, _: killed.append(pid))
    server = Server("sccache", PortPlace(), {})
    assert server.start() == ""
    server.stop(at_once=at_once)
    server.stop()  # once is enough
    assert ("--stop-server" in words, killed) == (asked, ended)
    assert server.answers == [("{}", "{}")]
