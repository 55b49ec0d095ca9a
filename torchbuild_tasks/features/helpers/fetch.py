"""Bring artifacts into the store: look them up, find or download, check, unpack and pin them.

`obtain` does it all; the other functions follow in the order of its calls: missing artifacts, archives that
need no download, downloads, downloads with --offline, and the lock file of the checkout. An archive is used
only after its hash was checked, and an artifact only after it was completely unpacked, so a killed run
leaves nothing that looks complete.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Mapping, Sequence, Set
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

import msgspec
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version

from torchbuild_tasks.errors import DownloadFailed, HashRefused, UsageError
from torchbuild_tasks.facts.store import INCOMING
from torchbuild_tasks.features.helpers import store
from torchbuild_tasks.model import Artifact
from torchbuild_tasks.plan.pins import Pin, read_pins, write_pins
from torchbuild_tasks.system import files
from torchbuild_tasks.system.archive.members import fault, parts_of
from torchbuild_tasks.system.archive.unpack import unpack
from torchbuild_tasks.system.files import DOWNLOADING, translate_errors, write_atomic
from torchbuild_tasks.system.mark import Marker, Origin, read_marker
from torchbuild_tasks.system.net import download, pip
from torchbuild_tasks.system.net.client import Net, redact
from torchbuild_tasks.system.net.transfer import Origin as Seen
from torchbuild_tasks.system.net.transfer import Remote, Tell
from torchbuild_tasks.system.reading import hash_file, read_text
from torchbuild_tasks.system.remove import unfinished_folder
from torchbuild_tasks.text.words import counted
from torchbuild_tasks.values import replace

AT_ONCE: Final = 4  # downloads


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """An artifact with the required hash of its archive (None: unknown), and the hash's source."""

    artifact: Artifact
    sha256: str | None
    hash_source: str = ""


class Archive(msgspec.Struct, frozen=True, kw_only=True):
    """A checked archive in the store."""

    wanted: Wanted
    path: Path
    origin: Origin


def obtain(
    artifacts: Sequence[Artifact],
    folder: Path,
    *,
    net: Net,
    lock_file: Path,
    require_hashes: bool,
    allow_http: bool = True,
    tell: Tell,
    note: Callable[[str], None],
) -> Mapping[str, Path]:
    """Unpack all artifacts in the store; return the folder of each by its id.

    Args:
        folder: the store's; made when it is missing.
        lock_file: the checkout's torchbuild.lock; written only when something was not pinned.
        require_hashes: refuse what has no hash yet, before anything is downloaded.
        allow_http: also download over plain http what has no hash yet.
        tell: is called with the progress of each download and each unpacking.
        note: is called with a sentence that a person should read.

    Raises:
        DownloadFailed: something is not available; without network, all that is missing is named.
        HashRefused: a file is not the pinned one, or has no pin and must have.
        ArchiveRefused: an archive is broken, or has members that must not be unpacked.
        UsageError: the lock file cannot be read or written.
        Untrusted: another user can change files in the store.
    """
    store.refuse_foreign(folder, [artifact.stored_as for artifact in artifacts])
    pins = _read_lock(lock_file)
    each = {artifact.id: artifact for artifact in artifacts}
    wanted = [_with_hash(artifact, pins.get(artifact.id), lock_file) for artifact in each.values()]
    unpinned = [one for one in wanted if one.sha256 is None]
    if require_hashes:
        _refuse_unpinned([one.artifact.id for one in unpinned], lock_file)
    missing = _missing(folder, wanted, net)
    if missing:
        with store.hold(folder, {one.artifact.stored_as for one in missing}, note):
            # Check again: another run may have unpacked it while this one waited.
            missing = _missing(folder, wanted, net)
            means = _Settings(folder=folder, net=net, tell=tell, note=note, allow_http=allow_http)
            for archive in _bring_archives(missing, means):
                _unpack(archive, folder, tell)
    _pin(folder, lock_file, unpinned, {one.artifact.id for one in missing}, note)
    return {one.artifact.id: store.folder_of(folder, one.artifact.stored_as) for one in wanted}


# ---------------- required and missing artifacts


def _with_hash(artifact: Artifact, pin: Pin | None, lock_file: Path) -> Wanted:
    """Return an artifact with its hash from its row or the lock file, which must agree."""
    own = artifact.sha256 and artifact.sha256.lower()
    pinned = pin and pin.sha256
    if own and pinned and own != pinned:
        raise HashRefused(
            f"{artifact.id} is known with two hashes.",
            looked=(f"sha256 {own}, in torchbuild's own list", f"sha256 {pinned}, by {lock_file}"),
            next_step=f"Find out which is right. To use the first, remove the entry from {lock_file.name}.",
        )
    hash_source = str(lock_file) if pinned else "its row"
    return Wanted(artifact=artifact, sha256=pinned or own or None, hash_source=hash_source)


