"""The rest of one large file over several connections, for servers that limit each of them."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from torchbuild_tasks.effects.fetch.asking import ask, blocks, content_range, length, origin
from torchbuild_tasks.effects.fetch.net import Net
from torchbuild_tasks.effects.fetch.part import Part
from torchbuild_tasks.effects.fetch.tries import Again, Halt, Halted, Tries, join_all

if TYPE_CHECKING:
    import requests

_LEAST: Final = 4 << 20  # bytes of one range
_MOST: Final = 32 << 20


@dataclass
class _Span:
    """Bytes `at` up to `end`, without `end`, that one connection is to get."""

    at: int
    end: int


def in_ranges(part: Part, address: str, net: Net, halt: Halt, tell: Callable[[int], None]) -> None:
    """Fill the part to its end; its origin has a strong ETag and a size.

    The ranges are given out in order, and the beginning that is complete is hashed while the
    rest comes in, so a part that is left is good up to its `done`, as always.

    Args:
        part: what is there already is kept.
        tell: is told how many bytes are there.

    Raises:
        Again: a range could not be had or was answered wrongly; the part is cut to what is good.
        Refused: the server does not want to give ranges.
    """
    _Ranges(part, address, net, tell).run(halt)


class _Ranges:
    def __init__(self, part: Part, address: str, net: Net, tell: Callable[[int], None]) -> None:
        assert part.origin is not None and part.origin.size is not None
        self._part, self._address, self._net, self._tell = part, address, net, tell
        self._origin, self._size = part.origin, part.origin.size
        left = self._size - part.done
        self._step = min(max(left // (4 * net.ranges), _LEAST), _MOST)
        self._given = self._got = part.done
        self._out: list[_Span] = []  # given out and not complete
        self._problem: BaseException | None = None
        self._changed = threading.Condition()
        self._halt = Halt()

    def run(self, halt: Halt) -> None:
        threads = [threading.Thread(target=self._work, daemon=True) for _ in range(self._net.ranges)]
        try:
            self._part.reserve(self._size)
            for thread in threads:
                thread.start()
            while self._part.done < self._size:
                halt.check()
                self._part.absorb(self._complete())
        except BaseException:
            self._stop()
            with contextlib.suppress(Halted):
                self._part.cut()
            raise
        finally:
            join_all(threads)

    def _complete(self) -> int:
        """Wait a moment; returns up to where all ranges are complete."""
        with self._changed:
            if self._problem is not None:
                raise self._problem
            if self._there() == self._part.done:
                self._changed.wait(timeout=0.2)
            return self._there()

    def _there(self) -> int:
        return min((span.at for span in self._out), default=self._given)

    def _stop(self) -> None:
        with self._changed:  # whoever writes has it, so nothing is written after this
            self._halt.now()

    def _work(self) -> None:
        try:
            with self._net.session() as session:
                while (span := self._take()) is not None:
                    self._fill(session, span)
        except Halted:
            pass
        except BaseException as problem:  # noqa: BLE001 - raised again by the thread that waits for us
            with self._changed:
                self._problem = self._problem or problem
                self._changed.notify_all()

    def _take(self) -> _Span | None:
        with self._changed:
            self._halt.check()
            if self._given == self._size:
                return None
            span = _Span(self._given, min(self._given + self._step, self._size))
            self._given = span.end
            self._out.append(span)
            return span

    def _fill(self, session: requests.Session, span: _Span) -> None:
        tries = Tries(self._part.target.name, self._net, self._halt)
        while True:
            try:
                self._attempt(session, span)
                break
            except Again as trouble:
                if trouble.lied:
                    raise
                tries.wait(trouble, span.at)
        with self._changed:
            self._out.remove(span)
            self._changed.notify_all()

    def _attempt(self, session: requests.Session, span: _Span) -> None:
        self._halt.check()
        headers = {"Range": f"bytes={span.at}-{span.end - 1}", "If-Range": self._origin.etag}
        response = ask(session, self._net, self._address, headers)
        with self._halt.reading(response):
            self._check(response, span)
            for block in blocks(response.raw):
                self._take_in(block, span)
        self._halt.check()
        if span.at < span.end:
            raise Again("the connection of a range ended early")

    def _check(self, response: requests.Response, span: _Span) -> None:
        about = origin(self._address, response)
        fits = (
            content_range(response) == (span.at, span.end - 1, self._size)
            and length(response) in (None, span.end - span.at)
            and not self._origin.changed(about)
        )
        if not fits:
            raise Again("a range was answered with something else", lied=True)

    def _take_in(self, block: bytes, span: _Span) -> None:
        with self._changed:
            self._halt.check()
            if span.at + len(block) > span.end:
                raise Again("a range was longer than asked for", lied=True)
            self._part.put(span.at, block)
            span.at += len(block)
            self._got += len(block)
            got = self._got
        self._tell(got)
