"""One question to a server: redirects followed with care, the answer checked before its body is read."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit, urlunsplit

from torchbuild_tasks.effects.fetch.net import WEB, Net, shown
from torchbuild_tasks.effects.fetch.reasons import in_words, phrase
from torchbuild_tasks.effects.fetch.remote import Origin
from torchbuild_tasks.effects.fetch.tries import Again, Refused, retry_after

if TYPE_CHECKING:
    import requests

_HOPS: Final = 10
_OK, _PART, _NO_SUCH_RANGE = 200, 206, 416
_LATER: Final = (408, 429)  # and every 5xx
_SMALLEST, _LARGEST = 16 << 10, 256 << 10  # bytes of one read; larger ones leave the CPU's cache


def ask(
    session: requests.Session, net: Net, url: str, headers: Mapping[str, str] | None = None
) -> requests.Response:
    """GET `url`; the answer is 200, 206 or 416, and still to be read and closed.

    Raises:
        Again: no answer, 408, 429, 5xx, or a body that was changed on the way.
        Refused: any other status, an untrusted certificate, a redirect that must not be followed.
    """
    response = _followed(session, net, url, headers)
    status = response.status_code
    try:
        if status in _LATER or status >= 500:
            raise Again(f"answered {phrase(status)}", wait=retry_after(response.headers))
        if status not in (_OK, _PART, _NO_SUCH_RANGE):
            raise Refused(f"answered {phrase(status)}")
        for name, fine in (("Content-Encoding", "identity"), ("Transfer-Encoding", "chunked")):
            if (coding := response.headers.get(name, fine).strip().lower()) not in (fine, "identity", ""):
                raise Again(f"sent the file in {name} {coding!r}, which was not asked for", lied=True)
    except BaseException:
        response.close()
        raise
    return response


def _followed(
    session: requests.Session, net: Net, url: str, headers: Mapping[str, str] | None
) -> requests.Response:
    """The first answer that is no redirect.

    Each hop is a request of its own, so that requests looks up netrc for the new host and
    hands no other host what was meant for the first.
    """
    seen = {url}
    for _ in range(_HOPS + 1):
        with in_words():
            response = session.get(
                url, headers=headers, stream=True, allow_redirects=False, timeout=(net.connect, net.read)
            )
            target = session.get_redirect_target(response)
        if target is None:
            return response
        response.close()
        url = _next(url, target)
        if url in seen:
            raise Refused(f"redirects in a circle, over {shown(url)}")
        seen.add(url)
    raise Refused(f"redirects more than {_HOPS} times")


def _next(url: str, target: str) -> str:
    from requests.compat import urljoin
    from requests.utils import requote_uri

    try:
        new = requote_uri(urljoin(url, target))
        old_parts, parts = urlsplit(url), urlsplit(new)
        same = (old_parts.hostname, old_parts.port) == (parts.hostname, parts.port)
    except ValueError:
        raise Refused("redirects to something that is no address") from None
    if parts.scheme not in WEB or not parts.netloc:
        raise Refused(f"redirects to {shown(new)}, which is neither http nor https")
    if old_parts.scheme == "https" and parts.scheme == "http":
        raise Refused(f"redirects from https to {shown(new)}, which is not secure")
    user = old_parts.netloc.rpartition("@")[0]
    if user and same and old_parts.scheme == parts.scheme and "@" not in parts.netloc:
        return urlunsplit(parts._replace(netloc=f"{user}@{parts.netloc}"))
    return new


def blocks(raw: Any) -> Iterator[bytes]:
    """The body as it came, in blocks.

    A read returns when its block is full, so blocks are as large as about a quarter of a
    second brings: then progress moves, and a cut loses little. `iter_content` takes 2.4 to 3.5
    times as long as this; urllib3's `readinto` reads the same bytes and copies them.
    """
    size = _SMALLEST
    while True:
        start = time.monotonic()
        with in_words():
            block: bytes = raw.read(size, decode_content=False)
        if not block:
            return
        took = time.monotonic() - start
        yield block
        if took < 0.1:
            size = min(size * 2, _LARGEST)
        elif took > 0.4:
            size = max(size // 2, _SMALLEST)


def origin(url: str, response: requests.Response) -> Origin:
    """What the answer says about the file as a whole; a 206 says it too."""
    headers = response.headers
    etag = headers.get("ETag", "").strip()
    span = content_range(response)
    size = span[2] if span else None if _chunked(response) else length(response)
    strong = etag if re.fullmatch(r'"[^"]*"', etag) else ""
    return Origin(url=shown(url), etag=strong, modified=_modified(headers), size=size)


def length(response: requests.Response) -> int | None:
    """Content-Length: bytes of this answer's body, or None."""
    text = response.headers.get("Content-Length", "").strip()
    if text and not re.fullmatch(r"[0-9]{1,18}", text):
        raise Again("sent a Content-Length that makes no sense", lied=True)
    return int(text) if text else None


def content_range(response: requests.Response) -> tuple[int, int, int] | None:
    """(first byte, last byte, bytes in all) of a 206, or None when it does not say so."""
    if response.status_code != _PART:
        return None
    found = re.fullmatch(
        r"bytes\s+([0-9]{1,18})-([0-9]{1,18})/([0-9]{1,18})",
        response.headers.get("Content-Range", "").strip(),
        re.I,
    )
    return (int(found[1]), int(found[2]), int(found[3])) if found else None


def ends_visibly(response: requests.Response) -> bool:
    """Whether a body that was cut short can be told from a whole one."""
    return _chunked(response) or length(response) is not None


def _chunked(response: requests.Response) -> bool:
    return "chunked" in response.headers.get("Transfer-Encoding", "").lower()


def _modified(headers: Mapping[str, str]) -> str:
    """Last-Modified, where the file cannot have changed twice in that second (RFC 9110, 8.8.2.2)."""
    text = headers.get("Last-Modified", "").strip()
    when = http_date(text)
    now = http_date(headers.get("Date", "")) or datetime.now(UTC)
    return text if when is not None and now - when >= timedelta(seconds=60) else ""


def http_date(text: str) -> datetime | None:
    """Return an HTTP date, or None."""
    from email.utils import parsedate_to_datetime

    try:
        read = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return read if read.tzinfo else read.replace(tzinfo=UTC)
