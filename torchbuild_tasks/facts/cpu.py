"""How many cores there are, and how many of them this process may use."""

from __future__ import annotations

from collections.abc import Iterator

from torchbuild_tasks.facts.cgroup import Level, levels
from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.model import Cpu


def look_at_cpu(probe: Probe) -> Cpu:
    """Cores, affinity, and the smallest CPU quota of this process's cgroup and those above it.

    `cores` is 1 when the system does not say; `quota_via` names the file of the quota.
    """
    quota, via = min(_quotas(probe), default=(None, None))
    return Cpu(cores=probe.cores() or 1, affinity=probe.affinity(), quota=quota, quota_via=via)


def _quotas(probe: Probe) -> Iterator[tuple[float, str]]:
    for level in levels(probe, "cpu"):
        file, microseconds, period = _setting(probe, level)
        if microseconds > 0 and period > 0:
            yield microseconds / period, file


def _setting(probe: Probe, level: Level) -> tuple[str, int, int]:
    """File, microseconds of work and of the period they are for; no limit is "max" or -1."""
    if level.version == 2:
        file = f"{level.folder}/cpu.max"
        quota, period = ((probe.read(file) or "").split() + ["", ""])[:2]
        return file, _cpu_number(quota), _cpu_number(period)
    file = f"{level.folder}/cpu.cfs_quota_us"
    return file, _cpu_number(probe.read(file)), _cpu_number(probe.read(f"{level.folder}/cpu.cfs_period_us"))


def _cpu_number(text: str | None) -> int:
    """A count above 0; everything else (max, -1, nothing, rubbish) means no limit: 0."""
    text = (text or "").strip()
    return int(text) if text.isascii() and text.isdigit() else 0
