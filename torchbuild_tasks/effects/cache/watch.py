"""Watches shared caches while a build runs: one that dies would hold up every miss for a minute."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Final, Self

EVERY: Final = 3.0  # seconds between two looks


class Watch:
    """A thread that asks each shared cache every few seconds, and says once when one is gone.

    Args:
        probes: by name, a function that returns "" while the shared cache answers, else why not.
        gone: called once, in that thread, with the name and the reason.
        every: seconds between two looks.
    """

    def __init__(
        self,
        probes: Mapping[str, Callable[[], str]],
        gone: Callable[[str, str], None],
        every: float = EVERY,
    ) -> None:
        self._probes, self._gone, self._every = probes, gone, every
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, name="shared cache", daemon=True)

    def __enter__(self) -> Self:
        if self._probes:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(self._every):
            for name, probe in self._probes.items():
                # A second time, for a server that is busy for a moment is not gone.
                if (probe() and not self._over.is_set()) and (reason := probe()):
                    if not self._over.is_set():
                        self._gone(name, reason)
                    return
