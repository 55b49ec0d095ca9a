"""The mark of an unpacked helper: whose it is, where it came from, and all that it holds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from torchbuild_tasks import codec
from torchbuild_tasks.effects.archive.members import RESERVED
from torchbuild_tasks.effects.files import write_atomic
from torchbuild_tasks.errors import DownloadFailed, UsageError

MARKER: Final = RESERVED
MARKER_SCHEMA: Final = 1


@dataclass(frozen=True, kw_only=True)
class Origin:
    """What an unpacked folder comes from: artifact id; sha256, address and bytes of its archive."""

    id: str
    sha256: str
    url: str
    size: int


@dataclass(frozen=True, kw_only=True)
class Marker:
    """The content of the mark.

    `files` gives the size in bytes of each file, `links` what each link says; both by path
    with `/`. While `finished` is None the folder is being unpacked. `engine` unpacked it.
    """

    schema: int = MARKER_SCHEMA
    id: str
    sha256: str
    url: str
    size: int
    engine: str = ""
    finished: str | None = None
    files: Mapping[str, int] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)


def read_marker(folder: Path) -> Marker | None:
    """The mark of a folder; None when it has none that can be read."""
    try:
        return codec.decode(Marker, json.loads((folder / MARKER).read_bytes()))
    except (OSError, ValueError, UsageError):
        return None


def write_marker(folder: Path, marker: Marker) -> None:
    """Mark a folder; raises DownloadFailed when it cannot be written."""
    data = json.dumps(codec.encode(marker), separators=(",", ":")).encode()
    write_atomic(folder / MARKER, data, error=DownloadFailed)
