"""Attempts to get one file from one address: asks, checks the answer, writes what comes."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Self

from torchbuild_tasks.effects.fetch.asking import ask, blocks, content_range, ends_visibly, length, origin
from torchbuild_tasks.effects.fetch.net import Net, shown
from torchbuild_tasks.effects.fetch.part import Part
from torchbuild_tasks.effects.fetch.remote import Remote, Tell
from torchbuild_tasks.effects.fetch.tries import Again, Halt, Refused

if TYPE_CHECKING:
    import requests


class Receiver:
    """Fills a part from one address, over as many attempts as its user makes."""

    def __init__(self, remote: Remote, address: str, part: Part, net: Net, tell: Tell, halt: Halt) -> None:
        self._remote, self._address, self._part = remote, address, part
        self._net = net
        self._tell, self._halt = tell, halt
        self._session = net.session()
        self.sure = True  # whether the last body could not have been cut short unseen

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._session.close()

    def attempt(self, *, whole: bool = False) -> None:
        """Bring the part to its end.

        Args:
            whole: take one answer from beginning to end; resume nothing.

        Raises:
            Again: the part holds what may be resumed.
            Refused: this address will not do.
        """
        self._halt.check()
        part, wanted = self._part, self._remote.size
        same = not whole and part.origin is not None and part.origin.url == shown(self._address)
        if same and part.done == self._total() == (wanted or part.done):
            return  # killed between the last byte and the move
        headers = _resuming(part) if same else {}
        response = ask(self._session, self._net, self._address, headers)
        with self._halt.reading(response):
            if headers and response.status_code != 200:
                self._check_rest(response)
            else:
                self._begin(response)
            self._receive(response)
        self._check_end()

    def _begin(self, response: requests.Response) -> None:
        """A whole file comes: because it was asked for, or because the rest cannot be had."""
        if response.status_code != 200:
            raise Again(f"answered {response.status_code} to a plain question", lied=True)
        about = origin(self._address, response)
        self._check_size(about.size)
        self.sure = ends_visibly(response) or self._remote.size is not None
        if not self.sure and not self._remote.sha256:
            raise Refused("does not say how long the file is, so one that is cut short could not be told")
        self._part.restart(about)

    def _check_size(self, size: int | None) -> None:
        if None not in (size, self._remote.size) and size != self._remote.size:
            raise Again(f"announced {size} bytes instead of {self._remote.size}", lied=True)

    def _check_rest(self, response: requests.Response) -> None:
        """An answer to `Range` must be of the same file, begin where ours ends, and go to its end."""
        part, about, span = self._part, origin(self._address, response), content_range(response)
        assert part.origin is not None
        size = part.origin.size
        wrong = ""
        if response.status_code == 416:
            wrong = "does not have the rest of the file"
        elif span is None or size is None or span != (part.done, size - 1, size):
            wrong = "answered with another range than was asked for"
        elif length(response) not in (None, size - part.done):
            wrong = "answered with a range of another length"
        elif part.origin.changed(about):
            wrong = "has another file now than the one that was begun"
        if wrong:
            part.forget()
            raise Again(f"{wrong}; from the beginning", lied=True)
        part.pieced = True

    def _receive(self, response: requests.Response) -> None:
        """Take the body."""
        part = self._part
        size = self._total()
        self._tell(self._remote.name, part.done, size)
        for block in blocks(response.raw):
            self._halt.check()
            if size is not None and part.done + len(block) > size:
                part.forget()
                raise Again("sent more than it had announced", lied=True)
            part.add(block)
            self._tell(self._remote.name, part.done, size)

    def _total(self) -> int | None:
        assert self._part.origin is not None
        return self._part.origin.size if self._part.origin.size is not None else self._remote.size

    def _check_end(self) -> None:
        self._halt.check()  # a stopped connection looks like one that has ended
        size = self._total()
        if size is not None and self._part.done < size:
            raise Again(f"the connection ended after {self._part.done} of {size} bytes")


def _resuming(part: Part) -> dict[str, str]:
    """The headers that ask for the rest, if the rest can be asked for safely."""
    if part.origin is None or not part.done or part.origin.size is None or not part.origin.validator:
        return {}
    return {"Range": f"bytes={part.done}-", "If-Range": part.origin.validator}
