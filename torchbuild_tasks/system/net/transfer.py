"""The parts of a download: the remote file, one response of a server, and the partial file.

`ask` puts one question to a server and checks the answer before its body is read, `blocks` reads
the body, and a `Part` is the file that grows, with a note that the next run goes by.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final
from urllib.parse import urlsplit, urlunsplit

import msgspec

from torchbuild_tasks.errors import DownloadFailed
from torchbuild_tasks.system import files
from torchbuild_tasks.system.files import translate_errors
from torchbuild_tasks.system.net.client import (
    WEB,
    Again,
    Halted,
    Net,
    Refused,
    redact,
    retry_after,
    status_text,
    translate_network_errors,
)
from torchbuild_tasks.system.reading import read_json

if TYPE_CHECKING:
    import requests

Tell = Callable[[str, int, int | None], None]
"""(name, bytes so far, bytes in all or None); called from any thread, often."""


class Remote(msgspec.Struct, frozen=True, kw_only=True):
    """A file to download, from the first of its addresses that gives it; `name` is for messages."""

    name: str
    urls: tuple[str, ...]
    sha256: str | None = None
    size: int | None = None


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """The headers that identify one version of a file.

    Args:
        url: its address, as it may be shown.
        etag: its strong ETag, or "".
        modified: its Last-Modified if that can be relied on, or "".
        size: bytes, if known.
        final: the address that redirects led to, as it may be shown; "" where that is `url`.
    """

    url: str
    etag: str = ""
    modified: str = ""
    size: int | None = None
    final: str = ""

    @property
    def validator(self) -> str:
        """Return the value for `If-Range`."""
        return self.etag or self.modified

    def changed(self, now: Origin) -> bool:
        """Say whether a later response names another version; without a name it counts as the same."""
        if self.etag:
            return now.etag not in ("", self.etag)
        return now.modified not in ("", self.modified)


# ---------------- one request to a server, and its response

_HOPS: Final = 10
_OK = 200
_PART = 206
_NO_SUCH_RANGE = 416
_LATER: Final = (408, 429)  # and every 5xx
_LARGEST: Final = 256 << 10  # bytes of one read; larger ones exceed the CPU's cache
_USUAL: Final = Net()


def ask(
    session: requests.Session, net: Net, url: str, headers: Mapping[str, str] | None = None
) -> requests.Response:
    """GET `url`; return the open response, whose status is 200, 206 or 416.

    Raises:
        Again: no answer, 408, 429, 5xx, or a body that was changed on the way.
        Refused: any other status, an untrusted certificate, a redirect that must not be followed.
    """
    response = _follow(session, net, url, headers)
    status = response.status_code
    try:
        if status in _LATER or status >= 500:
            raise Again(f"answered {status_text(status)}", wait=retry_after(response.headers))
        if status not in (_OK, _PART, _NO_SUCH_RANGE):
            raise Refused(f"answered {status_text(status)}", status=status)
        for name, fine in (("Content-Encoding", "identity"), ("Transfer-Encoding", "chunked")):
            if (coding := response.headers.get(name, fine).strip().lower()) not in (fine, "identity", ""):
                raise Again(f"sent the file in {name} {coding!r}, which was not asked for", lied=True)
    except BaseException:
        response.close()
        raise
    return response


def _follow(
    session: requests.Session, net: Net, url: str, headers: Mapping[str, str] | None
) -> requests.Response:
    """Return the first response that is not a redirect.

    Each hop is a request of its own, so that requests looks up netrc for the new host and
    hands no other host what was meant for the first.
    """
    seen = {url}
    for _ in range(_HOPS + 1):
        with translate_network_errors():
            response = session.get(
                url, headers=headers, stream=True, allow_redirects=False, timeout=(net.connect, net.read)
            )
            target = session.get_redirect_target(response)
        if target is None:
            return response
        response.close()
        url = _redirect(url, target)
        if url in seen:
            raise Refused(f"redirects in a circle, over {redact(url)}")
        seen.add(url)
    raise Refused(f"redirects more than {_HOPS} times")


def _redirect(url: str, target: str) -> str:
    from requests.compat import urljoin
    from requests.utils import requote_uri

    try:
        new = requote_uri(urljoin(url, target))
        old_parts = urlsplit(url)
        parts = urlsplit(new)
        same = (old_parts.hostname, old_parts.port) == (parts.hostname, parts.port)
    except ValueError:
        raise Refused("redirects to something that is not an address") from None
    if parts.scheme not in WEB or not parts.netloc:
        raise Refused(f"redirects to {redact(new)}, which is neither http nor https")
    if old_parts.scheme == "https" and parts.scheme == "http":
        raise Refused(f"redirects from https to {redact(new)}, which is not secure")
    user = old_parts.netloc.rpartition("@")[0]
    if user and same and old_parts.scheme == parts.scheme and "@" not in parts.netloc:
        return urlunsplit(parts._replace(netloc=f"{user}@{parts.netloc}"))
    return new


def blocks(raw: Any, net: Net = _USUAL) -> Iterator[bytes]:
    """Yield the undecoded body, in the blocks that the connection returns.

    `iter_content` takes 2.4 to 3.5 times as long as this.

    Raises:
        Again: the connection failed, or brought less than `net.least` bytes a second for `net.patience`.
    """
    deadline = getattr(getattr(raw, "connection", None), "deadline", None)
    with contextlib.ExitStack() as at_end:
        if deadline:
            deadline.start(net.answer)
            at_end.callback(deadline.stop_timing)
        since = time.monotonic()
        received = 0
        while True:
            with translate_network_errors():
                block: bytes = raw.read1(_LARGEST, decode_content=False)
                if deadline and not block:
                    deadline.check()  # a truncated body may look complete
            if not block:
                return
            yield block
            if deadline:
                deadline.renew(net.answer)
            received += len(block)
            if (took := time.monotonic() - since) >= net.patience:
                if received < net.least * took:
                    raise Again(f"sent {received} bytes in {took:.0f} s, less than {net.least:.0f} a second")
                since = time.monotonic()
                received = 0


def origin(url: str, response: requests.Response) -> Origin:
    """Return the identifying headers of a response, also of a 206."""
    headers = response.headers
    etag = headers.get("ETag", "").strip()
    span = content_range(response)
    size = span[2] if span else None if _is_chunked(response) else length(response)
    strong = etag if re.fullmatch(r'"[^"]*"', etag) else ""
    final = redact(response.url or "")
    return Origin(
        url=redact(url),
        etag=strong,
        modified=_read_last_modified(headers),
        size=size,
        final=final if final != redact(url) else "",
    )


def length(response: requests.Response) -> int | None:
    """Return the Content-Length, the bytes of this response's body, or None."""
    text = response.headers.get("Content-Length", "").strip()
    if text and not re.fullmatch(r"[0-9]{1,18}", text):
        raise Again("sent a Content-Length that makes no sense", lied=True)
    return int(text) if text else None


