"""What a worktree remembers of the named build that it is: a small file in its .torchbuild folder."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any, Final

import msgspec

from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.model.record import MANIFEST_FILE, RECORD_FILE
from torchbuild_tasks.model.source import Last
from torchbuild_tasks.system.files import STATE_DIR, state_dir, write_atomic
from torchbuild_tasks.values import from_json, to_json

NOTE: Final = "build.json"


class Note(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The build's name, the settings file that says what it is, the main checkout, and the ref it is at."""

    name: str
    config: str
    main: str
    ref: str


def read_note(folder: Path) -> Note | None:
    """The note of a folder; None when it is no named build's, or cannot be read."""
    with contextlib.suppress(OSError, ValueError, UsageError):
        return from_json(Note, json.loads((folder / STATE_DIR / NOTE).read_bytes()))
    return None


def write_note(folder: Path, note: Note) -> None:
    """Write it; raises UsageError when that is not possible."""
    write_atomic(state_dir(folder) / NOTE, json.dumps(to_json(note)).encode(), error=UsageError)


def last_build(folder: Path) -> Last | None:
    """The newest manifest in a checkout, or record of 0.1.0; None where nothing was built."""
    found = (path for name in (MANIFEST_FILE, RECORD_FILE) for path in folder.glob(f"*/{name}"))
    newest = sorted(found, key=lambda path: path.stat().st_mtime)
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, IndexError):
        said: Any = json.loads(newest[-1].read_bytes())
        choices = {choice["name"]: str(choice["value"]) for choice in said["choices"]}
        return Last(
            result=str(said["result"]),
            finished=str(said["finished"] or said["started"]),
            torch=choices.get("torch", ""),
            python=choices.get("python", ""),
        )
    return None
