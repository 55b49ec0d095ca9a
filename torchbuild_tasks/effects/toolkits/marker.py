"""The mark of a toolkit that this tool put together: whose it is, and what it is made of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import msgspec

from torchbuild_tasks.errors import DownloadFailed, UsageError
from torchbuild_tasks.system.files import write_atomic
from torchbuild_tasks.values import from_json, to_json

TOOLKIT_MARKER: Final = ".torchbuild-toolkit.json"


class ToolkitMarker(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of the mark: the folder's name, the release, the ids of the parts, when it was finished."""

    schema: int = 1
    id: str
    version: str
    parts: tuple[str, ...]
    finished: str


def read_toolkit_marker(folder: Path) -> ToolkitMarker | None:
    """The mark of a folder; None when it has none that can be read."""
    try:
        return from_json(ToolkitMarker, json.loads((folder / TOOLKIT_MARKER).read_bytes()))
    except (OSError, ValueError, UsageError):
        return None


def write_toolkit_marker(folder: Path, marker: ToolkitMarker) -> None:
    """Mark a folder; raises DownloadFailed when it cannot be written."""
    data = json.dumps(to_json(marker), indent=1).encode()
    write_atomic(folder / TOOLKIT_MARKER, data, error=DownloadFailed)
