"""Archives that need no download: in the store's `files/`, or laid into `incoming/` by a user."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote, urlsplit

import msgspec
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version

from torchbuild_tasks.effects.helpers import store
from torchbuild_tasks.errors import DownloadFailed, HashRefused, UsageError
from torchbuild_tasks.model import Artifact
from torchbuild_tasks.system import files
from torchbuild_tasks.system.archive.members import fault, parts_of
from torchbuild_tasks.system.files import told_as
from torchbuild_tasks.system.mark import Origin
from torchbuild_tasks.system.net.client import shown


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """An artifact with the hash that its archive must have, and who says so; None: not known yet."""

    artifact: Artifact
    sha256: str | None
    said_by: str = ""


class Brought(msgspec.Struct, frozen=True, kw_only=True):
    """An archive in the store that is what it must be."""

    wanted: Wanted
    path: Path
    origin: Origin


def at_hand(folder: Path, one: Wanted, note: Callable[[str], None]) -> Brought | None:
    """The archive of an artifact where it needs no download; checked, and moved to its place.

    Raises:
        HashRefused: it lies there, and is not what it must be.
    """
    return _stored(folder, one) or _incoming(folder, one, note)


def _stored(folder: Path, one: Wanted) -> Brought | None:
    """A file that lies where one with this hash belongs, whoever put it there."""
    if one.sha256 is None:
        return None
    with contextlib.suppress(OSError):
        for path in sorted(store.file_of(folder, one.sha256, "x").parent.iterdir()):
            if path.is_file():
                return Brought(wanted=one, path=path, origin=_checked(one, path))
    return None


def _incoming(folder: Path, one: Wanted, note: Callable[[str], None]) -> Brought | None:
    place = folder / store.INCOMING
    name = _wheel_in(place, one.artifact) if one.artifact.project else file_name(one.artifact)
    path = place / name
    if not name or not path.is_file():
        return None
    note(f"{name} is taken from {place}")
    return shelve(folder, one, path, _checked(one, path))


def _wheel_in(place: Path, artifact: Artifact) -> str:
    """Return the name of the fitting wheel in a folder; "" when there is none."""
    wanted = (canonicalize_name(artifact.project), Version(artifact.version))
    for path in sorted(place.glob("*.whl")):
        with contextlib.suppress(InvalidWheelFilename):
            name, version, _, tags = parse_wheel_filename(path.name)
            fits = any(tag.interpreter == "py3" and artifact.tag in ("", tag.platform) for tag in tags)
            if (name, version) == wanted and fits:
                return path.name
    return ""


def _checked(one: Wanted, path: Path) -> Origin:
    with told_as(DownloadFailed, path), path.open("rb") as file:
        size, got = path.stat().st_size, hashlib.file_digest(file, "sha256").hexdigest()
    if one.sha256 not in (None, got):
        raise HashRefused(
            f"{path.name} is not the file that was expected for {one.artifact.id}.",
            looked=(f"expected sha256 {one.sha256}, by {one.said_by}", f"got      sha256 {got}, of {path}"),
            next_step="Remove or replace that file, and run the same command again.",
        )
    url = shown(one.artifact.urls[0]) if one.artifact.urls else path.name
    return Origin(id=one.artifact.id, sha256=got, url=url, size=size)


def shelve(folder: Path, one: Wanted, path: Path, origin: Origin) -> Brought:
    """Move a checked file to where its content belongs."""
    target = store.file_of(folder, origin.sha256, path.name)
    with told_as(DownloadFailed, target):
        target.parent.mkdir(parents=True, exist_ok=True)
        files.replace(path, target)
    return Brought(wanted=one, path=target, origin=origin)


def file_name(artifact: Artifact) -> str:
    """What the file at an artifact's first address is called; raises UsageError when that is no name."""
    name = unquote(urlsplit(artifact.urls[0]).path.rpartition("/")[2]) if artifact.urls else ""
    if fault(name) or parts_of(name) != [name] or name.startswith("."):
        raise UsageError(f"The address of {artifact.id} ends in no file name: {artifact.urls[:1]}.")
    return name


def place_for(folder: Path, one: Wanted) -> Path:
    """Where a user can put an archive; a wheel's name is known in part only."""
    artifact = one.artifact
    if artifact.project:
        project = artifact.project.replace("-", "_")
        return folder / store.INCOMING / f"{project}-{artifact.version}-*{artifact.tag}.whl"
    name = file_name(artifact)
    return store.file_of(folder, one.sha256, name) if one.sha256 else folder / store.INCOMING / name
