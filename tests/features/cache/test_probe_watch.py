"""A lost shared cache is reported once; a single failure is not."""

from __future__ import annotations

import threading
from collections.abc import Callable

from torchbuild_tasks.features.cache.probe import Watch


def answers(*words: str) -> Callable[[], str]:
    """Each of them once, the last one for ever."""
    left = list(words)
    return lambda: left.pop(0) if len(left) > 1 else left[0]


class Gone:
    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []
        self.happened = threading.Event()

    def __call__(self, name: str, reason: str) -> None:
        self.calls.append((name, reason))
        self.happened.set()


def test_one_that_is_gone_is_reported_once() -> None:
    gone = Gone()
    with Watch({"far": answers(""), "near": answers("", "", "dead")}, gone, every=0.01) as watch:
        assert gone.happened.wait(10)
        watch._thread.join(10)  # it has nothing left to do
    assert gone.calls == [("near", "dead")]


def test_one_that_stumbles_is_not_gone() -> None:
    gone, looks = Gone(), threading.Semaphore(0)
    stumbling = answers("busy", "", "busy", "", "")

    def probe() -> str:
        looks.release()
        return stumbling()

    with Watch({"near": probe}, gone, every=0.001):
        for _ in range(8):
            assert looks.acquire(timeout=10)
    assert gone.calls == []


def test_nothing_to_watch_starts_nothing() -> None:
    before = threading.active_count()
    with Watch({}, Gone()):
        assert threading.active_count() == before