def _refuse_unpinned(unpinned: Sequence[str], lock_file: Path) -> None:
    if unpinned:
        raise HashRefused(
            f"No hash is known of {len(unpinned)} of the files, and --require-hashes asks for all.",
            looked=tuple(f"{artifact_id}: not in {lock_file}" for artifact_id in unpinned),
            next_step="Nothing was downloaded. Fetch once without that flag where you trust the network, "
            f"look at {lock_file.name}, and commit it.",
        )


def _missing(folder: Path, wanted: Sequence[Wanted], net: Net) -> list[Wanted]:
    return [one for one in wanted if not _is_unpacked(folder, one, net)]


def _is_unpacked(folder: Path, one: Wanted, net: Net) -> bool:
    """Say whether an artifact is unpacked, from an archive with the required hash.

    Where no hash says which that is, its address does: what another server gave is not what is wanted here.
    """
    unpacked = store.find(folder, one.artifact)
    marker = read_marker(unpacked) if unpacked else None
    if marker is None:
        return False
    if one.sha256 not in (None, marker.sha256):
        raise HashRefused(
            f"{one.artifact.id} was unpacked from another file than the one that is wanted.",
            looked=(
                f"wanted   sha256 {one.sha256}, by {one.hash_source}",
                f"unpacked sha256 {marker.sha256}, in {unpacked}, from {marker.url}",
            ),
            next_step=f"If the wanted hash is right, remove {unpacked} and run the same command again. "
            "If what is unpacked is right, change the hash where it is wanted.",
        )
    addresses = {redact(form) for url in one.artifact.urls for form in (url, net.address(url))}
    return one.sha256 is not None or not addresses or marker.url in addresses


def _bring_archives(missing: Sequence[Wanted], means: _Settings) -> list[Archive]:
    """Return all archives in order; the artifacts must be locked (`store.hold`).

    Raises:
        DownloadFailed: one is not available; without network, all those are named.
        HashRefused: one is not what it must be.
    """
    archives: dict[str, Archive] = {}
    for one in missing:
        if archive := _stored(means.folder, one) or _incoming(means.folder, one, means.note):
            archives[one.artifact.id] = archive
    rest = [one for one in missing if one.artifact.id not in archives]
    if any(one.artifact.project for one in rest):
        means = replace(means, settings=pip.read_settings(os.environ))
    downloaded = _download_offline(rest, means) if means.net.offline else _download(rest, means)
    archives |= {archive.wanted.artifact.id: archive for archive in downloaded}
    return [archives[one.artifact.id] for one in missing]


def _unpack(archive: Archive, folder: Path, tell: Tell) -> None:
    artifact = archive.wanted.artifact
    store.discard(folder, artifact.stored_as)
    unpack(
        archive.path,
        artifact.unpack,
        store.folder_of(folder, artifact.stored_as),
        tell=tell,
        name=f"unpacking {artifact.id}",
        origin=archive.origin,
        holds=artifact.holds,
    )


# ---------------- archives that need no download: in the store's `files/`, or put into `incoming/` by a user


def _stored(folder: Path, one: Wanted) -> Archive | None:
    """Return the file stored under this hash, if there is one."""
    if one.sha256 is None:
        return None
    with contextlib.suppress(OSError):
        for path in sorted(store.file_of(folder, one.sha256, "x").parent.iterdir()):
            if path.is_file():
                return Archive(wanted=one, path=path, origin=_check(one, path))
    return None


def _incoming(folder: Path, one: Wanted, note: Callable[[str], None]) -> Archive | None:
    incoming = folder / INCOMING
    name = _wheel_name(incoming, one.artifact) if one.artifact.project else _file_name(one.artifact)
    path = incoming / name
    if not name or not path.is_file():
        return None
    note(f"{name} is taken from {incoming}")
    return _move_in(folder, one, path, _check(one, path))


def _wheel_name(folder: Path, artifact: Artifact) -> str:
    """Return the name of the matching wheel in a folder; "" if there is none."""
    wanted = (canonicalize_name(artifact.project), Version(artifact.version))
    for path in sorted(folder.glob("*.whl")):
        with contextlib.suppress(InvalidWheelFilename):
            name, version, _, tags = parse_wheel_filename(path.name)
            fits = any(tag.interpreter == "py3" and artifact.tag in ("", tag.platform) for tag in tags)
            if (name, version) == wanted and fits:
                return path.name
    return ""


