"""A thread that looks again and again while something else runs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Self


class Periodic:
    """Call a function in a thread of its own, until the block that it is entered around ends.

    Args:
        look: returns the seconds until its next call; None for no more calls.
        first: seconds until the first call; None to start no thread.
    """

    def __init__(self, name: str, look: Callable[[], float | None], first: float | None) -> None:
        self._look = look
        self._first = first
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @property
    def is_over(self) -> bool:
        """Say whether the block has ended: a call that still runs must report nothing."""
        return self._over.is_set()

    def __enter__(self) -> Self:
        if self._first is not None:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        wait = self._first
        while wait is not None and not self._over.wait(wait):
            wait = self._look()
