"""The folders of fetched checkouts, and the note in each about its origin.

A new checkout is created in `.NAME.getting`, next to its final folder, and renamed when it is complete; the
next run resumes that of a killed one.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Final

import msgspec

from torchbuild_tasks.errors import SourceError
from torchbuild_tasks.system import files
from torchbuild_tasks.system.reading import read_value
from torchbuild_tasks.values import to_json

SOURCES: Final = "sources"
NOTE: Final = "source.json"
SCHEMA: Final = 1
_GETTING: Final = ".getting"


class Note(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The origin of a checkout.

    Args:
        url: the repository or the archive.
        word: the user's word for the version ("2.9", "main").
        ref: what git calls it ("refs/tags/v2.9.1"); "" for an archive.
        commit: the commit; "" for an archive.
        full: whether all history and all submodules were requested.
        moving: the commit that a run moves it to; "" when none does.
    """

    schema: int = SCHEMA
    url: str
    word: str
    ref: str = ""
    commit: str = ""
    full: bool = False
    moving: str = ""


def temporary_checkout(folder: Path) -> Path:
    """Return the temporary folder of a new checkout; its worktree is `tree` in it."""
    return folder.with_name(f".{folder.name}{_GETTING}")


def make_temporary_checkout(folder: Path) -> Path:
    """Create the temporary folder, or reuse that of a killed run; raises SourceError."""
    growing = temporary_checkout(folder)
    with files.translate_errors(SourceError, growing):
        growing.mkdir(parents=True, exist_ok=True)
    return growing


def unfinished_folders(parent: Path) -> tuple[Path, ...]:
    """Return the temporary folders of running and interrupted fetches."""
    with contextlib.suppress(OSError):
        folders = [path for path in parent.iterdir() if path.name.endswith(_GETTING)]
        return tuple(sorted(path for path in folders if (path / files.STATE_DIR / files.MARKER).is_file()))
    return ()


def checkouts(store: Path) -> tuple[Path, ...]:
    """Return the complete checkouts in the store."""
    with contextlib.suppress(OSError):
        return tuple(sorted(path for path in (store / SOURCES).iterdir() if read_note(path)))
    return ()


def is_free(folder: Path) -> bool:
    """Say whether a path is free for a checkout: it does not exist, or is an empty folder.

    Raises:
        SourceError: the folder cannot be read.
    """
    with files.translate_errors(SourceError, folder):
        return not os.path.lexists(folder) or (folder.is_dir() and not any(folder.iterdir()))


def publish(tree: Path, folder: Path) -> None:
    """Rename a complete checkout to its final name.

    Raises:
        SourceError: something is there by now, or the rename fails.
    """
    with files.translate_errors(SourceError, folder):
        if folder.is_dir() and not folder.is_symlink():
            folder.rmdir()  # an empty one: Windows renames over nothing
        files.replace(tree, folder)


def remove_temporary_checkout(place: Path) -> None:
    """Remove the empty temporary folder; leftovers are harmless."""
    state = place / files.STATE_DIR
    with contextlib.suppress(OSError):
        for path in state.iterdir():
            files.unlink(path)
        state.rmdir()
        place.rmdir()


def read_note(folder: Path) -> Note | None:
    """Return the note of a checkout; None if it cannot be read."""
    return read_value(Note, folder / files.STATE_DIR / NOTE)


def write_note(folder: Path, note: Note) -> None:
    """Write the note of a checkout, whose address may hold a login; raises SourceError."""
    data = json.dumps(to_json(note), indent=1).encode()
    files.write_atomic(files.state_dir(folder) / NOTE, data, error=SourceError, private=True)
