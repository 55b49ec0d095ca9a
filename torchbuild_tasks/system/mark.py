"""The marker file of an unpacked helper: its origin and the list of its files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from torchbuild_tasks.errors import DownloadFailed
from torchbuild_tasks.system.archive.members import RESERVED
from torchbuild_tasks.system.files import write_json
from torchbuild_tasks.system.reading import read_value

MARKER: Final = RESERVED
MARKER_SCHEMA: Final = 1


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """The origin of an unpacked folder: its name, and the sha256, address and bytes of its archive.

    `final` is the address that redirects led to, where that is another, and `etag` the server's name for it.
    """

    id: str
    sha256: str
    url: str
    size: int
    final: str = ""
    etag: str = ""


class Marker(Origin, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of the marker file.

    `files` gives the size in bytes of each file, `hashes` its sha256 as it was unpacked (none before
    0.2), `links` what each link says; all by path with `/`. While `finished` is None the folder is being
    unpacked. `engine` unpacked it.
    """

    schema: int = MARKER_SCHEMA
    engine: str = ""
    finished: str | None = None
    hashes: Mapping[str, str] = msgspec.field(default_factory=dict)
    files: Mapping[str, int] = msgspec.field(default_factory=dict)
    links: Mapping[str, str] = msgspec.field(default_factory=dict)


def read_marker(folder: Path) -> Marker | None:
    """Return the marker of a folder; None if there is none, or it cannot be read."""
    return read_value(Marker, folder / MARKER)


def write_marker(folder: Path, marker: Marker) -> None:
    """Write a folder's marker; raises DownloadFailed."""
    write_json(folder / MARKER, marker, error=DownloadFailed)