def _file_name(artifact: Artifact) -> str:
    """Return the name of the file at the first address; raises UsageError if that is not a name."""
    name = unquote(urlsplit(artifact.urls[0]).path.rpartition("/")[2]) if artifact.urls else ""
    if fault(name) or parts_of(name) != [name] or name.startswith("."):
        raise UsageError(f"The address of {artifact.id} names no file: {', '.join(artifact.urls[:1])}")
    return name


def _check(one: Wanted, path: Path) -> Origin:
    """Check a file's hash; raises HashRefused if it differs."""
    with translate_errors(DownloadFailed, path):
        size = path.stat().st_size
        got = hash_file(path)
    if one.sha256 not in (None, got):
        raise HashRefused(
            f"{path.name} is not the file that was expected for {one.artifact.id}.",
            looked=(
                f"expected sha256 {one.sha256}, by {one.hash_source}",
                f"got      sha256 {got}, of {path}",
            ),
            next_step="Remove or replace that file, and run the same command again.",
        )
    url = redact(one.artifact.urls[0]) if one.artifact.urls else path.name
    return Origin(id=one.artifact.stored_as, sha256=got, url=url, size=size)


def _move_in(folder: Path, one: Wanted, path: Path, origin: Origin) -> Archive:
    """Move a checked file to the place for its hash."""
    target = store.file_of(folder, origin.sha256, path.name)
    with translate_errors(DownloadFailed, target):
        target.parent.mkdir(parents=True, exist_ok=True)
        files.replace(path, target)
    return Archive(wanted=one, path=target, origin=origin)


# ---------------- downloads: files from their addresses, several at once; wheels by pip, one by one


class _Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a run's downloads: the store's folder, the network, progress, notes, pip's settings."""

    folder: Path
    net: Net
    tell: Tell
    note: Callable[[str], None]
    allow_http: bool
    settings: pip.PipSettings = pip.PipSettings()


def _download(rest: Sequence[Wanted], means: _Settings) -> list[Archive]:
    plain = [one for one in rest if not one.artifact.project]
    jobs = [_job(one, means) for one in plain]
    seen: dict[Path, Seen] = {}
    try:
        hashes = download.fetch_all(jobs, means.net, means.tell, at_once=AT_ONCE, seen=seen)
    except HashRefused as error:
        raise _with_sources(error, rest) from error
    archives = [
        _finish(one, target, sha256, seen[target], means.folder)
        for one, (_, target), sha256 in zip(plain, jobs, hashes, strict=True)
    ]
    return [*archives, *(_download_wheel(one, means) for one in rest if one.artifact.project)]


def _job(one: Wanted, means: _Settings) -> tuple[Remote, Path]:
    """Return what to download, and the target, which stays the same, so that the next run can resume it."""
    artifact = one.artifact
    urls = artifact.urls if one.sha256 or means.allow_http else _select_secure_urls(artifact, means.net)
    remote = Remote(name=_file_name(artifact), urls=urls, sha256=one.sha256, size=artifact.size)
    target = store.partial_of(means.folder, artifact) / remote.name
    with translate_errors(DownloadFailed, target):
        target.parent.mkdir(parents=True, exist_ok=True)
    return remote, target


def _select_secure_urls(artifact: Artifact, net: Net) -> tuple[str, ...]:
    """Return the addresses that are not plain http, the only ones allowed without a hash.

    Raises:
        HashRefused: there is none.
    """
    addresses = {url: net.address(url) for url in artifact.urls}
    urls = tuple(url for url, address in addresses.items() if not address.lower().startswith("http:"))
    if artifact.urls and not urls:
        raise HashRefused(
            f"{artifact.id} has no known hash, and would be downloaded over plain http.",
            looked=tuple(map(redact, addresses.values())),
            next_step="Nothing was downloaded: anybody on the way could put another file in its place. Give "
            "its row an https address or a `sha256`, or use --allow-http: its hash is pinned from then on.",
        )
    return urls


def _finish(one: Wanted, target: Path, sha256: str, seen: Seen, folder: Path) -> Archive:
    """Move a downloaded file into the store, and remove its temporary folder."""
    with translate_errors(DownloadFailed, target):
        size = target.stat().st_size
    name = one.artifact.stored_as
    origin = Origin(id=name, sha256=sha256, url=seen.url, size=size, final=seen.final, etag=seen.etag)
    archive = _move_in(folder, one, target, origin)
    with contextlib.suppress(OSError):
        target.parent.rmdir()
    return archive


def _with_sources(error: HashRefused, rest: Sequence[Wanted]) -> HashRefused:
    """Add the source of the required hash, where the user can change it if the new file is right."""
    sources = [f"{one.sha256} is asked for by {one.hash_source}" for one in rest if one.sha256]
    return HashRefused(error.what, looked=(*error.looked, *sources), next_step=error.next_step)


