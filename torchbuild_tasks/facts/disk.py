"""How much room there is where the build will write."""

from __future__ import annotations

from pathlib import PurePosixPath

from torchbuild_tasks.facts.mounts import mount_of
from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.model import Disk


def look_at_disk(probe: Probe, path: str) -> Disk:
    """Bytes of the file system that `path` is on, or would be on once it is made.

    `free` is what this user may fill: file systems keep some for root. Sources:
    statvfs(3), /proc/self/mountinfo.
    """
    there = _nearest(probe, path)
    usage = probe.disk_usage(there)
    return Disk(
        path=path,
        mount=mount_of(probe, probe.realpath(there)),
        total=usage[0] if usage else None,
        free=usage[1] if usage else None,
    )


def _nearest(probe: Probe, path: str) -> str:
    """The deepest part of `path` that exists."""
    place = PurePosixPath(path)
    return next((str(p) for p in (place, *place.parents) if probe.exists(str(p))), "/")
