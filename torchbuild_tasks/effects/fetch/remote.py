"""What a download is of: the file that is wanted, and what one version of it is known by."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

Tell = Callable[[str, int, int | None], None]
"""(name, bytes so far, bytes in all or None); called from any thread, often."""


class Remote(msgspec.Struct, frozen=True, kw_only=True):
    """A file to be had.

    Args:
        name: file name for messages.
        urls: where it lies; tried in order.
        sha256: its hash in hex, if known.
        size: bytes, if known.
    """

    name: str
    urls: tuple[str, ...]
    sha256: str | None = None
    size: int | None = None


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """What one version of a file is known by.

    Args:
        url: where it is had from, as it may be shown.
        etag: its strong ETag, or "".
        modified: its Last-Modified if that can be relied on, or "".
        size: bytes, if known.
    """

    url: str
    etag: str = ""
    modified: str = ""
    size: int | None = None

    @property
    def validator(self) -> str:
        """What `If-Range` takes."""
        return self.etag or self.modified

    def changed(self, now: Origin) -> bool:
        """Whether a later answer names another version; what it does not say is not held against it."""
        if self.etag:
            return now.etag not in ("", self.etag)
        return now.modified not in ("", self.modified)
