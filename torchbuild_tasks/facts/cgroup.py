"""The cgroups that this process is in, of version 1 and 2, from its own up to the top one.

A limit set on any ancestor holds for all below it, so who wants the true limit reads
every folder given here. Source: cgroups(7), /proc/self/cgroup, /proc/self/mountinfo.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Literal, NamedTuple

from torchbuild_tasks.facts.mounts import Mount, mounts
from torchbuild_tasks.facts.probe import Probe


class Level(NamedTuple):
    """One folder of the hierarchy; `own` is true for the group the process itself is in."""

    version: Literal[1, 2]
    folder: str
    own: bool


def levels(probe: Probe, controller: str) -> tuple[Level, ...]:
    """The folders in which limits of `controller` ("memory", "cpu") can stand, own one first.

    On a hybrid machine both versions are given: only one of them holds the controller's
    files, and which one is nothing that a table could tell.
    """
    own = _own_groups(probe)
    found: list[Level] = []
    for mount in mounts(probe):
        if mount.kind == "cgroup2" and "" in own:
            found += _cgroup_folders(mount, own[""], 2)
        elif mount.kind == "cgroup" and controller in mount.options and controller in own:
            found += _cgroup_folders(mount, own[controller], 1)
    return tuple(found)


def _own_groups(probe: Probe) -> dict[str, str]:
    """Controller -> path of this process's group; version 2 stands under the empty name."""
    groups: dict[str, str] = {}
    for line in (probe.read("/proc/self/cgroup") or "").splitlines():
        parts = line.split(":", 2)
        if len(parts) == 3:
            groups.update(dict.fromkeys(parts[1].split(","), parts[2]))
    return groups


def _cgroup_folders(mount: Mount, group: str, version: Literal[1, 2]) -> Iterator[Level]:
    below = _below(mount.root, group)
    folder = PurePosixPath(mount.point, *below)
    for depth in range(len(below) + 1):
        yield Level(version=version, folder=str(folder), own=depth == 0)
        folder = folder.parent


def _below(root: str, group: str) -> tuple[str, ...]:
    """The way from the mount's root to the group.

    In a container the group is often named as the host sees it while only a part of the
    hierarchy is mounted (or none of the process's own, "/../x"): then the mount point is
    all there is to read.
    """
    path = PurePosixPath(group)
    if ".." in path.parts or not path.is_relative_to(root):
        return ()
    return path.relative_to(root).parts
