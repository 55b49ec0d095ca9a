"""Archives that need no download: in the store's `files/`, or laid into `incoming/` by a user."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

import msgspec
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version

from torchbuild_tasks.errors import DownloadFailed, HashRefused, UsageError
from torchbuild_tasks.features.helpers import store
from torchbuild_tasks.features.helpers import store as shelf
from torchbuild_tasks.model import Artifact
from torchbuild_tasks.plan.pins import Pin, read_pins, write_pins
from torchbuild_tasks.system import files
from torchbuild_tasks.system.archive.members import fault, parts_of
from torchbuild_tasks.system.archive.unpack import unpack
from torchbuild_tasks.system.files import told_as, write_atomic
from torchbuild_tasks.system.mark import Origin, read_marker
from torchbuild_tasks.system.net import download, pip
from torchbuild_tasks.system.net.client import Net, shown
from torchbuild_tasks.system.net.transfer import Remote, Tell
from torchbuild_tasks.system.remove import discard


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


# ----------------
# brings archives into the store: what is at hand, and for the rest several downloads at once


AT_ONCE: Final = 4


class _Way(msgspec.Struct, frozen=True, kw_only=True):
    """How downloads of one run come into the store."""

    folder: Path
    net: Net
    tell: Tell
    settings: pip.PipSettings


class _Job(msgspec.Struct, frozen=True, kw_only=True):
    """One download and where it grows: the same place for the next run, which goes on with it."""

    wanted: Wanted
    remote: Remote
    target: Path


def bring(
    missing: Sequence[Wanted], folder: Path, *, net: Net, tell: Tell, note: Callable[[str], None]
) -> list[Brought]:
    """All archives, in their order; the artifacts are held against other runs (`store.held`).

    Raises:
        DownloadFailed: one cannot be had; without network, all those are named.
        HashRefused: one is not what it must be.
    """
    brought: dict[str, Brought] = {}
    for one in missing:
        if here := at_hand(folder, one, note):
            brought[one.artifact.id] = here
    rest = [one for one in missing if one.artifact.id not in brought]
    wheels = any(one.artifact.project for one in rest)
    settings = pip.read_settings(os.environ) if wheels else pip.PipSettings()
    way = _Way(folder=folder, net=net, tell=tell, settings=settings)
    fetched = _each(rest, way) if net.offline else _download(rest, way)
    brought |= {one.wanted.artifact.id: one for one in fetched}
    return [brought[one.artifact.id] for one in missing]


def _download(rest: Sequence[Wanted], way: _Way) -> list[Brought]:
    jobs = [_job(one, way) for one in rest if not one.artifact.project]
    try:
        hashes = download.fetch_all(
            [(job.remote, job.target) for job in jobs], way.net, way.tell, at_once=AT_ONCE
        )
    except HashRefused as error:
        raise _with_sources(error, rest) from error
    brought = [_arrived(job, sha256, way.folder) for job, sha256 in zip(jobs, hashes, strict=True)]
    return [*brought, *(_wheel(one, way) for one in rest if one.artifact.project)]


def _with_sources(error: HashRefused, rest: Sequence[Wanted]) -> HashRefused:
    """Add who asks for which hash: there the user changes it, when the new file is the right one."""
    said = [f"{one.sha256} is asked for by {one.said_by}" for one in rest if one.sha256]
    return HashRefused(error.what, looked=(*error.looked, *said), next_step=error.next_step)


def _job(one: Wanted, way: _Way) -> _Job:
    artifact = one.artifact
    remote = Remote(name=file_name(artifact), urls=artifact.urls, sha256=one.sha256, size=artifact.size)
    key = hashlib.sha256(f"{shown(remote.urls[0])}\n{artifact.id}".encode()).hexdigest()
    target = way.folder / store.PARTIAL / key / remote.name
    with told_as(DownloadFailed, target):
        target.parent.mkdir(parents=True, exist_ok=True)
    return _Job(wanted=one, remote=remote, target=target)


def _wheel(one: Wanted, way: _Way) -> Brought:
    """Have pip bring a wheel, in a folder that holds nothing of a killed run."""
    artifact = one.artifact
    key = hashlib.sha256(artifact.id.encode()).hexdigest()
    scratch = way.folder / store.PARTIAL / key
    discard(scratch)
    with told_as(DownloadFailed, scratch):
        scratch.mkdir(parents=True)
    wanted = pip.WheelWanted(
        project=artifact.project,
        version=artifact.version,
        tag=artifact.tag,
        sha256=one.sha256,
        said_by=one.said_by,
        size=artifact.size,
    )
    try:
        path, sha256 = pip.download_wheel(wanted, scratch, way.settings, way.net, way.tell)
        origin = Origin(id=artifact.id, sha256=sha256, url=path.name, size=path.stat().st_size)
        return shelve(way.folder, one, path, origin)
    finally:
        discard(scratch)


def _arrived(job: _Job, sha256: str, folder: Path) -> Brought:
    with told_as(DownloadFailed, job.target):
        size = job.target.stat().st_size
    url = shown(job.remote.urls[0])
    origin = Origin(id=job.wanted.artifact.id, sha256=sha256, url=url, size=size)
    brought = shelve(folder, job.wanted, job.target, origin)
    with contextlib.suppress(OSError):
        job.target.parent.rmdir()
    return brought


# ---------------------------------------------------------------- without network


def _each(rest: Sequence[Wanted], way: _Way) -> list[Brought]:
    """What a mirror or an index on this machine has, one after the other, to name all that is missing."""
    brought: list[Brought] = []
    missing: list[str] = []
    for one in rest:
        try:
            brought += _download([one], way)
        except DownloadFailed as error:
            missing += [*_lines(one, way.folder), *_why(one, error, way.net)]
    if missing:
        count = len(rest) - len(brought)
        raise DownloadFailed(
            f"With --offline nothing is downloaded, and {count} file{'s' * (count > 1)} would have to be.",
            looked=tuple(missing),
            next_step="Download them on another machine, put each where its line `to` says, and run the same "
            "command again; or set TORCHBUILD_MIRROR to a folder (file:///...) that has them.",
        )
    return brought


def _lines(one: Wanted, folder: Path) -> list[str]:
    artifact = one.artifact
    size = f", {artifact.size} bytes" if artifact.size else ""
    places = [f"from {shown(url)}" for url in artifact.urls]
    if artifact.project:
        for_tag = f" for {artifact.tag}" if artifact.tag else ""
        places = [f"from pip's index: the wheel of {artifact.project} {artifact.version}{for_tag}"]
    hashed = f"sha256 {one.sha256}" if one.sha256 else "sha256 not known yet"
    return [
        f"{artifact.id}{size}",
        *(f"  {line}" for line in (*places, hashed)),
        f"  to {place_for(folder, one)}",
    ]


def _why(one: Wanted, error: DownloadFailed, net: Net) -> list[str]:
    """What went wrong with an address on this machine."""
    local = any(net.address(url).startswith("file:") for url in one.artifact.urls)
    return [f"  {line}" for line in error.looked or (error.what,)] if local else []


# ---------------- has every artifact in the store: looked up, downloaded, checked, unpacked, pinned


def obtain(
    artifacts: Sequence[Artifact],
    store: Path,
    *,
    net: Net,
    lock_file: Path,
    require_hashes: bool,
    tell: Tell,
    note: Callable[[str], None],
) -> Mapping[str, Path]:
    """The folder of every artifact by its id, once all are there.

    Args:
        store: the folder of features/helpers/store.py; made when it is not there.
        lock_file: the checkout's torchbuild.lock; written only when something was not pinned.
        require_hashes: refuse what has no hash yet, before anything is downloaded.
        tell: told how far each download and each unpacking is.
        note: told in a sentence what a person should know.

    Raises:
        DownloadFailed: something cannot be had; without network, all that is missing is named.
        HashRefused: a file is not the pinned one, or has no pin and must have.
        ArchiveRefused: an archive is broken, or holds what may not be unpacked.
        UsageError: the lock file cannot be read or written.
    """
    pins = _read_lock(lock_file)
    each = {artifact.id: artifact for artifact in artifacts}
    wanted = [_wanted(artifact, pins.get(artifact.id), lock_file) for artifact in each.values()]
    if require_hashes:
        _refuse_unpinned([one for one in wanted if one.sha256 is None], lock_file)
    if missing := _missing(store, wanted):
        with shelf.held(store, {one.artifact.id for one in missing}, note):
            # Looked at again: another run may have made it while this one waited.
            for one in bring(_missing(store, wanted), store, net=net, tell=tell, note=note):
                _unpack(one, store, tell)
    _pin(store, lock_file, [one.artifact.id for one in wanted if one.sha256 is None], note)
    return {one.artifact.id: shelf.folder_of(store, one.artifact.id) for one in wanted}


# ---------------------------------------------------------------- what must be, what is there


def _wanted(artifact: Artifact, pin: Pin | None, lock_file: Path) -> Wanted:
    """An artifact with its hash, by its row or by the lock file; both must agree."""
    own, pinned = artifact.sha256 and artifact.sha256.lower(), pin and pin.sha256
    if own and pinned and own != pinned:
        raise HashRefused(
            f"{artifact.id} is known with two hashes.",
            looked=(f"sha256 {own}, by its row", f"sha256 {pinned}, by {lock_file}"),
            next_step=f"Find out which is right. To go by the row, remove the entry from {lock_file.name}.",
        )
    said_by = str(lock_file) if pinned else "its row"
    return Wanted(artifact=artifact, sha256=pinned or own or None, said_by=said_by)


def _refuse_unpinned(unpinned: Sequence[Wanted], lock_file: Path) -> None:
    if unpinned:
        raise HashRefused(
            f"No hash is known of {len(unpinned)} of the files, and --require-hashes asks for all.",
            looked=tuple(f"{one.artifact.id}: not in {lock_file}" for one in unpinned),
            next_step="Nothing was downloaded. Fetch once without that flag where you trust the network, "
            f"look at {lock_file.name}, and commit it.",
        )


def _missing(store: Path, wanted: Sequence[Wanted]) -> list[Wanted]:
    return [one for one in wanted if not _is_there(store, one)]


def _is_there(store: Path, one: Wanted) -> bool:
    """Whether an artifact is unpacked, from the archive that it must come from."""
    folder = shelf.find(store, one.artifact)
    marker = read_marker(folder) if folder else None
    if marker is None:
        return False
    if one.sha256 not in (None, marker.sha256):
        raise HashRefused(
            f"{one.artifact.id} was unpacked from another file than the one that is wanted.",
            looked=(
                f"wanted   sha256 {one.sha256}, by {one.said_by}",
                f"unpacked sha256 {marker.sha256}, in {folder}, from {marker.url}",
            ),
            next_step=f"If the wanted hash is right, remove {folder} and run the same command again. "
            "If what is unpacked is right, change the hash where it is wanted.",
        )
    return True


def _unpack(one: Brought, store: Path, tell: Tell) -> None:
    artifact = one.wanted.artifact
    shelf.discard(store, artifact.id)
    unpack(
        one.path,
        artifact.unpack,
        shelf.folder_of(store, artifact.id),
        tell=tell,
        name=f"unpacking {artifact.id}",
        origin=one.origin,
        holds=artifact.holds,
    )


# ---------------------------------------------------------------- the lock file


def _read_lock(lock_file: Path) -> Mapping[str, Pin]:
    try:
        return read_pins(lock_file.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{lock_file} cannot be read: {error}.") from error


def _pin(store: Path, lock_file: Path, ids: Sequence[str], note: Callable[[str], None]) -> None:
    """Write down the hashes of what was believed, leaving all other entries as they are."""
    if not ids:
        return
    key = hashlib.sha256(str(lock_file.absolute()).encode()).hexdigest()[:16]
    with shelf.locked(store / shelf.LOCKS / f"pins-{key}.lock", lambda: None):
        pins = dict(_read_lock(lock_file))
        for artifact_id in ids:
            marker = read_marker(shelf.folder_of(store, artifact_id))
            assert marker is not None  # it was made, or found, just now
            known = pins.setdefault(
                artifact_id, Pin(id=artifact_id, sha256=marker.sha256, size=marker.size, url=marker.url)
            )
            if known.sha256 != marker.sha256:
                raise HashRefused(
                    f"Two runs had different files for {artifact_id} at the same time.",
                    looked=(
                        f"sha256 {known.sha256}, by {lock_file}",
                        f"sha256 {marker.sha256}, unpacked here",
                    ),
                    next_step="Find out which is right before you build with either.",
                )
        write_atomic(lock_file, write_pins(pins).encode(), error=UsageError)
    for artifact_id in ids:
        note(f"first download of {artifact_id}: its hash is now in {lock_file.name}; commit that file")
