"""How much room there is where the build will write."""

from __future__ import annotations

from collections.abc import Iterator

from torchbuild_tasks.facts.mounts import mount_of
from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.model import Disk


def look_at_disk(probe: Probe, path: str) -> Disk:
    """Bytes of the file system that `path` is on, or would be on once it is made.

    `free` is what this user may fill: file systems keep some for root. Sources:
    statvfs(3), /proc/self/mountinfo; on Windows GetDiskFreeSpaceEx, GetVolumePathName.
    """
    there = nearest(probe, path)
    usage = probe.disk_usage(there)
    real = probe.realpath(there)
    return Disk(
        path=path,
        mount=probe.volume(real) if probe.windows else mount_of(probe, real),
        total=usage[0] if usage else None,
        free=usage[1] if usage else None,
    )


def nearest(probe: Probe, path: str) -> str:
    """The deepest part of `path` that exists; its top when none does."""
    top = path
    for folder in _upwards(probe, path):
        if probe.exists(folder):
            return folder
        top = folder
    return top


def _upwards(probe: Probe, path: str) -> Iterator[str]:
    yield path
    while (folder := probe.names.parent(path)) != path:
        yield folder
        path = folder
