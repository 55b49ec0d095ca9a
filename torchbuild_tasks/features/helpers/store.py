"""The store: the cache of helpers and toolkits, below one folder that all checkouts share.

`files/` has archives by their sha256, `unpacked/` the artifacts, `toolkits/` toolkits assembled from them,
`incoming/` files of the user, `partial/` unfinished downloads, `locks/` a lock for each artifact,
`building/` helpers that are being built from source, `built/` the archives of those. Unpacked folders have
a marker; a folder without one is never removed.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import stat
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Final

import msgspec

from torchbuild_tasks.errors import DownloadFailed, UsageError
from torchbuild_tasks.facts.store import FILES, INCOMING, UNPACKED
from torchbuild_tasks.model import Artifact, Finding
from torchbuild_tasks.system import trust
from torchbuild_tasks.system.archive.members import fault, parts_of
from torchbuild_tasks.system.files import STATE_DIR, make_store, owner_of, translate_errors, write_json
from torchbuild_tasks.system.mark import MARKER, read_marker
from torchbuild_tasks.system.reading import hash_file, read_value
from torchbuild_tasks.system.remove import (
    is_folder,
    leftovers,
    remove_tree,
    rename_and_remove,
    size_of,
)
from torchbuild_tasks.text.words import first_few

TOOLKITS: Final = "toolkits"
PARTIAL: Final = "partial"
LOCKS: Final = "locks"
BUILDING: Final = "building"
BUILT: Final = "built"
TOOLKIT_MARKER: Final = ".torchbuild-toolkit.json"
_SHA256: Final = re.compile(r"[0-9a-f]{64}")


class Pruned(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a removal or dry run: paths and bytes; `kept` are paths with the reason."""

    paths: tuple[str, ...] = ()
    bytes: int = 0
    kept: tuple[tuple[str, str], ...] = ()