def content_range(response: requests.Response) -> tuple[int, int, int] | None:
    """Return (first byte, last byte, total bytes) of a 206, or None if it lacks them."""
    if response.status_code != _PART:
        return None
    match = re.fullmatch(
        r"bytes\s+([0-9]{1,18})-([0-9]{1,18})/([0-9]{1,18})",
        response.headers.get("Content-Range", "").strip(),
        re.I,
    )
    return (int(match[1]), int(match[2]), int(match[3])) if match else None


def ends_visibly(response: requests.Response) -> bool:
    """Say whether a truncated body can be distinguished from a complete one."""
    return _is_chunked(response) or length(response) is not None


def _is_chunked(response: requests.Response) -> bool:
    return "chunked" in response.headers.get("Transfer-Encoding", "").lower()


def _read_last_modified(headers: Mapping[str, str]) -> str:
    """Return Last-Modified if it is a strong validator (RFC 9110, 8.8.2.2)."""
    text = headers.get("Last-Modified", "").strip()
    when = http_date(text)
    now = http_date(headers.get("Date", "")) or datetime.now(UTC)
    return text if when is not None and now - when >= timedelta(seconds=60) else ""


def http_date(text: str) -> datetime | None:
    from email.utils import parsedate_to_datetime

    try:
        read = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return read if read.tzinfo else read.replace(tzinfo=UTC)


# ---------------- the partial file, and its note with the verified length

_BLOCK: Final = 256 << 10  # bytes
_LOOK: Final = 16 << 20  # bytes between two checks of the disk


