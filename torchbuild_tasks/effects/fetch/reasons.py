"""Why a connection failed, in words, and whether another attempt may help.

No text made here holds what must not be printed: the exceptions of requests and urllib3
carry whole addresses, so only the innermost reason of each is told.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

from torchbuild_tasks.effects.fetch.net import shown
from torchbuild_tasks.effects.fetch.tries import Again, Refused


@contextlib.contextmanager
def in_words() -> Iterator[None]:
    """Turn what requests and urllib3 raise into Again or Refused.

    Nothing that writes a file may stand inside: the errors of requests are OSErrors, too.
    """
    import requests
    import urllib3

    try:
        yield
    except (requests.RequestException, urllib3.exceptions.HTTPError, OSError, ValueError) as problem:
        raise _judged(problem) from None


def _judged(problem: Exception) -> Again | Refused:
    import ssl

    import requests
    import urllib3

    inner = list(_chain(problem))
    for each in inner:
        if isinstance(each, ssl.SSLCertVerificationError):
            return Refused(f"its certificate cannot be trusted: {each.verify_message}")
        if (tunnel := re.search(r"Tunnel connection failed: (\d+)", str(each))) and tunnel[1] < "5":
            return Refused(f"the proxy answered {phrase(int(tunnel[1]))}")
    if isinstance(problem, (requests.Timeout, urllib3.exceptions.TimeoutError)):
        return Again("no answer in time")
    if isinstance(problem, ValueError):  # requests: an address or a header that makes no sense
        return Refused(f"cannot be asked for: {shown(str(problem))}")
    return Again(f"the connection failed: {_innermost(inner)}")


def _innermost(inner: list[BaseException]) -> str:
    import http.client

    for each in reversed(inner):
        if isinstance(each, OSError) and each.strerror:
            return each.strerror
        if isinstance(each, http.client.IncompleteRead):
            return "it ended before the file did"
        if isinstance(each, http.client.RemoteDisconnected):
            return "it was closed without an answer"
    return type(inner[-1]).__name__


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An exception and what it was made of, from the outside in."""
    todo: list[object] = [error]
    seen: set[int] = set()
    while todo:
        each = todo.pop(0)
        if not isinstance(each, BaseException) or id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        todo += [*each.args, getattr(each, "reason", None), each.__cause__, each.__context__]


def phrase(status: int) -> str:
    """A status with its name, not with the server's words for it."""
    import http

    with contextlib.suppress(ValueError):
        return f"{status} {http.HTTPStatus(status).phrase}"
    return str(status)
