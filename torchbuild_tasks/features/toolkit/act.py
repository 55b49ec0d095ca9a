"""Assemble a CUDA toolkit from its parts, completely or not at all.

The files are hard links to those of the parts, for gigabytes need not be there twice.
"""

from __future__ import annotations

import contextlib
import filecmp
import functools
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from torchbuild_tasks.build.work import Fetching, Reporter, Work
from torchbuild_tasks.catalog import Catalog
from torchbuild_tasks.errors import ArchiveRefused, DownloadFailed
from torchbuild_tasks.features.helpers import store
from torchbuild_tasks.features.helpers.act import fetch
from torchbuild_tasks.features.helpers.store import (
    TOOLKIT_MARKER,
    ToolkitMarker,
    read_toolkit_marker,
    write_toolkit_marker,
)
from torchbuild_tasks.model import BuildPlan
from torchbuild_tasks.plan.cuda.managed import part_folders
from torchbuild_tasks.system import files
from torchbuild_tasks.system.archive.members import RESERVED
from torchbuild_tasks.system.files import translate_errors
from torchbuild_tasks.system.remove import is_folder, rename_and_remove, unfinished_folder
from torchbuild_tasks.values import replace


def assemble_toolkit(work: Work) -> Work:
    """Assemble the planned toolkit, if it is a managed one and not there yet."""
    assemble_planned(work.plan, work.catalog, work.fetching, work.report)
    return work


def assemble_planned(plan: BuildPlan, catalog: Catalog, fetching: Fetching, report: Reporter) -> None:
    """Assemble the toolkit of a plan, if it is a managed one and not there yet."""
    wanted = plan.toolkit
    if wanted is None or wanted.here:
        return
    parts = tuple(artifact for artifact in plan.artifacts if artifact.id in wanted.parts)
    folders = fetch(parts, fetching, report)
    inside = part_folders(catalog.part)
    assemble(
        [(folders[name], inside[name]) for name in wanted.parts],
        Path(wanted.folder),
        version=wanted.version,
        note=report.note,
    )


# Files of wheels that are not part of a toolkit.
_SKIPPED: Final = frozenset(("__init__.py", "__pycache__", ".metadata", RESERVED))
LICENSES: Final = "licenses"


