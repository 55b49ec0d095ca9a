"""A thread that looks again and again, until its block ends or its function wants no more calls."""

from __future__ import annotations

import threading

from torchbuild_tasks.system.periodic import Periodic


def test_it_is_called_until_it_returns_none() -> None:
    calls: list[int] = []
    ended = threading.Event()

    def look() -> float | None:
        calls.append(len(calls))
        if len(calls) < 3:
            return 0.0
        ended.set()
        return None

    with Periodic("test", look, 0.0) as periodic:
        assert ended.wait(60)
        periodic._thread.join(60)
        assert not periodic._thread.is_alive()
    assert calls == [0, 1, 2]


def test_the_end_of_the_block_is_not_waited_for_and_ends_it() -> None:
    with Periodic("test", lambda: 3600.0, 3600.0) as periodic:
        assert not periodic.is_over
    assert periodic.is_over and not periodic._thread.is_alive()


def test_without_a_first_call_no_thread_is_started() -> None:
    with Periodic("test", lambda: 1.0, None) as periodic:
        assert not periodic._thread.is_alive()
