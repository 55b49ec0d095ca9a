"""How much room there is wherever a build writes, and on which file systems."""

from __future__ import annotations

from collections.abc import Mapping

from torchbuild_tasks.facts.machine import Mount, look_at_disk, mounts, nearest
from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.model import Room


def look_at_rooms(probe: Probe, places: Mapping[str, str]) -> tuple[Room, ...]:
    """A room for each purpose; a folder that is still to be made is where its parent is."""
    table = mounts(probe)
    return tuple(_room(probe, purpose, path, table) for purpose, path in places.items())


def temporary(probe: Probe) -> str:
    """Where compilers and pip put temporary files: TMPDIR, TEMP, TMP, else /tmp."""
    names = ("TEMP", "TMP") if probe.windows else ("TMPDIR", "TEMP", "TMP")
    said = next((value for name in names if (value := probe.variable(name))), "")
    return probe.absolute(said) if said else "C:\\Windows\\Temp" if probe.windows else "/tmp"


def _room(probe: Probe, purpose: str, path: str, table: tuple[Mount, ...]) -> Room:
    disk = look_at_disk(probe, path)
    # The last of several mounts on one folder covers the others.
    mount = next((mount for mount in reversed(table) if mount.point == disk.mount), None)
    kind = mount.kind if mount else probe.file_system(disk.mount) if disk.mount and probe.windows else None
    return Room(
        purpose=purpose,
        path=path,
        mount=disk.mount,
        free=disk.free,
        kind=kind,
        noexec="noexec" in mount.own if mount else None,
        writable=probe.writable(nearest(probe, path)),
    )
