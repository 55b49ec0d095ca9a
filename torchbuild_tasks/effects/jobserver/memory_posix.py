"""The memory of this moment, from the files of the Linux kernel. About 0.2 ms a look.

Sources: proc_meminfo(5), cgroups(7), docs.kernel.org/admin-guide/cgroup-v2.html and
cgroup-v1/memory.html, docs.kernel.org/accounting/psi.html.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from torchbuild_tasks.model.pressure import MemoryState

# Version 1 writes "no limit" as the largest number of pages in bytes, about 2**63.
_NO_LIMIT: Final = 1 << 60


class _Names(NamedTuple):
    limits: tuple[str, ...]
    used: str
    prefix: str
    mapped: str


_VERSIONS: Final = {
    "cgroup2": _Names(("memory.max", "memory.high"), "memory.current", "", "file_mapped"),
    "cgroup": _Names(("memory.limit_in_bytes",), "memory.usage_in_bytes", "total_", "total_mapped_file"),
}


class MemoryLook:
    """Call it for the memory of this moment. `root` is where /proc and /sys are, for tests."""

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root
        self._levels = tuple(_levels(root))
        pressures = (level / "memory.pressure" for level, names in self._levels if not names.prefix)
        machine = root / "proc/pressure/memory"
        self._pressure = next((file for file in pressures if file.exists()), machine)

    def __call__(self) -> MemoryState:
        """Read all of it anew; the limits too, which can be changed any time."""
        info = _pairs(self._root / "proc/meminfo")
        limits = [found for level, names in self._levels for found in _limits(level, names)]
        limit, used = min(limits, key=lambda found: found[0] - found[1], default=(None, None))
        some, full = _pressure(self._pressure)
        available = info.get("MemAvailable")
        return MemoryState(
            available=None if available is None else available * 1024,
            limit=limit,
            used=used,
            some=some,
            full=full,
            swap_used=(info.get("SwapTotal", 0) - info.get("SwapFree", 0)) * 1024,
        )


def _limits(level: Path, names: _Names) -> Iterator[tuple[int, int]]:
    """The limits of one group with what is used of each."""
    values = [_number(level / name) for name in names.limits]
    if not any(value is not None and value < _NO_LIMIT for value in values):
        return
    used = (_number(level / names.used) or 0) - _cache(level, names)
    for value in values:
        if value is not None and value < _NO_LIMIT:
            yield value, max(0, used)


def _cache(level: Path, names: _Names) -> int:
    """Bytes of page cache that no program has mapped: headers read, objects written.

    They count as used, and the kernel drops them before it kills anybody.
    """
    stat = _pairs(level / "memory.stat")
    files = stat.get(f"{names.prefix}inactive_file", 0) + stat.get(f"{names.prefix}active_file", 0)
    return max(0, files - stat.get(names.mapped, 0))


def _levels(root: Path) -> Iterator[tuple[Path, _Names]]:
    """Our own groups and those above them, for a limit on any of them is one for us."""
    own = {}
    for line in _memory_lines(root / "proc/self/cgroup"):
        controllers, _, group = line.partition(":")[2].partition(":")
        own.update(dict.fromkeys(controllers.split(","), group))
    for line in _memory_lines(root / "proc/self/mountinfo"):
        before, _, after = line.partition(" - ")
        fields = before.split()
        kind = after.split()
        if len(fields) < 5 or len(kind) < 3 or kind[0] not in _VERSIONS:
            continue
        controller = "" if kind[0] == "cgroup2" else "memory"
        if controller in own and (not controller or controller in kind[2].split(",")):
            top = root / fields[4].lstrip("/")
            yield from ((level, _VERSIONS[kind[0]]) for level in _upwards(top, fields[3], own[controller]))


def _upwards(top: Path, mounted: str, group: str) -> Iterator[Path]:
    """From the group up to the mount's top; in a container that may be all there is of it."""
    path = Path(group)
    base = Path(mounted)
    below = path.relative_to(base) if path.is_relative_to(base) and ".." not in path.parts else Path()
    yield from (top / each for each in (below, *below.parents))


def _pressure(file: Path) -> tuple[float, float]:
    """`some avg10=0.12 avg60=...` and the same of `full`, in percent."""
    found = {"some": 0.0, "full": 0.0}
    for line in _memory_lines(file):
        words = line.split()
        if len(words) > 1 and words[0] in found and words[1].startswith("avg10="):
            found[words[0]] = float(words[1].removeprefix("avg10="))
    return found["some"], found["full"]


def _pairs(file: Path) -> dict[str, int]:
    words = (line.split() for line in _memory_lines(file))
    return {each[0].rstrip(":"): int(each[1]) for each in words if len(each) > 1 and each[1].isdigit()}


def _number(file: Path) -> int | None:
    text = next(iter(_memory_lines(file)), "").strip()
    return int(text) if text.isdigit() else None


def _memory_lines(file: Path) -> list[str]:
    try:
        return file.read_text("ascii", "replace").splitlines()
    except OSError:
        return []