def _download_wheel(one: Wanted, means: _Settings) -> Archive:
    """Download a wheel by pip into a folder of this process: pip cannot resume a killed run's download."""
    artifact = one.artifact
    wanted = pip.WheelWanted(
        project=artifact.project,
        version=artifact.version,
        tag=artifact.tag,
        sha256=one.sha256,
        hash_source=one.hash_source,
        size=artifact.size,
    )
    target = means.folder / store.PARTIAL / artifact.stored_as
    with unfinished_folder(target, DownloadFailed, DOWNLOADING) as scratch:
        path, sha256 = pip.download_wheel(wanted, scratch, means.settings, means.net, means.tell)
        origin = Origin(id=artifact.stored_as, sha256=sha256, url=path.name, size=path.stat().st_size)
        return _move_in(means.folder, one, path, origin)


# ---------------- downloads with --offline: from a mirror or an index on this machine


def _download_offline(rest: Sequence[Wanted], means: _Settings) -> list[Archive]:
    """Download one after the other, to report all that are not available."""
    archives: list[Archive] = []
    missing: list[str] = []
    for one in rest:
        try:
            archives += _download([one], means)
        except DownloadFailed as error:
            missing += [*_missing_lines(one, means.folder), *_reason_lines(one, error, means.net)]
    if missing:
        count = len(rest) - len(archives)
        raise DownloadFailed(
            f"With --offline nothing is downloaded, and {counted(count, 'file')} would have to be.",
            looked=tuple(missing),
            next_step="Download them on another machine, put each where its line `to` says, and run the same "
            "command again; or set TORCHBUILD_MIRROR to a folder (file:///...) that has them.",
        )
    return archives


def _missing_lines(one: Wanted, folder: Path) -> list[str]:
    """Return what is missing, its addresses, and where the user can put it."""
    artifact = one.artifact
    size = f", {artifact.size} bytes" if artifact.size else ""
    sources = [f"from {redact(url)}" for url in artifact.urls]
    if artifact.project:
        for_tag = f" for {artifact.tag}" if artifact.tag else ""
        sources = [f"from pip's index: the wheel of {artifact.project} {artifact.version}{for_tag}"]
    hashed = f"sha256 {one.sha256}" if one.sha256 else "sha256 not known yet"
    return [
        f"{artifact.id}{size}",
        *(f"  {line}" for line in (*sources, hashed)),
        f"  to {_expected_path(folder, one)}",
    ]


def _expected_path(folder: Path, one: Wanted) -> Path:
    """Return the path where the user can put an archive; of a wheel's name only a part is known."""
    artifact = one.artifact
    if artifact.project:
        project = artifact.project.replace("-", "_")
        return folder / INCOMING / f"{project}-{artifact.version}-*{artifact.tag}.whl"
    name = _file_name(artifact)
    return store.file_of(folder, one.sha256, name) if one.sha256 else folder / INCOMING / name


def _reason_lines(one: Wanted, error: DownloadFailed, net: Net) -> list[str]:
    """Return the problems with local addresses; others were not tried."""
    local = any(net.address(url).startswith("file:") for url in one.artifact.urls)
    return [f"  {line}" for line in error.looked or (error.what,)] if local else []


# ---------------- the lock file


def _read_lock(lock_file: Path) -> Mapping[str, Pin]:
    try:
        return read_pins(read_text(lock_file))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise UsageError(f"{lock_file} cannot be read: {error.strerror}.") from error


def _pin(
    folder: Path,
    lock_file: Path,
    unpinned: Sequence[Wanted],
    fetched: Set[str],
    note: Callable[[str], None],
) -> None:
    """Add the hashes of artifacts that were trusted at first use to the lock file; keep all other entries."""
    if not unpinned:
        return
    markers: dict[str, Marker] = {}
    key = hashlib.sha256(str(lock_file.absolute()).encode()).hexdigest()[:16]
    with store.hold_lock(folder / store.LOCKS / f"pins-{key}.lock", lambda: None):
        pins = dict(_read_lock(lock_file))
        for one in unpinned:
            artifact_id = one.artifact.id
            marker = read_marker(store.folder_of(folder, one.artifact.stored_as))
            assert marker is not None  # it has just been unpacked or found
            markers[artifact_id] = marker
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
    for artifact_id, marker in markers.items():
        how = f"first download of {artifact_id}"
        if artifact_id not in fetched:
            how = f"{artifact_id} was in the store, downloaded from {marker.url} by {marker.finished}"
        note(f"{how}: its hash is now in {lock_file.name}; commit that file")
