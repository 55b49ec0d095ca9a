"""Which answers of the probes are about the same GPU.

By its address on the PCI bus, else by its UUID, else by order: what a probe names third is the
third GPU. Two answers of one probe are two GPUs unless their addresses or UUIDs are the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from torchbuild_tasks.model import GpuSeen

# Whose word counts first; a probe that is not named comes last.
PROBES = ("nvml", "nvidia-smi", "device tree", "proc", "pci")
_BUS = re.compile(r"(?:([0-9a-f]+):)?([0-9a-f]{1,2}):([0-9a-f]{1,2})\.([0-7])", re.IGNORECASE)


def address(bus: str | None) -> str:
    """One spelling of a PCI address: 0000:01:00.0 for 00000000:01:00.0 and 01:00.0; "" for none."""
    match = _BUS.fullmatch((bus or "").strip())
    if match is None:
        return (bus or "").strip().casefold()
    domain, number, device, function = (int(part or "0", 16) for part in match.groups())
    return f"{domain:04x}:{number:02x}:{device:02x}.{function}"


def trust(seen: GpuSeen) -> int:
    """The place of an answer's probe in the order of trust."""
    return PROBES.index(seen.probe) if seen.probe in PROBES else len(PROBES)


def merged(answers: Iterable[GpuSeen]) -> list[list[GpuSeen]]:
    """The answers about each GPU, the most trusted first; every answer is in exactly one list."""
    groups: list[list[GpuSeen]] = []
    ordered = sorted(answers, key=trust)
    # Who knows the address comes first: the others are found in what that has made.
    for seen in sorted(ordered, key=lambda each: (not address(each.bus), not each.uuid)):
        group = _by(groups, _bus, seen) or _by(groups, _uuid, seen) or _by_order(groups, seen)
        if group is None:
            groups.append([seen])
        else:
            group.append(seen)
    for group in groups:
        group.sort(key=trust)
    return sorted(groups, key=lambda group: _known(_bus, group) or "~")


def _bus(seen: GpuSeen) -> str:
    return address(seen.bus)


def _uuid(seen: GpuSeen) -> str:
    return (seen.uuid or "").casefold()


def _known(key: Callable[[GpuSeen], str], group: Iterable[GpuSeen]) -> str:
    return next(filter(None, map(key, group)), "")


def _by(groups: list[list[GpuSeen]], key: Callable[[GpuSeen], str], seen: GpuSeen) -> list[GpuSeen] | None:
    wanted = key(seen)
    if not wanted:
        return None
    return next((group for group in groups if _known(key, group) == wanted and _agrees(group, seen)), None)


def _by_order(groups: list[list[GpuSeen]], seen: GpuSeen) -> list[GpuSeen] | None:
    """The first GPU that this probe has not spoken of and that is no other one for sure."""
    free = (group for group in groups if all(each.probe != seen.probe for each in group))
    return next((group for group in free if _agrees(group, seen)), None)


def _agrees(group: list[GpuSeen], seen: GpuSeen) -> bool:
    """Whether nothing says that it is another one; the address counts more than the UUID."""
    for key in (_bus, _uuid):
        known = _known(key, group)
        wanted = key(seen)
        if known and wanted:
            return known == wanted
    ids = {each.pci_id for each in (*group, seen) if each.pci_id}
    return len(ids) < 2