class Merged:
    """The folder of a toolkit during its assembly.

    Args:
        folder: an empty folder on the file system of the parts, or the files are copied.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._from: dict[Path, Path] = {}

    def add(self, part: Path, inside: str) -> None:
        """Merge the content of one folder of a part into the toolkit.

        Raises:
            ArchiveRefused: another part has brought one of its files, with another content.
            DownloadFailed: the part is not there, or the folder cannot be written.
        """
        root = part / inside
        if not root.is_dir():
            raise DownloadFailed(
                f"A part of the CUDA toolkit is missing: {part.name}.",
                looked=(f"{root}: no such folder",),
                next_step="Run the same command again: it fetches what is missing.",
            )
        for path in _files(root):
            relative = path.relative_to(root)
            if len(relative.parts) == 1 and relative.name.lower().startswith("license"):
                relative = Path(LICENSES, part.name, relative.name)  # every part has one, each its own
            self._lay(part, path, relative)

    def _lay(self, part: Path, path: Path, relative: Path) -> None:
        place = self.folder / relative
        with translate_errors(DownloadFailed, place):
            if os.path.lexists(place):
                if not _same(path, place):
                    raise _both(relative, self._from.get(relative, self.folder), part)
                return
            place.parent.mkdir(parents=True, exist_ok=True)
            _link(path, place)
        self._from[relative] = part


def _files(folder: Path) -> Iterator[Path]:
    """Yield all files and links below a folder, in a fixed order."""
    for path in sorted(folder.iterdir()):
        if path.name in _SKIPPED:
            continue
        if is_folder(path.lstat()):
            yield from _files(path)
        else:
            yield path


def _same(one: Path, other: Path) -> bool:
    if one.is_symlink() or other.is_symlink():
        return one.is_symlink() and other.is_symlink() and one.readlink() == other.readlink()
    return other.is_file() and filecmp.cmp(one, other, shallow=False)


def _link(path: Path, place: Path) -> None:
    if path.is_symlink():
        place.symlink_to(path.readlink())
        return
    try:
        os.link(path, place)
    except OSError:  # another file system, or one that has no hard links
        shutil.copy2(path, place)


def _both(relative: Path, one: Path, other: Path) -> ArchiveRefused:
    return ArchiveRefused(
        f"Two parts of the CUDA toolkit contain {relative.as_posix()}, with different contents.",
        looked=(f"one is of {one.name}", f"the other is of {other.name}"),
        next_step="Nothing was put together. These parts do not belong to one release: compare their "
        "versions with what NVIDIA publishes together.",
    )


if sys.platform == "win32":
    from torchbuild_tasks.features.toolkit.windows import complete
else:
    from torchbuild_tasks.features.toolkit.linux import complete


def assemble(
    parts: Sequence[tuple[Path, str]], folder: Path, *, version: str, note: Callable[[str], None]
) -> Path:
    """Assemble the toolkit in its folder; keep an existing one of the same parts.

    Args:
        parts: the folder of each part in the store, and the folder inside it whose content
            belongs into the toolkit.
        folder: `<store>/toolkits/<name>`.
        version: the release, as its version.json will say it ("12.4.1").
        note: is called with a sentence that a person should read.

    Raises:
        ArchiveRefused: two parts bring the same file, with different content.
        DownloadFailed: a part is missing, or the folder cannot be written or is not ours.
    """
    folder = folder.absolute()
    ids = tuple(part.name for part, _ in parts)
    mark = ToolkitMarker(id=folder.name, version=version, parts=ids, finished="")
    with contextlib.ExitStack() as stack:
        # Lock the parts as well, so that a prune in another run keeps them.
        for name in sorted({folder.name, *ids}):
            path = folder.parent.parent / store.LOCKS / f"{name}.lock"
            waiting = functools.partial(note, f"another run is working on {name}; waiting for it")
            stack.enter_context(store.hold_lock(path, waiting))
        if not _is_whole(folder, mark):
            _check(folder)
            _grow(parts, folder, mark, note)
    return folder


def _is_whole(folder: Path, mark: ToolkitMarker) -> bool:
    there = read_toolkit_marker(folder)
    return there is not None and (there.id, there.version, there.parts) == (mark.id, mark.version, mark.parts)


def _check(folder: Path) -> None:
    """Refuse a folder that is not ours."""
    if os.path.lexists(folder) and (folder.is_symlink() or not (folder / TOOLKIT_MARKER).is_file()):
        raise DownloadFailed(
            f"{folder} exists already, and contains files that torchbuild did not put there.",
            next_step="Look at what is in it; move it away or remove it, and run the same command again.",
        )


def _grow(
    parts: Sequence[tuple[Path, str]], folder: Path, mark: ToolkitMarker, note: Callable[[str], None]
) -> None:
    with unfinished_folder(folder, DownloadFailed) as growing:
        merged = Merged(growing)
        for part, inside in parts:
            merged.add(part, inside)
        with translate_errors(DownloadFailed, folder):
            complete(growing, note)
            _write_version(growing, mark.version)
            finished = datetime.now(UTC).isoformat(timespec="seconds")
            write_toolkit_marker(growing, replace(mark, finished=finished))
            if os.path.lexists(folder):  # of other parts
                rename_and_remove(folder)
            files.replace(growing, folder)


def _write_version(folder: Path, version: str) -> None:
    """Write the file from which CMake and others read a toolkit's release, as NVIDIA's installers do."""
    if not (folder / "version.json").exists():
        release = {"cuda": {"name": "CUDA SDK", "version": version}}
        (folder / "version.json").write_text(json.dumps(release, indent=1), "utf-8")


__all__ = ["LICENSES", "Merged", "assemble", "complete"]
