"""Has every artifact in the store: looked up, downloaded, checked, unpacked, pinned.

What is there is left alone. A hash comes from the artifact or from torchbuild.lock; where
neither has one, the first download is believed and its hash written to torchbuild.lock.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from torchbuild_tasks.effects.helpers import store as shelf
from torchbuild_tasks.effects.helpers.at_hand import Brought, Wanted
from torchbuild_tasks.effects.helpers.bring import bring
from torchbuild_tasks.errors import HashRefused, UsageError
from torchbuild_tasks.model import Artifact
from torchbuild_tasks.plan.artifacts import Pin, read_pins, write_pins
from torchbuild_tasks.system.archive.unpack import unpack
from torchbuild_tasks.system.files import write_atomic
from torchbuild_tasks.system.mark import read_marker
from torchbuild_tasks.system.net.client import Net
from torchbuild_tasks.system.net.transfer import Tell


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
        store: the folder of effects/helpers/store.py; made when it is not there.
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
