"""What is mounted where, as /proc/self/mountinfo tells it (proc(5))."""

from __future__ import annotations

import re
from typing import NamedTuple

from torchbuild_tasks.facts.probe import Probe


class Mount(NamedTuple):
    """One mount: the folder of the file system that is seen (`root`) at `point`.

    `options` are the file system's, `own` those of this mount.
    """

    root: str
    point: str
    kind: str
    options: tuple[str, ...]
    own: tuple[str, ...] = ()


def mounts(probe: Probe) -> tuple[Mount, ...]:
    """All mounts, oldest first; empty when the file cannot be read, or on Windows."""
    # There this path would mean a folder of the current drive, which anybody can make.
    lines = [] if probe.windows else (probe.read("/proc/self/mountinfo") or "").splitlines()
    return tuple(mount for line in lines if (mount := _mount(line)))


def mount_of(probe: Probe, path: str) -> str | None:
    """The mount point that holds `path` (a real path); None when no mount is known."""
    holding = [
        m.point for m in mounts(probe) if path == m.point or path.startswith(m.point.rstrip("/") + "/")
    ]
    return max(holding, key=len, default=None)


def _mount(line: str) -> Mount | None:
    left, separator, right = line.partition(" - ")
    before = left.split()
    after = right.split()
    if not separator or len(before) < 6 or len(after) < 3:
        return None
    return Mount(
        root=_unescape(before[3]),
        point=_unescape(before[4]),
        kind=after[0],
        options=tuple(after[2].split(",")),
        own=tuple(before[5].split(",")),
    )


def _unescape(text: str) -> str:
    """Blank, tab, newline and backslash stand as octal numbers, UTF-8 stands as it is."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)
