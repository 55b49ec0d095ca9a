"""The system's list of PCI ids: what chip and card a device id of NVIDIA's is."""

from __future__ import annotations

import re
import zlib
from collections.abc import Set

from torchbuild_tasks.facts.probe import Probe

FILES = (
    "/usr/share/misc/pci.ids",
    "/usr/share/hwdata/pci.ids",
    "/usr/share/pci.ids",
    "/var/lib/pciutils/pci.ids",
    "/usr/share/misc/pci.ids.gz",
    "/usr/share/hwdata/pci.ids.gz",
)
LIMIT = 1 << 25  # bytes; the list has some 1.5 million

# Vendors begin a line, their devices follow after one tab, cards (subsystems) after two.
_NVIDIA = re.compile(r"^10de[ \t].*\n((?:(?:\t|#).*\n?|\n)*)", re.MULTILINE)
_DEVICE = re.compile(r"^\t([0-9a-f]{4})[ \t]+(.+?)[ \t]*$", re.MULTILINE)
_NAMED = re.compile(r"([A-Za-z0-9]+)(?: \S+)* \[(.+)\]")


def names_of(probe: Probe, devices: Set[str]) -> dict[str, tuple[str | None, str]]:
    """Chip and name of each device id: 2204 -> ("GA102", "GeForce RTX 3090")."""
    section = _NVIDIA.search(next(filter(None, (_text(probe, file) for file in FILES)), ""))
    if section is None:
        return {}
    return {device: _parts(text) for device, text in _DEVICE.findall(section[1]) if device in devices}


def _parts(text: str) -> tuple[str | None, str]:
    """The chip and the card in `GA102 [GeForce RTX 3090]`; a name without brackets tells no chip."""
    match = _NAMED.fullmatch(text)
    return (match[1], match[2]) if match else (None, text)


def _text(probe: Probe, file: str) -> str:
    data = probe.read_bytes(file)
    if data is None:
        return ""
    if file.endswith(".gz"):
        try:
            data = zlib.decompressobj(wbits=31).decompress(data, LIMIT)  # 31: with gzip's header
        except zlib.error:
            return ""
    return data.decode("utf-8", "replace")
