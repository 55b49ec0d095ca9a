"""Look at the store of helpers, and at the hashes that the checkout has pinned."""

from __future__ import annotations

from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.facts.machine import nearest_existing, takes_files
from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.model import Brought, Store
from torchbuild_tasks.model.history import HISTORY_SCHEMA, PEAKS, PastPeaks

VARIABLE = "TORCHBUILD_CACHE"
UNPACKED = "unpacked"
FILES = "files"
INCOMING = "incoming"
MARKER = ".torchbuild-helper.json"


def look_at_store(probe: Probe, lock_file: str) -> Store:
    """Look at the store for a build; folders without our marker are ignored.

    Raises:
        UsageError: the lock file cannot be understood.
    """
    folder = store_folder(probe)
    unpacked = probe.join(folder, UNPACKED)
    peaks = probe.value(PastPeaks, probe.join(folder, PEAKS))
    state = str(probe.state_folder())
    return Store(
        folder=folder,
        writable=takes_files(probe, nearest_existing(probe, folder)),
        state=state if takes_files(probe, nearest_existing(probe, state)) is False else "",
        unpacked={
            name: digest
            for name in probe.children(unpacked)
            if (digest := _digest(probe, probe.join(unpacked, name, MARKER), name))
        },
        pins=_pins(probe, lock_file),
        peaks=peaks.peaks if peaks and peaks.schema == HISTORY_SCHEMA else (),
    )


def look_at_brought(probe: Probe, wheels: str, store: str, sources: str) -> Brought:
    """Look at what was brought here for a build without a network.

    Args:
        wheels: the folder of --wheels; "" without one.
        store: the folder of helpers.
        sources: that of companions which were fetched.
    """
    kept = probe.join(store, FILES)
    return Brought(
        wheels=probe.children(wheels) if wheels else (),
        archives=(
            *probe.children(probe.join(store, INCOMING)),
            *(name for first in probe.children(kept) for name in probe.children(probe.join(kept, first))),
        ),
        sources=probe.children(sources),
    )


def store_folder(probe: Probe) -> str:
    """Return the folder of the store, which need not exist."""
    named = probe.variable(VARIABLE)
    return probe.absolute(named) if named else probe.cache_folder()


def _digest(probe: Probe, marker: str, name: str) -> str | None:
    """Return the archive's hash in a marker; None if the marker is broken, or of another folder.

    The marker of a folder that is still being unpacked has no time at which it was finished.
    """
    data = probe.table(marker)
    if data.get("id") != name or data.get("finished", "") is None:
        return None
    return data["sha256"] if isinstance(data.get("sha256"), str) else None


def _pins(probe: Probe, lock_file: str) -> dict[str, str]:
    text = probe.read(lock_file)
    if text is None and probe.exists(lock_file):  # treating it as no pins would trust any download
        raise UsageError(
            f"{lock_file} cannot be read: it is not a file, is too long, or is not yours to read."
        )
    if text is None:
        return {}
    from torchbuild_tasks.plan.pins import read_pins

    return {name: pin.sha256 for name, pin in read_pins(text).items()}
