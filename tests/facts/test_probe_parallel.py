from __future__ import annotations

import threading

from torchbuild_tasks.facts.probe import map_parallel


def test_answers_come_in_the_order_of_the_items() -> None:
    first_may_end = threading.Event()

    def slow_first(item: int) -> int:
        if item == 0:
            assert first_may_end.wait(10)
        else:
            first_may_end.set()
        return item * 10

    # Ends only because the second runs while the first waits for it.
    assert map_parallel(slow_first, [0, 1]) == (0, 10)


def test_one_or_no_item_needs_no_thread() -> None:
    assert map_parallel(lambda item: (item, threading.current_thread()), ["x"]) == (
        ("x", threading.main_thread()),
    )
    assert map_parallel(len, []) == ()
