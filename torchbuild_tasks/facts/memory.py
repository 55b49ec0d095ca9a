"""How much memory there is, and how much of it this process may take."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from torchbuild_tasks.facts.cgroup import Level, levels
from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.model import Memory

if TYPE_CHECKING:
    from torchbuild_tasks.effects.windows_memory import MemoryStatus

# Version 1 writes "no limit" as the largest number of pages in bytes, about 2**63.
_NO_LIMIT = 1 << 60


class _Limit(NamedTuple):
    bytes: int
    used: int | None
    via: str

    @property
    def room(self) -> tuple[int, int]:
        """Bytes left under it, and for equals the limit itself."""
        return self.bytes - (self.used or 0), self.bytes


def look_at_memory(probe: Probe) -> Memory:
    """All in bytes. Sources: /proc/meminfo and the cgroup of this process and those above it.

    On Windows GlobalMemoryStatusEx, and the limit is that of commit.

    The tightest limit is the one with the least room left, not the smallest one: a group
    above can be nearly filled by others. `limit_via` names its file.
    """
    if status := probe.memory_status():
        return _of_windows(status)
    info = _pairs(probe.read("/proc/meminfo"))
    tightest = min(_limits(probe), key=lambda limit: limit.room, default=None)
    return Memory(
        total=_kib(info, "MemTotal"),
        available=_kib(info, "MemAvailable"),
        swap_free=_kib(info, "SwapFree"),
        limit=tightest.bytes if tightest else None,
        used_in_limit=tightest.used if tightest else None,
        limit_via=tightest.via if tightest else None,
    )


def _of_windows(status: MemoryStatus) -> Memory:
    """Windows refuses memory when commit is used up, however much of it is still unused."""
    return Memory(
        total=status.total,
        available=status.available,
        limit=status.commit_limit,
        used_in_limit=max(0, status.commit_limit - status.commit_free),
        limit_via="commit: memory and page files",
    )


def _limits(probe: Probe) -> Iterator[_Limit]:
    for level in levels(probe, "memory"):
        settings = _settings(probe, level)
        used = _used(probe, level) if settings else None
        for via, value in settings:
            yield _Limit(bytes=value, used=used, via=via)


def _settings(probe: Probe, level: Level) -> list[tuple[str, int]]:
    """The limits that stand in one folder, each with its file.

    Above memory.high a group is slowed to a crawl before memory.max would kill it, so for
    a build both are limits. In version 1 the group's own memory.stat also tells the
    limit of ancestors that a container cannot see.
    """
    names = ("memory.max", "memory.high") if level.version == 2 else ("memory.limit_in_bytes",)
    found = [(file, _number(probe.read(file))) for name in names for file in [f"{level.folder}/{name}"]]
    if level.version == 1 and level.own:
        file = f"{level.folder}/memory.stat"
        found.append((file, _pairs(probe.read(file)).get("hierarchical_memory_limit")))
    return [(file, value) for file, value in found if value is not None and value < _NO_LIMIT]


def _used(probe: Probe, level: Level) -> int | None:
    """Bytes in use without page cache that nobody used lately: the kernel drops that first."""
    current, key = ("memory.current", "inactive_file")
    if level.version == 1:
        current, key = ("memory.usage_in_bytes", "total_inactive_file")
    used = _number(probe.read(f"{level.folder}/{current}"))
    if used is None:
        return None
    return max(0, used - _pairs(probe.read(f"{level.folder}/memory.stat")).get(key, 0))


def _pairs(text: str | None) -> dict[str, int]:
    """Lines of a name and a number: `MemTotal:  24682416 kB`, `inactive_file 159744`."""
    pairs = {}
    for line in (text or "").splitlines():
        words = line.split()
        value = _number(words[1]) if len(words) > 1 else None
        if value is not None:
            pairs[words[0].rstrip(":")] = value
    return pairs


def _kib(info: dict[str, int], name: str) -> int | None:
    return info[name] * 1024 if name in info else None


def _number(text: str | None) -> int | None:
    text = (text or "").strip()
    return int(text) if text.isascii() and text.isdigit() else None
