"""Puts a CUDA toolkit together in a folder that is there whole, or not at all.

It grows beside that folder under a hidden name and gets its own name by one rename. Its
files are hard links to those of its parts in the store: whoever changes one, changes both.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from torchbuild_tasks.effects.helpers import store as shelf
from torchbuild_tasks.effects.toolkits.marker import (
    TOOLKIT_MARKER,
    ToolkitMarker,
    read_toolkit_marker,
    write_toolkit_marker,
)
from torchbuild_tasks.effects.toolkits.merge import Merged
from torchbuild_tasks.errors import DownloadFailed
from torchbuild_tasks.system import files
from torchbuild_tasks.system.files import told_as
from torchbuild_tasks.system.remove import UNPACKING, discard, hidden, leftovers, remove_tree, take_away

if sys.platform == "win32":
    from torchbuild_tasks.effects.toolkits.complete_windows import complete
else:
    from torchbuild_tasks.effects.toolkits.complete_linux import complete


def assemble(
    parts: Sequence[tuple[Path, str]], folder: Path, *, version: str, note: Callable[[str], None]
) -> Path:
    """Have the toolkit in its folder; one that is there, of the same parts, is left alone.

    Args:
        parts: the folder of each part in the store, and the folder inside it whose content
            belongs into the toolkit.
        folder: `<store>/toolkits/<name>`.
        version: the release, as its version.json will say it ("12.4.1").
        note: told in a sentence what a person should know.

    Raises:
        ArchiveRefused: two parts bring the same file, with different content.
        DownloadFailed: a part is missing, or the folder cannot be written or is not ours.
    """
    folder = folder.absolute()
    ids = tuple(part.name for part, _ in parts)
    mark = ToolkitMarker(id=folder.name, version=version, parts=ids, finished="")
    with contextlib.ExitStack() as stack:
        # The parts are held as well: a prune in another run leaves them alone.
        for name in sorted({folder.name, *ids}):
            path = folder.parent.parent / shelf.LOCKS / f"{name}.lock"
            stack.enter_context(shelf.locked(path, lambda name=name: note(_waiting(name))))  # type: ignore[misc]
        if not _is_whole(folder, mark):
            _check(folder)
            _grow(parts, folder, mark, note)
    return folder


def _waiting(name: str) -> str:
    return f"another run is working on {name}; waiting for it"


def _is_whole(folder: Path, mark: ToolkitMarker) -> bool:
    there = read_toolkit_marker(folder)
    return there is not None and (there.id, there.version, there.parts) == (mark.id, mark.version, mark.parts)


def _check(folder: Path) -> None:
    """Refuse a folder that is not ours, and take away what killed runs left."""
    if os.path.lexists(folder) and (folder.is_symlink() or not (folder / TOOLKIT_MARKER).is_file()):
        raise DownloadFailed(
            f"{folder} is there already, and not as this tool would have left it.",
            next_step="Look at what is in it; move it away or remove it, and run the same command again.",
        )
    with told_as(DownloadFailed, folder):
        for old in leftovers(folder.parent, folder.name):
            remove_tree(old)


def _grow(
    parts: Sequence[tuple[Path, str]], folder: Path, mark: ToolkitMarker, note: Callable[[str], None]
) -> None:
    growing = hidden(folder, UNPACKING)
    try:
        with told_as(DownloadFailed, folder):
            growing.mkdir(parents=True)
        merged = Merged(growing)
        for part, inside in parts:
            merged.add(part, inside)
        with told_as(DownloadFailed, folder):
            complete(growing, note)
            _say_version(growing, mark.version)
            finished = datetime.now(UTC).isoformat(timespec="seconds")
            write_toolkit_marker(
                growing, ToolkitMarker(id=mark.id, version=mark.version, parts=mark.parts, finished=finished)
            )
            if os.path.lexists(folder):  # of other parts
                take_away(folder)
            files.replace(growing, folder)
    finally:
        discard(growing)


def _say_version(folder: Path, version: str) -> None:
    """The file by which CMake and others tell a toolkit's release (NVIDIA's installers write it)."""
    if not (folder / "version.json").exists():
        said = {"cuda": {"name": "CUDA SDK", "version": version}}
        (folder / "version.json").write_text(json.dumps(said, indent=1), "utf-8")