class ToolkitMarker(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of a toolkit's marker: the folder's name, the release, the ids of the parts, the time."""

    schema: int = 1
    id: str
    version: str
    parts: tuple[str, ...]
    finished: str


# ---------------- paths


def folder_of(store: Path, artifact_id: str) -> Path:
    """Return the folder for an artifact; raises UsageError for an id that is no folder name."""
    if fault(artifact_id) or parts_of(artifact_id) != [artifact_id] or artifact_id.startswith("."):
        raise UsageError(
            f"{artifact_id!r} cannot be the name of a folder, so no helper can have it as its id."
        )
    return store / UNPACKED / artifact_id


def file_of(store: Path, sha256: str, name: str) -> Path:
    """Return the folder for a download with this hash."""
    return store / FILES / sha256[:2] / sha256 / name


def partial_of(store: Path, artifact: Artifact) -> Path:
    """Return the temporary folder of a download, which stays the same, so that the next run can resume it."""
    key = "\n".join((*artifact.urls[:1], artifact.stored_as))
    return store / PARTIAL / hashlib.sha256(key.encode()).hexdigest()


def find(store: Path, artifact: Artifact) -> Path | None:
    """Return the folder of an artifact that is unpacked and complete."""
    folder = folder_of(store, artifact.stored_as)
    marker = read_marker(folder)
    if marker is None or marker.finished is None or marker.id != artifact.stored_as:
        return None
    return folder if all(os.path.lexists(folder / path) for path in artifact.holds) else None


def refuse_foreign(store: Path, ids: Collection[str]) -> None:
    """Refuse a store in which another user could change programs of these artifacts or toolkits.

    Raises:
        Untrusted: there is such a folder; the text says which.
    """
    parents = [store / name for name in (FILES, PARTIAL, INCOMING, UNPACKED, TOOLKITS, BUILDING, BUILT)]
    trust.refuse_foreign(
        store, *parents, *(folder_of(store, each) for each in ids), *_folders(store / TOOLKITS)
    )


def _folders(parent: Path) -> list[Path]:
    """Yield the folders by name, without links and hidden ones; none if the parent is a link."""
    with contextlib.suppress(OSError):
        if is_folder(parent.lstat()):
            paths = [path for path in parent.iterdir() if not path.name.startswith(".")]
            return sorted(path for path in paths if is_folder(path.lstat()))
    return []


def _is_ours(folder: Path) -> bool:
    marks = (folder / MARKER, folder / TOOLKIT_MARKER)
    built = folder.parent.name == BUILDING and (folder / STATE_DIR).is_dir()
    return built or any(mark.is_file() and not mark.is_symlink() for mark in marks)


def discard(store: Path, artifact_id: str) -> None:
    """Remove an unpacked folder of ours, to create it again; keep one without our marker.

    Raises:
        DownloadFailed: it cannot be removed.
    """
    folder = folder_of(store, artifact_id)
    if _is_ours(folder) and is_folder(folder.lstat()):
        with translate_errors(DownloadFailed, folder):
            rename_and_remove(folder)


def read_toolkit_marker(folder: Path) -> ToolkitMarker | None:
    """Return the marker of a folder; None if there is none, or it cannot be read."""
    return read_value(ToolkitMarker, folder / TOOLKIT_MARKER)


def write_toolkit_marker(folder: Path, marker: ToolkitMarker) -> None:
    """Write a folder's marker; raises DownloadFailed."""
    write_json(folder / TOOLKIT_MARKER, marker, error=DownloadFailed)


# ---------------- verify


def verify(store: Path) -> tuple[Finding, ...]:
    """Compare all unpacked helpers with their markers; return a finding for each."""
    return tuple(_verify(path) for path in _folders(store / UNPACKED))


def _verify(folder: Path) -> Finding:
    marker = read_marker(folder)
    if not _is_ours(folder):
        text = f"{folder} was not unpacked by torchbuild, and is not used"
        return Finding.unknown(folder.name, text)
    fix = f"Remove {folder} and fetch it again."
    if marker is None or marker.finished is None:
        text = f"{folder}: its record cannot be read"
        return Finding.error(folder.name, text, fix)
    wrong = [
        path
        for path, size in marker.files.items()
        if not _is_same(folder / path, size, marker.hashes.get(path))
    ]
    wrong += [path for path, target in marker.links.items() if not _leads_to(folder / path, target)]
    if wrong:
        named = first_few(sorted(wrong), 5)
        text = f"{folder}: {len(wrong)} of {len(marker.files)} files are missing or changed: {named}"
        return Finding.error(folder.name, text, fix)
    text = f"{len(marker.files)} files as they were unpacked"
    if not marker.hashes and marker.files:
        text = f"{len(marker.files)} files have their sizes; an older version unpacked it and kept no hashes"
        return Finding.unknown(folder.name, text, fix)
    return Finding.ok(folder.name, text)


def _is_same(path: Path, size: int, digest: str | None) -> bool:
    """Say whether a file is unchanged since it was unpacked."""
    with contextlib.suppress(OSError):
        info = path.lstat()
        is_file = stat.S_ISREG(info.st_mode) and info.st_size == size
        return is_file and digest in (None, hash_file(path))
    return False


def _leads_to(link: Path, target: str) -> bool:
    """Say whether a link has this target; links that became copies are among the files."""
    with contextlib.suppress(OSError):
        return link.readlink() == Path(target)
    return False


# ---------------- prune


def prune(
    store: Path, keep: Collection[str], *, partial: Collection[Path] | None = None, dry_run: bool = False
) -> Pruned:
    """Remove everything that kept artifacts do not use: marked folders, leftovers, downloads.

    An unfinished download of a kept artifact is kept, so that the next run can resume it.

    What another run holds stays, and as long as any is under way, all downloads do.

    Args:
        keep: artifact ids, names of toolkits, and sha256s of downloads to keep all the same.
        partial: folders of unfinished downloads to keep; those of others go. None: all stay.
        dry_run: only list what would be removed.
    """
    removal = _Removal(dry_run)
    kept = [path for path in _folders(store / UNPACKED) if path.name in keep and _is_ours(path)]
    wanted = {*keep, *(marker.sha256 for path in kept if (marker := read_marker(path)))}
    wanted |= {path.name for path in unfinished(store) if partial is None or path in partial}
    with contextlib.ExitStack() as stack:
        busy = {path.stem for path in _locks(store) if not stack.enter_context(_try_lock(path))}
        for folder in (
            each for parent in (TOOLKITS, UNPACKED, BUILDING) for each in _folders(store / parent)
        ):
            if folder.name in keep:
                continue
            if folder.name in busy:
                removal.keep(folder, "another run holds it")
            elif _is_ours(folder):
                removal.remove(folder, rename_and_remove)
        for parent in (TOOLKITS, UNPACKED, BUILDING, PARTIAL):
            for folder in leftovers(store / parent):
                if owner_of(folder) not in busy:
                    removal.remove(folder, remove_tree)
        _prune_downloads(removal, store, wanted, busy=bool(busy))
    return removal.result()


def unfinished(store: Path) -> tuple[Path, ...]:
    """Return the folders of unfinished downloads."""
    return tuple(folder for folder in _folders(store / PARTIAL) if _SHA256.fullmatch(folder.name))


def _prune_downloads(removal: _Removal, store: Path, keep: Collection[str], *, busy: bool) -> None:
    for folder in (*unfinished(store), *_downloads(store)):
        if busy:
            removal.keep(folder, "a run is under way")
        elif folder.name not in keep:
            removal.remove(folder, rename_and_remove)


def _downloads(store: Path) -> Iterator[Path]:
    """Yield the folders of downloads, named by sha256, and leftovers of a killed prune."""
    for parent in _folders(store / FILES):
        for folder in (*_folders(parent), *leftovers(parent)):
            sha256 = owner_of(folder) or folder.name
            if _SHA256.fullmatch(sha256) and sha256.startswith(parent.name):
                yield folder


class _Removal:
    """Removes or only counts files, and collects the result."""

    def __init__(self, dry_run: bool) -> None:
        self._dry_run = dry_run
        self._bytes = 0
        self._paths: list[str] = []
        self._kept: list[tuple[str, str]] = []

    def keep(self, path: Path, why: str) -> None:
        self._kept.append((str(path), why))

    def remove(self, folder: Path, how: Callable[[Path], int]) -> None:
        try:
            self._bytes += size_of(folder) if self._dry_run else how(folder)
            self._paths.append(str(folder))
        except OSError as error:
            self.keep(folder, error.strerror or str(error))

    def result(self) -> Pruned:
        return Pruned(paths=tuple(self._paths), bytes=self._bytes, kept=tuple(self._kept))


# ---------------- one run at a time


@contextlib.contextmanager
def hold(store: Path, ids: Collection[str], note: Callable[[str], None]) -> Iterator[None]:
    """Lock artifacts against other runs; report and wait for a run that has locked one.

    All runs take them in the same order, so none waits for the other in a circle.

    Raises:
        DownloadFailed: the store cannot be written.
    """
    make_store(store, error=DownloadFailed)
    with contextlib.ExitStack() as stack:
        for artifact_id in sorted(ids):
            path = store / LOCKS / f"{artifact_id}.lock"
            text = f"another run is busy with {artifact_id}; waiting for it"
            stack.enter_context(hold_lock(path, functools.partial(note, text)))
        yield


@contextlib.contextmanager
def hold_lock(path: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Acquire one lock; call `waiting` once if it must wait.

    Raises:
        DownloadFailed: the lock's file cannot be written.
    """
    import filelock

    lock = filelock.FileLock(path)
    with translate_errors(DownloadFailed, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout:  # an OSError, too
            waiting()
            lock.acquire(poll_interval=0.1)
    try:
        yield
    finally:
        lock.release()


@contextlib.contextmanager
def _try_lock(path: Path) -> Iterator[bool]:
    """Acquire a lock if it is free; yield whether it was."""
    import filelock

    lock = filelock.FileLock(path)
    try:
        lock.acquire(timeout=0)
    except OSError:  # locked, or no permission to open it: then it may be locked
        yield False
        return
    try:
        yield True
    finally:
        lock.release()


def _locks(store: Path) -> list[Path]:
    with contextlib.suppress(OSError):
        return sorted((store / LOCKS).glob("*.lock"))
    return []
