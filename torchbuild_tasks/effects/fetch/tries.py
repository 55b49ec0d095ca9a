"""Trying again: what is worth it, how long to wait before it, and how to stop at once."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from torchbuild_tasks.effects.fetch.net import Net

if TYPE_CHECKING:
    import requests

_ENDING: Final = 1.0  # seconds
_FURTHER: Final = 1 << 20  # bytes; who gets that much further has all attempts again


class Again(Exception):
    """Something that another attempt may mend.

    Args:
        why: what happened, without secrets.
        wait: seconds that the server asked for.
        lied: the answer contradicts itself or what was asked for.
    """

    def __init__(self, why: str, *, wait: float = 0.0, lied: bool = False) -> None:
        super().__init__(why)
        self.wait = wait
        self.lied = lied


class Refused(Exception):
    """This address does not give the file, and another attempt would not change that."""


class Halted(Exception):
    """Another thread has failed or the user wants to stop: this one ends, and says nothing."""


class Halt:
    """Stops threads that wait or read from a connection."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._open: list[requests.Response] = []

    def now(self) -> None:
        """Stop: waits end, and connections that are read from come to their end."""
        self._event.set()
        with self._lock:
            for response in self._open:
                # Without urllib3's shutdown (older than 2.3) the thread ends at its next block.
                with contextlib.suppress(AttributeError, RuntimeError, ValueError, OSError):
                    response.raw.shutdown()

    def check(self) -> None:
        """Raise Halted when it is time to end."""
        if self._event.is_set():
            raise Halted

    def sleep(self, seconds: float, net: Net) -> None:
        """Wait, or raise Halted."""
        if net.sleep is not None:
            net.sleep(seconds)
        else:
            self._event.wait(seconds)
        self.check()

    @contextlib.contextmanager
    def reading(self, response: requests.Response) -> Iterator[None]:
        """Let `response` be stopped while it is read, and close it in the end."""
        with self._lock:
            self._open.append(response)
        try:
            self.check()
            yield
        finally:
            with self._lock:
                self._open.remove(response)
            response.close()


def join_all(threads: Iterable[threading.Thread]) -> None:
    """Wait a moment for threads that were told to stop; later they write nothing any more."""
    deadline = time.monotonic() + _ENDING
    for thread in threads:
        if thread.ident:
            thread.join(timeout=max(0.0, deadline - time.monotonic()))


class Tries:
    """Counts what went wrong with one address, and waits before each further attempt.

    How often and how long is urllib3's `Retry`. requests' adapter cannot be left to apply it: it
    would try again only up to an answer's headers, in silence, and in a sleep that nothing ends.
    """

    def __init__(self, name: str, net: Net, halt: Halt) -> None:
        from urllib3 import Retry

        self._name, self._net, self._halt = name, net, halt
        self._all = self._left = Retry(
            total=net.attempts - 1,
            backoff_factor=net.back_off,
            backoff_max=net.longest_wait,
            backoff_jitter=net.back_off,  # so that many who failed together do not come back together
        )
        self._furthest = 0

    def wait(self, trouble: Again, so_far: int) -> None:
        """Wait as long as the server asked, or exponentially longer each time.

        Args:
            trouble: what happened.
            so_far: bytes that are there; getting further gives all attempts back.

        Raises:
            Refused: that was the last attempt.
        """
        from urllib3.exceptions import MaxRetryError

        if so_far >= self._furthest + _FURTHER:
            self._left, self._furthest = self._all, so_far
        try:
            self._left = self._left.increment(error=trouble)
        except MaxRetryError:
            raise Refused(f"{trouble} ({self._net.attempts} attempts)") from None
        pause = min(max(self._left.get_backoff_time(), trouble.wait), self._net.longest_wait)
        asked = f" and asked for a wait of {trouble.wait:.0f} s" if trouble.wait else ""
        self._net.say(f"{self._name}: {trouble}{asked}; trying again in {pause:.1f} s")
        self._halt.sleep(pause, self._net)


def retry_after(headers: Mapping[str, str]) -> float:
    """Return the seconds that `Retry-After` asks for, 0 where there is none that makes sense."""
    from urllib3 import Retry
    from urllib3.exceptions import InvalidHeader

    try:
        return float(Retry().parse_retry_after(headers.get("Retry-After", "0")))
    except (InvalidHeader, ValueError, OverflowError):
        return 0.0