class Part:
    """`<target>.part`, its hash so far, and `<target>.part.json`, which has the verified length and hash.

    The note holds a length and the hash of that many bytes. What an earlier run left behind
    is taken up as far as both still agree, so neither a kill nor a power cut between two
    writes can put wrong bytes into a file whose hash is not known. Before it is given up, no
    other process may use the same target; its methods may be called from several threads.

    Args:
        target: the path of the complete file.
        every: seconds between two notes.
        room: bytes that must stay free on the disk.
    """

    def __init__(self, target: Path, every: float = 1.0, room: int = 0) -> None:
        self.target = target
        self.path = target.with_name(f"{target.name}.part")
        self.note_path = target.with_name(f"{target.name}.part.json")
        self._new_note_path = target.with_name(f"{target.name}.part.json.new")
        self.origin: Origin | None = None
        self.done = 0  # bytes from the beginning that are written and hashed
        self.pieced = False  # whether it has bytes of more than one response
        self._hash = hashlib.sha256()
        self._file: BinaryIO | None = None
        self._every = every
        self._noted = -math.inf
        # `done` when the disk was last looked at
        self._room = room
        self._looked = 0
        self._lock = threading.RLock()
        self._given_up = False

    def resume(self) -> None:
        """Resume the part of an earlier run, up to the length in its note."""
        try:
            note = read_json(self.note_path)
            size = int(note["done"])
            origin = Origin(**note["origin"])
            with self._locked():
                self._file = file = self.path.open("r+b", buffering=0)
        except (OSError, ValueError, KeyError, TypeError):
            return
        with translate_errors(DownloadFailed, self.path):
            if self._hash_up_to(size) and size > 0 and self.sha256() == note["sha256"]:
                with self._locked():
                    file.truncate(size)
                self.origin = origin
                self.pieced = True
                return
        self.forget()

    def restart(self, origin: Origin) -> None:
        """Restart at zero with a file of that origin."""
        with self._locked(), translate_errors(DownloadFailed, self.path):
            self._clear()
            self.origin = origin
            self._file = self.path.open("w+b", buffering=0)

    def add(self, block: bytes) -> None:
        with self._locked(), translate_errors(DownloadFailed, self.path):
            self._check_room()
            self._write(block)
            self._hash.update(block)
            self.done += len(block)
            self._note_now_and_then()

    def _check_room(self) -> None:
        """Check the free space regularly: other programs may fill the disk."""
        if not self._room or 0 < self.done < self._looked + _LOOK:
            return
        self._looked = self.done
        free = shutil.disk_usage(self.path.parent).free
        if free < self._room:
            self._room = 0
            size = self.origin.size if self.origin else None
            of = f" of {size}" if size else ""
            raise DownloadFailed(
                f"There is no room for {self.target.name}: {free} bytes are free in {self.path.parent}.",
                looked=(f"{self.done}{of} bytes are there",),
                next_step="Free some space and run the same command again: it continues where it stopped. "
                "`helpers prune` removes what a build does not use; TORCHBUILD_CACHE names another folder.",
            )

    def note(self) -> None:
        """Write the note about the progress, for the next run."""
        with self._locked():
            if self.done:
                self._write_note()

    def sha256(self) -> str:
        """Return the hash of the first `done` bytes."""
        return self._hash.hexdigest()

    def finish(self) -> None:
        with self._locked(), translate_errors(DownloadFailed, self.target):
            self._close()
            files.replace(self.path, self.target)
            with contextlib.suppress(OSError):  # a note without its part is ignored
                self._remove_notes()

    def forget(self) -> None:
        """Remove part and note; the next attempt begins at zero."""
        with self._locked(), translate_errors(DownloadFailed, self.path):
            self._clear()
            self._remove_notes()
            files.unlink(self.path, missing_ok=True)

    def give_up(self) -> None:
        """Stop writing and keep what the next run can resume; later writers get Halted."""
        with self._lock:
            if self._file is not None and self.done:
                self._write_note()
            self._given_up = True
            self._close()

    @contextlib.contextmanager
    def _locked(self) -> Iterator[Any]:
        """Lock the part; raise Halted after `give_up`."""
        with self._lock:
            if self._given_up:
                raise Halted
            yield self._file

    def _clear(self) -> None:
        self._close()
        self.origin = None
        self.done = 0
        self.pieced = False
        self._hash = hashlib.sha256()
        self._noted = -math.inf

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _write(self, block: bytes) -> None:
        assert self._file is not None
        rest = memoryview(block)
        while rest:  # an unbuffered file may write only a part
            rest = rest[self._file.write(rest) :]

    def _hash_up_to(self, upto: int) -> bool:
        """Hash the file from `done` to `upto`, block by block; return whether it is that long."""
        while self.done < upto:
            with self._locked() as file:
                file.seek(self.done)
                block = file.read(min(_BLOCK, upto - self.done))
                if not block:
                    return False
                self._hash.update(block)
                self.done += len(block)
                self._note_now_and_then()
        return True

    def _note_now_and_then(self) -> None:
        if time.monotonic() - self._noted >= self._every:
            self._write_note()

    def _remove_notes(self) -> None:
        files.unlink(self.note_path, missing_ok=True)
        files.unlink(self._new_note_path, missing_ok=True)  # left by a run killed while writing one

    def _write_note(self) -> None:
        """Replace the note atomically.

        A note that cannot be written is not an error: a later run only begins further back.
        """
        if self.origin is None:
            return
        self._noted = time.monotonic()
        note = {"origin": msgspec.structs.asdict(self.origin), "done": self.done, "sha256": self.sha256()}
        with contextlib.suppress(OSError):
            self._new_note_path.write_text(json.dumps(note, indent=1), "utf-8")
            self._new_note_path.replace(self.note_path)
